/* Lends PAPI a processor with a few counters, on a machine without any: preloaded, it opens every hardware
   event as the kernel's count of page faults, and refuses a group that holds more than FAKE_PMU_COUNTERS of
   them, as the kernel does. Software events pass unchanged. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>

#define DESCRIPTORS 4096
static int members[DESCRIPTORS];

long syscall(long number, ...)
{
    static long (*real)(long, ...);
    if (!real)
        real = dlsym(RTLD_NEXT, "syscall");
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    if (number != SYS_perf_event_open)
        return real(number, a, b, c, d, e, f);

    struct perf_event_attr attr = *(struct perf_event_attr *)a;
    int hardware =
        attr.type == PERF_TYPE_HARDWARE || attr.type == PERF_TYPE_HW_CACHE || attr.type == PERF_TYPE_RAW;
    int leader = (int)d;
    if (hardware) {
        const char *limit = getenv("FAKE_PMU_COUNTERS");
        if (leader >= 0 && leader < DESCRIPTORS && members[leader] >= (limit ? atoi(limit) : 4)) {
            errno = EINVAL;
            return -1;
        }
        attr.type = PERF_TYPE_SOFTWARE;
        attr.config = PERF_COUNT_SW_PAGE_FAULTS;
    }
    long descriptor = real(number, &attr, b, c, d, e, f);
    if (descriptor >= 0 && descriptor < DESCRIPTORS) {
        if (leader >= 0 && leader < DESCRIPTORS)
            members[leader] += hardware;
        else
            members[descriptor] = hardware;
    }
    return descriptor;
}

/* Marks the part of a program that `crossperf profile` measures: its time, and the counters of that part alone.
 *
 *     crossperf_begin();
 *     ...
 *     crossperf_end();
 *
 * Regions may repeat. Where they nest, or several threads are in one, it lasts from the first begin to the last end.
 * C and C++; link with -ldl where the C library is glibc before 2.34. Without crossperf a mark takes a nanosecond.
 */
#ifndef CROSSPERF_H
#define CROSSPERF_H
#ifdef __linux__
#include <dlfcn.h>
#include <stdlib.h>

/* What a mark does is in a library that crossperf names where it runs the program. */
static inline void crossperf_mark(int begins) {
    static void *mark, *looked;
    if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
        const char *path = getenv("CROSSPERF_REGION_LIBRARY");
        void *library = path ? dlopen(path, RTLD_NOW) : NULL;
        mark = library ? dlsym(library, "crossperf_region_mark") : NULL;
        __atomic_store_n(&looked, &looked, __ATOMIC_RELEASE);
    }
    if (mark) (*(void (**)(int))&mark)(begins);
}
#else
static inline void crossperf_mark(int begins) { (void)begins; }
#endif
static inline void crossperf_begin(void) { crossperf_mark(1); }
static inline void crossperf_end(void) { crossperf_mark(0); }
#endif

// Loaded into every dynamically linked process of a command (LD_PRELOAD); natively and under qemu.
//
// - CROSSPERF_QEMU, CROSSPERF_QEMU_CPU, CROSSPERF_QEMU_PLUGIN: a process that does not run under qemu yet starts itself again under it. So every
//   program is followed however it was started. Launchers (CROSSPERF_LAUNCHERS, names with a blank on both sides) stay as
//   they are; what they start is followed.
// - The moment at which the program's own main begins, and the OpenMP regions that it enters, are marked with valgrind's
//   client request, which does nothing on a processor and which the plugin recognises.
// - CROSSPERF_ZERO_IN_CHILD: callgrind forgets in a forked child what its parent had executed, which the parent reports.
// - CROSSPERF_STARTUP_OUT: the page faults up to main are added to the file PID of that folder, natively.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))
enum { OURS = ('X' << 24) | ('P' << 16), MAIN_BEGINS = OURS + 1, PARALLEL_BEGINS = OURS + 2, PARALLEL_ENDS = OURS + 3 };
enum { CALLGRIND_ZERO_STATS = ('C' << 24) + ('T' << 16) + 1 };

static void mark(unsigned long code) {
    volatile unsigned long words[6];
    words[0] = code;
    for (int i = 1; i < 6; i++) words[i] = 0;
#if defined __x86_64__
    unsigned long result = 0;
    __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
                     : "+d"(result) : "a"(words) : "cc", "memory");
#elif defined __aarch64__
    __asm__ volatile("mov x3, xzr; mov x4, %0; ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; ror x12, x12, #61;"
                     "orr x10, x10, x10" : : "r"(words) : "cc", "memory", "x3", "x4");
#endif
}

static const char *value_of(char **env, const char *name) {
    size_t n = strlen(name);
    for (; *env; env++)
        if (!strncmp(*env, name, n) && (*env)[n] == '=') return *env + n + 1;
    return NULL;
}
static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
static int is_launcher(char **env, const char *path) {
    const char *all = value_of(env, "CROSSPERF_LAUNCHERS");
    char name[256];
    snprintf(name, sizeof name, " %.15s ", last_part(path));  // as many letters as the kernel keeps
    return all && strstr(all, name);
}
// The kernel's name of this process: qemu answers for most of /proc/self in the program's place, not for this.
static int is_under_qemu(void) {
    char name[32] = "";
    int file = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    ssize_t n = file < 0 ? -1 : read(file, name, sizeof name - 1);
    if (file >= 0) close(file);
    return n > 0 && !strncmp(name, "qemu-", 5);
}

// Tells that this process is a launcher, whose name is kept, and not one that could not be followed.
static void note_launcher(char **env, const char *name) {
    const char *folder = value_of(env, "CROSSPERF_QEMU_OUT");
    char path[4096];
    if (!folder) return;
    snprintf(path, sizeof path, "%s/%d.launcher", folder, (int)getpid());
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return;
    if (write(file, name, strlen(name)) < 0) unlink(path);
    close(file);
}

static void forget_parent(void) { mark(CALLGRIND_ZERO_STATS); }
__attribute__((constructor)) static void watch_forks(int argc, char **argv, char **env) {
    (void)argc, (void)argv;
    if (value_of(env, "CROSSPERF_ZERO_IN_CHILD")) pthread_atfork(NULL, NULL, forget_parent);
}

__attribute__((constructor)) static void start_under_qemu(int argc, char **argv, char **env) {
    const char *qemu = value_of(env, "CROSSPERF_QEMU"), *plugin = value_of(env, "CROSSPERF_QEMU_PLUGIN"),
               *cpu = value_of(env, "CROSSPERF_QEMU_CPU");
    char program[4096];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (!qemu || !plugin || !cpu || argc < 1 || n < 0 || is_under_qemu()) return;
    program[n] = 0;
    if (is_launcher(env, program) || is_launcher(env, argv[0])) {
        note_launcher(env, last_part(program));
        return;
    }
    size_t n_env = 0;
    while (env[n_env]) n_env++;
    char **line = calloc((size_t)argc + 12, sizeof *line), **kept = calloc(n_env + 1, sizeof *kept);
    if (!line || !kept) return;
    char *head[] = {(char *)qemu, "-cpu", (char *)cpu, "-plugin", (char *)plugin, "-0", argv[0]};
    size_t words = sizeof head / sizeof *head, k = 0;
    memcpy(line, head, sizeof head);
    for (size_t i = 0; i < n_env; i++) {
        // qemu need not load what is meant for the program. It takes a comma for the end of a variable.
        if (!strncmp(env[i], "LD_PRELOAD=", 11) && !strchr(env[i], ',')) {
            line[words++] = "-E";
            line[words++] = env[i];
        } else {
            kept[k++] = env[i];
        }
    }
    line[words++] = program;
    memcpy(line + words, argv + 1, ((size_t)argc - 1) * sizeof *line);
    execve(qemu, line, kept);
}

static void note_startup(void) {
    const char *folder = getenv("CROSSPERF_STARTUP_OUT");
    struct rusage usage;
    char text[4096];
    if (!folder || getrusage(RUSAGE_SELF, &usage)) return;
    snprintf(text, sizeof text, "%s/%d", folder, (int)getpid());
    int file = open(text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) return;
    dprintf(file, "%ld\n", usage.ru_minflt + usage.ru_majflt);
    close(file);
}

static int (*main_of_program)(int, char **, char **);
static int marked_main(int argc, char **argv, char **env) {
    note_startup();
    mark(MAIN_BEGINS);
    return main_of_program(argc, argv, env);
}
PUBLIC int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                             void (*fini)(void), void (*rtld_fini)(void), void *stack_end) {
    __typeof__(&__libc_start_main) real = (__typeof__(&__libc_start_main))dlsym(RTLD_NEXT, "__libc_start_main");
    main_of_program = main;
    return real(marked_main, argc, argv, init, fini, rtld_fini, stack_end);
}

// GNU's OpenMP: all ways into a parallel region take at most eight words, which are handed on as they came.
typedef long (*into_region)(long, long, long, long, long, long, long, long);
#define REGION(name)                                                                                                  \
    PUBLIC long name(long a, long b, long c, long d, long e, long f, long g, long h) {                                \
        static into_region real;                                                                                      \
        if (!real) real = (into_region)dlsym(RTLD_NEXT, #name);                                                       \
        mark(PARALLEL_BEGINS);                                                                                        \
        long result = real(a, b, c, d, e, f, g, h);                                                                   \
        mark(PARALLEL_ENDS);                                                                                          \
        return result;                                                                                                \
    }
REGION(GOMP_parallel)
REGION(GOMP_parallel_sections)
REGION(GOMP_parallel_reductions)
REGION(GOMP_parallel_loop_static)
REGION(GOMP_parallel_loop_dynamic)
REGION(GOMP_parallel_loop_guided)
REGION(GOMP_parallel_loop_runtime)
REGION(GOMP_parallel_loop_nonmonotonic_dynamic)
REGION(GOMP_parallel_loop_nonmonotonic_guided)
REGION(GOMP_parallel_loop_nonmonotonic_runtime)
REGION(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

// LLVM's and Intel's OpenMP: the number of pointers that follow the region's function is given.
enum { POINTERS = 32 };
PUBLIC void __kmpc_fork_call(void *where, int n, void *region, ...) {
    static void (*real)(void *, int, void *, ...);
    void *p[POINTERS] = {NULL};
    va_list list;
    va_start(list, region);
    for (int i = 0; i < n && i < POINTERS; i++) p[i] = va_arg(list, void *);
    va_end(list);
    if (!real) real = (__typeof__(real))dlsym(RTLD_NEXT, "__kmpc_fork_call");
    mark(PARALLEL_BEGINS);
    real(where, n, region, p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12], p[13], p[14],
         p[15], p[16], p[17], p[18], p[19], p[20], p[21], p[22], p[23], p[24], p[25], p[26], p[27], p[28], p[29], p[30],
         p[31]);
    mark(PARALLEL_ENDS);
}

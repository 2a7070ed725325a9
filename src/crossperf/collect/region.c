/* What a mark of crossperf.h does while crossperf runs the program; loaded by the program, named by an environment
 * variable.
 *
 * CROSSPERF_REGION_FILE      add up time, faults and bytes of I/O, as doubles in this file, with the process id behind
 * CROSSPERF_REGION_PERF      the folder of perf's pipes `control` and `ack`, and of `inside`, how many processes are in
 * CROSSPERF_REGION_REQUESTS  three of valgrind's client requests: for begin, end, and a child after a fork
 *
 * qemu's plugin is always told: its requests are 'X', 'P' and 4 or 5.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BEGINS_FOR_QEMU 0x58500004UL
#define ENDS_FOR_QEMU 0x58500005UL
#define ANSWER_WITHIN_MS 1000

enum { WALL, CPU, OWN_CPU, MINOR, MAJOR, RCHAR, WCHAR, READ_BYTES, WRITE_BYTES, COUNTS };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int depth, inherited, owner;
static unsigned long visits;
static double first, last, sums[COUNTS], start[COUNTS];
#define FACTS 4
#define RECORD_BYTES ((FACTS + COUNTS) * sizeof(double))
static double *record;

static const char *prefix, *perf;
static unsigned long requests[3];
enum { INSIDE, CONTROL, ACK, FILES };
static struct {
    const char *name;
    int number;
    ino_t inode;
} files[FILES] = {{"inside", -1, 0}, {"control", -1, 0}, {"ack", -1, 0}};

/* Nothing on a processor; valgrind and qemu's plugin see it. */
static void ask(unsigned long request) {
    unsigned long words[6] = {request, 0, 0, 0, 0, 0};
#if defined(__x86_64__)
    unsigned long answer = 0;
    __asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\txchgq %%rbx, %%rbx"
                     : "+d"(answer)
                     : "a"(words)
                     : "cc", "memory");
#elif defined(__aarch64__)
    register unsigned long answer __asm__("x3") = 0;
    register unsigned long *where __asm__("x4") = words;
    __asm__ volatile("ror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\tror x12, x12, #61\n\t"
                     "orr x10, x10, x10"
                     : "+r"(answer)
                     : "r"(where)
                     : "cc", "memory");
#else
    (void)words;
#endif
}

static void read_clocks(double *counts) {
    const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID};
    for (int i = WALL; i <= OWN_CPU; i++) {
        struct timespec now = {0, 0};
        clock_gettime(clocks[i], &now);
        counts[i] = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    }
}

/* Children that were waited for are included, as /proc/self/io does by itself. */
static void read_counts(double *counts, int begins) {
    struct rusage mine, waited;
    char text[512];
    int file = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    text[length > 0 ? length : 0] = 0;
    if (file >= 0) close(file);
    for (int i = RCHAR; i < COUNTS; i++) counts[i] = NAN;
    sscanf(text, "rchar: %lf wchar: %lf syscr: %*f syscw: %*f read_bytes: %lf write_bytes: %lf", counts + RCHAR,
           counts + WCHAR, counts + READ_BYTES, counts + WRITE_BYTES);
    if (begins) counts[RCHAR] += (double)length; /* what was read just now is no part of the region */
    getrusage(RUSAGE_SELF, &mine);
    getrusage(RUSAGE_CHILDREN, &waited);
    counts[MINOR] = (double)(mine.ru_minflt + waited.ru_minflt);
    counts[MAJOR] = (double)(mine.ru_majflt + waited.ru_majflt);
}

/* One file for each process, mapped, so that a mark is a few stores and a process may end in any way. */
static void put(void) {
    if (!record) {
        char name[4096];
        snprintf(name, sizeof name, "%s.%d", prefix, owner);
        int file = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        void *mapped = MAP_FAILED;
        if (file >= 0 && ftruncate(file, RECORD_BYTES) == 0)
            mapped = mmap(NULL, RECORD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (file >= 0) close(file);
        if (mapped == MAP_FAILED) return;
        record = mapped;
    }
    const double facts[FACTS] = {depth, (double)visits, first, last};
    memcpy(record, facts, sizeof facts);
    memcpy(record + FACTS, sums, sizeof sums);
}

static int open_file(int i) {
    char path[4096];
    struct stat facts;
    snprintf(path, sizeof path, "%s/%s", perf, files[i].name);
    files[i].number = open(path, O_RDWR | O_CLOEXEC);
    if (files[i].number < 0 || fstat(files[i].number, &facts) != 0) return 0;
    files[i].inode = facts.st_ino;
    return 1;
}

/* The program may have closed what it did not open, and opened a file of its own under that number. */
static int still_open(int i) {
    struct stat facts;
    return fstat(files[i].number, &facts) == 0 && facts.st_ino == files[i].inode;
}

static void tell_perf(int begins) {
    const char *word = begins ? "enable\n" : "disable\n";
    struct pollfd answer = {files[ACK].number, POLLIN, 0};
    char letter = 0;
    if (write(files[CONTROL].number, word, strlen(word)) > 0)
        while (letter != '\n' && poll(&answer, 1, ANSWER_WITHIN_MS) > 0 && read(answer.fd, &letter, 1) == 1) continue;
}

/* perf counts while any process is in a region: the first to begin switches it on, the last to end off. The files are
 * opened before and closed after, so that they are not counted. */
static void switch_perf(int begins) {
    int inside = 0;
    for (int i = 0; i < FILES; i++)
        if (!(begins ? open_file(i) : still_open(i))) return;
    flock(files[INSIDE].number, LOCK_EX);
    if (pread(files[INSIDE].number, &inside, sizeof inside, 0) >= 0) {
        inside += begins ? 1 : -1;
        if (pwrite(files[INSIDE].number, &inside, sizeof inside, 0) > 0 && inside == begins) tell_perf(begins);
    }
    flock(files[INSIDE].number, LOCK_UN);
    for (int i = 0; i < FILES && !begins; i++) close(files[i].number);
}

static void begin(void) {
    if (prefix && !inherited) {
        put();
        read_counts(start, 1);
        read_clocks(start);
        if (!visits) first = start[WALL];
    }
    if (perf && !inherited) switch_perf(1);
    if (requests[0]) ask(requests[0]);
    ask(BEGINS_FOR_QEMU);
}

static void end(void) {
    double now[COUNTS];
    ask(ENDS_FOR_QEMU);
    if (requests[1]) ask(requests[1]);
    if (perf && !inherited) switch_perf(0);
    if (prefix && !inherited) {
        read_clocks(now);
        read_counts(now, 0);
        for (int i = 0; i < COUNTS; i++) sums[i] += now[i] - start[i];
        last = now[WALL];
        visits++;
        put();
    }
}

/* A process forked inside a region is a part of its parent's: it tells the tools that follow it, and no one else. */
static void look_who(void) {
    int me = (int)getpid();
    if (me == owner) return;
    if (owner && depth > 0) inherited = 1;
    owner = me;
    visits = 0;
    record = NULL;
    memset(sums, 0, sizeof sums);
}

static void hold(void) { pthread_mutex_lock(&lock); }
static void release(void) { pthread_mutex_unlock(&lock); }
static void release_child(void) {
    if (requests[2]) ask(requests[2]); /* callgrind's child begins with what its parent had counted */
    release();
}

static const char *setting(const char *name) {
    const char *value = getenv(name);
    return value ? strdup(value) : NULL; /* the program may change its environment */
}

__attribute__((constructor)) static void load(void) {
    const char *numbers = getenv("CROSSPERF_REGION_REQUESTS");
    if (numbers) sscanf(numbers, "%lu %lu %lu", requests, requests + 1, requests + 2);
    prefix = setting("CROSSPERF_REGION_FILE");
    perf = setting("CROSSPERF_REGION_PERF");
    pthread_atfork(hold, release, release_child);
}

__attribute__((visibility("default"))) void crossperf_region_mark(int begins) {
    hold();
    look_who();
    if (begins && depth++ == 0) begin();
    if (!begins && depth > 0 && --depth == 0) end();
    release();
}

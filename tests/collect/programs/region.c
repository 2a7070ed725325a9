// Spends a known number of instructions outside of marked regions, and another inside: region VISITS ROUNDS [HOW].
//
// Each visit runs a loop of two instructions ROUNDS times; ten times as many rounds lie before the first region and
// after the last. HOW is one of
//   sleep    20 ms are slept inside each region, and 200 ms outside
//   thread   another thread runs the rounds, while this one waits for it
//   fork     a child does the visits, and the parent does them after it
//   inside   a child forked inside of each region runs the rounds
//   after    a child is forked after the last region, and ends
//   two      a child and its parent are in a region; the child touches 1024 new pages after the parent has left
//   nest     each region holds a second one
//   open     the last region is begun and not ended
//   pages    each visit touches 256 new pages, 2560 are touched before
#include <crossperf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void work(long rounds) {
    if (rounds > 0) __asm__ volatile("1: sub $1, %0\n\tjnz 1b" : "+r"(rounds) : : "cc");
}
static void *worker(void *rounds) {
    work(*(long *)rounds);
    return NULL;
}
static void touch(long pages) {
    char *memory = mmap(NULL, (size_t)pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, (size_t)pages * 4096, MADV_NOHUGEPAGE);
    for (long i = 0; i < pages; i++) memory[i * 4096] = 1;
}

static void leave(pid_t child) {
    if (child == 0) _exit(0);
    wait(NULL);
}
static void two(void) {
    int up[2], down[2];
    char letter = 0;
    if (pipe(up) || pipe(down)) exit(1);
    pid_t child = fork();
    crossperf_begin();
    if (child == 0 && write(up[1], "x", 1) == 1 && read(down[0], &letter, 1) == 1) touch(1024);
    if (child > 0 && read(up[0], &letter, 1) != 1) exit(1);
    crossperf_end();
    if (child > 0 && write(down[1], "x", 1) != 1) exit(1);
    leave(child);
}

static void visit(long rounds, const char *how) {
    crossperf_begin();
    if (!strcmp(how, "nest")) crossperf_begin();
    if (!strcmp(how, "thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, worker, &rounds);
        pthread_join(thread, NULL);
    } else if (!strcmp(how, "inside")) {
        pid_t child = fork();
        if (child == 0) work(rounds);
        leave(child);
    } else {
        work(rounds);
    }
    if (!strcmp(how, "sleep")) usleep(20000);
    if (!strcmp(how, "pages")) touch(256);
    if (!strcmp(how, "nest")) {
        crossperf_end();
        work(rounds);
    }
    crossperf_end();
}

int main(int count, char **words) {
    long visits = atol(words[1]), rounds = atol(words[2]);
    const char *how = count > 3 ? words[3] : "";
    work(10 * rounds);
    if (!strcmp(how, "sleep")) usleep(200000);
    if (!strcmp(how, "pages")) touch(2560);
    pid_t child = strcmp(how, "fork") ? -1 : fork();
    if (child > 0) wait(NULL);
    for (long i = 0; i < visits; i++) visit(rounds, how);
    if (child == 0) return 0;
    work(10 * rounds);
    if (!strcmp(how, "open")) crossperf_begin();
    if (!strcmp(how, "after")) leave(fork());
    if (!strcmp(how, "two")) two();
    return 0;
}

// Loops with counts that can be worked out by hand:  known WHAT ROUNDS [BYTES]
//   load, store       one access of 8 bytes a round, over BYTES of memory from its start on, line after line
//   random            one load of 8 bytes a round, at a random place of BYTES
//   coin, always      one branch a round that a coin decides; that is always taken
//   atomic            one atomic addition a round
//   empty             nothing
//   crash             ends by SIGSEGV;  kill: by SIGKILL
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    const char *what = argv[1];
    long rounds = argc > 2 ? atol(argv[2]) : 0, bytes = argc > 3 ? atol(argv[3]) : 64, at = 0;
    char *data = aligned_alloc(4096, (size_t)bytes + 4096);
    uint64_t random = 88172645463325252u, sum = 0;
    memset(data, 1, (size_t)bytes);
    if (!strcmp(what, "load"))
        for (long i = 0; i < rounds; i++)
            for (at = 0; at < bytes; at += 64) __asm__ volatile("movq (%1), %0" : "=r"(sum) : "r"(data + at));
    if (!strcmp(what, "store"))
        for (long i = 0; i < rounds; i++)
            for (at = 0; at < bytes; at += 64) __asm__ volatile("movq %0, (%1)" : : "r"(sum), "r"(data + at) : "memory");
    if (!strcmp(what, "random") || !strcmp(what, "coin"))
        for (long i = 0; i < rounds; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            if (*what == 'r') {
                __asm__ volatile("movq (%1), %0" : "=r"(sum) : "r"(data + (random >> 20) % (uint64_t)bytes / 8 * 8));
            } else {
                __asm__ volatile("btq $40, %0; jc 1f; incq %1; 1:" : : "r"(random), "r"(sum) : "cc");
            }
        }
    if (!strcmp(what, "atomic"))
        for (long i = 0; i < rounds; i++) __atomic_fetch_add((uint64_t *)data, 1, __ATOMIC_RELAXED);
    if (!strcmp(what, "always"))
        for (long i = 0; i < rounds; i++) __asm__ volatile("" : : : "memory");
    if (!strcmp(what, "crash")) raise(SIGSEGV);
    if (!strcmp(what, "kill")) raise(SIGKILL);
    return (int)(sum & 0);
}

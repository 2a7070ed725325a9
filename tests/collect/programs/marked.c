// A loop of known length inside marks, and the same length before and after them:  marked ROUNDS FIRST-CODE LAST-CODE
// The codes are words of valgrind's client request, in hexadecimal: 58500004 58500005, or 43540002 twice.
#include <stdlib.h>

static void mark(unsigned long code) {
    volatile unsigned long words[6] = {code, 0, 0, 0, 0, 0};
    unsigned long result = 0;
    __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
                     : "+d"(result) : "a"(words) : "cc", "memory");
}
static void loop(long rounds) {
    __asm__ volatile("1: decq %0; jnz 1b" : "+r"(rounds) : : "cc");
}
int main(int argc, char **argv) {
    long rounds = atol(argv[1]);
    (void)argc;
    loop(7 * rounds);
    mark(strtoul(argv[2], NULL, 16));
    loop(rounds);
    mark(strtoul(argv[3], NULL, 16));
    loop(9 * rounds);
    return 0;
}

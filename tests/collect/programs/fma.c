// Adds up n vectors of 8 floats from memory, one after another: one fused multiply-add, one load of 32 bytes and half a
// cache line a round.
#include <stdlib.h>

int main(int argc, char **argv) {
    const long n = argc > 1 ? atol(argv[1]) : 1000;
    const char *at = aligned_alloc(64, 32 * (n + 2)), *end = at + 32 * n;
    __asm__ volatile(
        "1: vfmadd231ps (%0), %%ymm1, %%ymm0\n"
        "add $32, %0\n"
        "cmp %1, %0\n"
        "jb 1b\n"
        "vzeroupper\n"
        : "+r"(at)
        : "r"(end)
        : "xmm0", "xmm1", "cc", "memory");
    return 0;
}

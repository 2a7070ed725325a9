// Follows pointers through a random cycle over 16 MiB, one to a cache line: each step misses a small cache.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LINES (1 << 18)

struct line {
    struct line *next;
    char rest[56];
};

int main(int argc, char **argv) {
    const long steps = argc > 1 ? atol(argv[1]) : 0;
    struct line *lines = aligned_alloc(64, sizeof(struct line) * LINES);
    uint32_t *order = malloc(sizeof(uint32_t) * LINES);
    uint64_t state = 88172645463325252u;
    for (uint32_t i = 0; i < LINES; i++) order[i] = i;
    for (uint32_t i = LINES - 1; i > 0; i--) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        uint32_t j = state % (i + 1), swap = order[i];
        order[i] = order[j], order[j] = swap;
    }
    for (uint32_t i = 0; i < LINES; i++) lines[order[i]].next = &lines[order[(i + 1) % LINES]];
    struct line *at = lines;
    for (long i = 0; i < steps; i++) at = at->next;
    printf("%p\n", (void *)at);
    return 0;
}

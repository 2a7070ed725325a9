// OpenMP regions of known work:  regions REGIONS SERIAL-ROUNDS PARALLEL-ROUNDS: both rounds are two instructions each
#include <stdlib.h>

static void loop(long rounds) {
    __asm__ volatile("1: decq %0; jnz 1b" : "+r"(rounds) : : "cc");
}
int main(int argc, char **argv) {
    (void)argc;
    loop(atol(argv[2]));
    for (int i = 0; i < atoi(argv[1]); i++) {
#pragma omp parallel num_threads(2)
        {
            loop(atol(argv[3]) / 2);
#pragma omp parallel num_threads(1)
            loop(1);
        }
    }
    return 0;
}

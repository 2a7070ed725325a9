/* Heat in a plate: sweeps of a five-point stencil, in parallel loops of OpenMP. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1000, sweeps = argc > 2 ? atoi(argv[2]) : 100;
    double *old = calloc((size_t)n * n, sizeof *old), *new = calloc((size_t)n * n, sizeof *new), sum = 0;
    for (int j = 0; j < n; j++)
        old[j] = new[j] = 100.0;
    for (int sweep = 0; sweep < sweeps; sweep++) {
#pragma omp parallel for
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++) {
                size_t at = (size_t)i * n + j;
                new[at] = 0.25 * (old[at - n] + old[at + n] + old[at - 1] + old[at + 1]);
            }
        double *other = old;
        old = new;
        new = other;
    }
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            sum += old[(size_t)i * n + j];
    printf("%.6f\n", sum);
    return 0;
}

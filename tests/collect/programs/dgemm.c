// Multiplies two n x n matrices: 2 n^3 floating-point instructions when compiled without vectors and fused adds.
#include <stdlib.h>

int main(int argc, char **argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 100;
    double *a = malloc(sizeof(double) * (n * n + 1)), *b = malloc(sizeof(double) * (n * n + 1));
    double *c = malloc(sizeof(double) * (n * n + 1));
    for (int i = 0; i < n * n; i++) {
        a[i] = 1.0;
        b[i] = 2.0;
        c[i] = 0.0;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0.0;
            for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
    volatile double kept = c[0];
    (void)kept;
    return 0;
}

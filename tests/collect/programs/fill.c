// Fills 16 MiB k times by the C library.
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    const int k = argc > 1 ? atoi(argv[1]) : 1;
    char *volatile bytes = malloc(16 << 20);
    for (int i = 0; i < k; i++) memset(bytes, i, 16 << 20);
    return bytes[argc] == 77;
}

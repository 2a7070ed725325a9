// Forks k children; each goes a million times around the loop of two instructions and touches one megabyte.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const int k = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 0; i < k; i++)
        if (fork() == 0) {
            long n = 1000000;
            __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(n) : : "cc");
            volatile char *page = malloc(1 << 20);
            for (int at = 0; at < 1 << 20; at += 4096) page[at] = 1;
            _exit(0);
        }
    while (wait(NULL) > 0) {
    }
    return 0;
}

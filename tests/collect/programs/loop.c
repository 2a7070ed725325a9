// Goes n times around a loop of two instructions: a decrement, and the branch that waits for its flags.
#include <stdlib.h>

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 1;
    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(n) : : "cc");
    return 0;
}

// Writes a loop of two instructions into memory and calls it for n rounds, as a just-in-time compiler does.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
    const unsigned n = argc > 1 ? atoi(argv[1]) : 1000;
    // dec edi; jnz back; ret
    const unsigned char code[] = {0xff, 0xcf, 0x75, 0xfc, 0xc3};
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return 1;
    memcpy(page, code, sizeof code);
    ((void (*)(unsigned))page)(n);
    return 0;
}

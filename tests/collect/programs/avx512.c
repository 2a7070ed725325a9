// Executes one AVX-512 instruction, if the first argument is given; processors without it never get that far.
int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) __asm__ volatile(".byte 0x62, 0xf1, 0xf5, 0x48, 0x58, 0xc2");  // vaddpd zmm0, zmm1, zmm2
    return 0;
}

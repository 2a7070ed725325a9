// An MPI program: each rank goes n times around the loop of two instructions, then all meet.
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    long n = argc > 1 ? atol(argv[1]) : 1;
    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(n) : : "cc");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}

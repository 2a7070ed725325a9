/* touch_pages PAGES CHILDREN THREADS: every child, and in it every thread, touches PAGES fresh pages. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static long pages;

static void *touch(void *unused)
{
    (void)unused;
    long page = sysconf(_SC_PAGESIZE);
    volatile char *memory = mmap(0, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise((void *)memory, pages * page, MADV_NOHUGEPAGE);
    for (long i = 0; i < pages; i++)
        memory[i * page] = 1;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    pages = atol(argv[1]);
    int children = atoi(argv[2]), threads = atoi(argv[3]);
    for (int child = 0; child < children; child++) {
        if (fork() == 0) {
            pthread_t ids[64];
            for (int i = 0; i < threads; i++)
                pthread_create(&ids[i], 0, touch, 0);
            for (int i = 0; i < threads; i++)
                pthread_join(ids[i], 0);
            _exit(0);
        }
    }
    while (wait(0) > 0)
        ;
    return 0;
}

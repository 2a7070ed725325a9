/* Marks nested regions and threads with PAPI's high-level API, and touches a known number of pages in each:
   3 x (256 + 64) in main, 2 x 512 in the workers, 128 after it: 2112 pages. */
#include <papi.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

static void touch(size_t pages)
{
    size_t page = sysconf(_SC_PAGESIZE);
    volatile char *memory = mmap(0, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < pages; i++)
        memory[i * page] = 1;
    munmap((void *)memory, pages * page);
}

static void *worker(void *unused)
{
    (void)unused;
    PAPI_hl_region_begin("worker");
    touch(512);
    PAPI_hl_region_end("worker");
    return 0;
}

int main(void)
{
    pthread_t threads[2];
    PAPI_hl_region_begin("main");
    for (int i = 0; i < 3; i++) {
        PAPI_hl_region_begin("step");
        touch(256);
        PAPI_hl_read("step");
        PAPI_hl_region_begin("inner");
        touch(64);
        PAPI_hl_region_end("inner");
        PAPI_hl_region_end("step");
    }
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, worker, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    PAPI_hl_region_end("main");
    PAPI_hl_region_begin("after");
    touch(128);
    PAPI_hl_region_end("after");
    return 0;
}

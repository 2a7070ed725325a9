/* Loaded by the CUDA driver into a program (CUDA_INJECTION64_PATH): adds up what the GPU was asked to do.
 *
 * Copies by direction in bytes and nanoseconds, kernel launches with their blocks and threads, and the streams that
 * carried them. One file per process, PID.json in the folder that CROSSPERF_CUPTI_OUT names, written whenever
 * CUPTI hands a buffer over and a last time at exit, then with "ended": 1.
 *
 * Records are read through the oldest layouts that hold the fields below. Newer layouts append to these, so
 * one source serves CUDA 9 and later.
 */
#include <cupti.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BUFFER_BYTES (1 << 20)
#define FLUSH_EVERY_MS 500

typedef struct {
    uint64_t copies, bytes, ns;
} Direction;

static Direction to_gpu, to_host, inside_gpu, between_gpus;
static uint64_t launches, blocks, threads, kernel_ns, dropped;
static uint64_t *streams; /* context in the upper half, stream in the lower */
static size_t stream_count, stream_room;
static CUptiResult error;
static pid_t owner;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void see_stream(uint32_t context, uint32_t stream) {
    uint64_t name = ((uint64_t)context << 32) | stream;
    for (size_t i = stream_count; i-- > 0;)
        if (streams[i] == name) return;
    if (stream_count == stream_room) {
        size_t room = stream_room ? 2 * stream_room : 64;
        uint64_t *grown = realloc(streams, room * sizeof *grown);
        if (!grown) return;
        streams = grown;
        stream_room = room;
    }
    streams[stream_count++] = name;
}

static void add_copy(Direction *direction, uint64_t bytes, uint64_t start, uint64_t end) {
    direction->copies += 1;
    direction->bytes += bytes;
    direction->ns += end > start ? end - start : 0;
}

static Direction *direction_of(uint8_t kind) {
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA: return &to_gpu;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH: return &to_host;
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP: return &between_gpus;
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH: return NULL;
    default: return &inside_gpu;
    }
}

static void add(const CUpti_Activity *record) {
    if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        const CUpti_ActivityMemcpy *copy = (const CUpti_ActivityMemcpy *)record;
        Direction *direction = direction_of(copy->copyKind);
        if (direction) add_copy(direction, copy->bytes, copy->start, copy->end);
        see_stream(copy->contextId, copy->streamId);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY2) {
        const CUpti_ActivityMemcpyPtoP *copy = (const CUpti_ActivityMemcpyPtoP *)record;
        add_copy(&between_gpus, copy->bytes, copy->start, copy->end);
        see_stream(copy->contextId, copy->streamId);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        const CUpti_ActivityKernel4 *kernel = (const CUpti_ActivityKernel4 *)record;
        uint64_t in_grid = (uint64_t)kernel->gridX * (uint64_t)kernel->gridY * (uint64_t)kernel->gridZ;
        launches += 1;
        blocks += in_grid;
        threads += in_grid * (uint64_t)kernel->blockX * (uint64_t)kernel->blockY * (uint64_t)kernel->blockZ;
        kernel_ns += kernel->end > kernel->start ? kernel->end - kernel->start : 0;
        see_stream(kernel->contextId, kernel->streamId);
    }
}

static void put_direction(FILE *file, const char *name, const Direction *direction) {
    fprintf(file, "\"memcpy_%s_count\": %llu, \"memcpy_%s_bytes\": %llu, \"memcpy_%s_ns\": %llu, ", name,
            (unsigned long long)direction->copies, name, (unsigned long long)direction->bytes, name,
            (unsigned long long)direction->ns);
}

static void put(int ended) {
    char part[4096], whole[4096];
    const char *folder = getenv("CROSSPERF_CUPTI_OUT");
    if (!folder || getpid() != owner) return; /* a forked child holds its parent's sums */
    snprintf(whole, sizeof whole, "%s/%ld.json", folder, (long)owner);
    snprintf(part, sizeof part, "%s/%ld.part", folder, (long)owner);
    FILE *file = fopen(part, "w");
    if (!file) return;
    fputc('{', file);
    put_direction(file, "htod", &to_gpu);
    put_direction(file, "dtoh", &to_host);
    put_direction(file, "dtod", &inside_gpu);
    put_direction(file, "ptop", &between_gpus);
    fprintf(file, "\"kernel_launches\": %llu, \"thread_blocks\": %llu, \"kernel_threads\": %llu, ",
            (unsigned long long)launches, (unsigned long long)blocks, (unsigned long long)threads);
    fprintf(file, "\"kernel_ns\": %llu, \"streams\": %llu, ", (unsigned long long)kernel_ns,
            (unsigned long long)stream_count);
    fprintf(file, "\"dropped_records\": %llu, \"cupti\": %d, \"error\": %d, \"ended\": %d}\n",
            (unsigned long long)dropped, CUPTI_API_VERSION, (int)error, ended);
    if (fclose(file) == 0) rename(part, whole);
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *max_records) {
    void *memory = NULL;
    *size = posix_memalign(&memory, 8, BUFFER_BYTES) == 0 ? BUFFER_BYTES : 0;
    *buffer = memory;
    *max_records = 0;
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    size_t lost = 0;
    (void)size;
    pthread_mutex_lock(&lock);
    while (valid && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) add(record);
    if (cuptiActivityGetNumDroppedRecords(context, stream, &lost) == CUPTI_SUCCESS) dropped += lost;
    put(0);
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static void at_exit(void) {
    if (getpid() != owner) return;
    cuptiActivityFlushAll(1); /* CUPTI_ACTIVITY_FLAG_FLUSH_FORCED */
    pthread_mutex_lock(&lock);
    put(1);
    pthread_mutex_unlock(&lock);
}

/* The driver calls this by name when the program first uses CUDA. */
__attribute__((visibility("default"))) int InitializeInjection(void) {
    owner = getpid();
    error = cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
    if (!error) error = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
    if (!error) error = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY2);
    if (!error) error = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
#if CUPTI_API_VERSION >= 13
    if (!error) cuptiActivityFlushPeriod(FLUSH_EVERY_MS); /* a killed program loses no more than this */
#endif
    if (!error) atexit(at_exit);
    put(0);
    return !error;
}

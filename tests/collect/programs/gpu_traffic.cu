// A CUDA program whose bytes, launches and occupancy are known beforehand; exits 0 when its results are right.
//
//   gpu_traffic copy   2 launches of 1,048,576 blocks of 256 threads, one float each: each reads 1 GiB and writes 1 GiB
//   gpu_traffic spin   3 launches of 1,056 blocks of 64 threads that wait for 200,000 cycles. Each block asks for 100 KiB
//                      of shared memory, so a multiprocessor of 228 KiB holds 2 blocks: 4 warps of 64 on an H100 or H200
//
// Build: nvcc -arch=native -o gpu_traffic gpu_traffic.cu

#include <cstdio>
#include <cstdlib>
#include <cstring>

constexpr size_t kFloats = size_t(1) << 28;
constexpr int kShared = 100 * 1024;
constexpr long long kCycles = 200000;

#define CHECK(call)                                                              \
    do {                                                                         \
        cudaError_t status = (call);                                             \
        if (status != cudaSuccess) {                                             \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status)); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

__global__ void copy(const float *from, float *to) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    to[i] = from[i];
}

__global__ void spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

static int copies() {
    float *from, *to, last = 0;
    CHECK(cudaMalloc(&from, kFloats * sizeof(float)));
    CHECK(cudaMalloc(&to, kFloats * sizeof(float)));
    CHECK(cudaMemset(from, 0x40, kFloats * sizeof(float)));
    for (int i = 0; i < 2; ++i) copy<<<kFloats / 256, 256>>>(from, to);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&last, to + kFloats - 1, sizeof last, cudaMemcpyDeviceToHost));
    int bits = 0;
    std::memcpy(&bits, &last, sizeof bits);
    return bits == 0x40404040 ? 0 : 2;
}

static int spins() {
    CHECK(cudaFuncSetAttribute(spin, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
    for (int i = 0; i < 3; ++i) spin<<<1056, 64, kShared>>>(kCycles);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    return 0;
}

int main(int count, char **words) { return count > 1 && std::strcmp(words[1], "spin") == 0 ? spins() : copies(); }

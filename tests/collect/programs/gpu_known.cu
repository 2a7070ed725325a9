// A CUDA program whose counts are known beforehand; prints nothing and exits 0 when its results are right.
//
//   multiply_add  4 x 4 blocks of 16 x 16 threads, n = 64: n^3 multiplications and n^3 additions in double
//   copy          131,072 blocks of 256 threads, one float each: reads 128 MiB and writes 128 MiB
//   diverge       7 blocks of 64 threads, so 14 warps: each comes 10 times to a branch at which its threads part
//
// Three streams carry them: the default one and two more. Host to GPU: two matrices of 32,768 bytes and 128 MiB.
// GPU to host: one matrix of 32,768 bytes, 1 MiB of the copy and 448 sums of 4 bytes.
// Build: nvcc -arch=sm_90 -fmad=false -o gpu_known gpu_known.cu

#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int kN = 64;
constexpr int kFloats = 32 * 1024 * 1024;
constexpr int kTimes = 10;
constexpr int kDivergingThreads = 7 * 64;

#define CHECK(call)                                                              \
    do {                                                                         \
        cudaError_t status = (call);                                             \
        if (status != cudaSuccess) {                                             \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status)); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

__global__ void multiply_add(const double *a, const double *b, double *c) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0.0;
    for (int k = 0; k < kN; ++k) sum = __dadd_rn(sum, __dmul_rn(a[row * kN + k], b[k * kN + column]));
    c[row * kN + column] = sum;
}

__global__ void copy(const float *from, float *to) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i];
}

// Two calls that cannot be merged into one, nor into predicated instructions.
__device__ __noinline__ int odd_step(int x) { return x * 3 + 1; }
__device__ __noinline__ int even_step(int x) { return x ^ 0x55; }

__global__ void diverge(int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = i;
#pragma unroll 1
    for (int k = 0; k < kTimes; ++k) {
        if (threadIdx.x & 1) {
            x = odd_step(x);
        } else {
            x = even_step(x);
        }
    }
    out[i] = x;
}

static int expected(int i) {
    int x = i;
    for (int k = 0; k < kTimes; ++k) x = (i & 1) ? x * 3 + 1 : x ^ 0x55;
    return x;
}

int main() {
    std::vector<double> a(kN * kN), b(kN * kN), c(kN * kN);
    for (int i = 0; i < kN * kN; ++i) a[i] = i % 7, b[i] = i % 5;
    std::vector<float> from(kFloats), some(1024 * 1024 / sizeof(float));
    for (int i = 0; i < kFloats; ++i) from[i] = static_cast<float>(i % 1000);
    std::vector<int> sums(kDivergingThreads);

    double *gpu_a, *gpu_b, *gpu_c;
    float *gpu_from, *gpu_to;
    int *gpu_sums;
    CHECK(cudaMalloc(&gpu_a, kN * kN * sizeof(double)));
    CHECK(cudaMalloc(&gpu_b, kN * kN * sizeof(double)));
    CHECK(cudaMalloc(&gpu_c, kN * kN * sizeof(double)));
    CHECK(cudaMalloc(&gpu_from, kFloats * sizeof(float)));
    CHECK(cudaMalloc(&gpu_to, kFloats * sizeof(float)));
    CHECK(cudaMalloc(&gpu_sums, kDivergingThreads * sizeof(int)));
    cudaStream_t copying, diverging;
    CHECK(cudaStreamCreate(&copying));
    CHECK(cudaStreamCreate(&diverging));

    CHECK(cudaMemcpy(gpu_a, a.data(), kN * kN * sizeof(double), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(gpu_b, b.data(), kN * kN * sizeof(double), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(gpu_from, from.data(), kFloats * sizeof(float), cudaMemcpyHostToDevice));
    multiply_add<<<dim3(4, 4), dim3(16, 16)>>>(gpu_a, gpu_b, gpu_c);
    CHECK(cudaDeviceSynchronize());
    copy<<<kFloats / 256, 256, 0, copying>>>(gpu_from, gpu_to);
    diverge<<<7, 64, 0, diverging>>>(gpu_sums);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(c.data(), gpu_c, kN * kN * sizeof(double), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(some.data(), gpu_to, some.size() * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(sums.data(), gpu_sums, kDivergingThreads * sizeof(int), cudaMemcpyDeviceToHost));

    bool right = true;
    for (int row = 0; row < kN; ++row)
        for (int column = 0; column < kN; ++column) {
            double sum = 0.0;
            for (int k = 0; k < kN; ++k) sum += a[row * kN + k] * b[k * kN + column];
            right = right && sum == c[row * kN + column];
        }
    for (size_t i = 0; i < some.size(); ++i) right = right && some[i] == from[i];
    for (int i = 0; i < kDivergingThreads; ++i) right = right && sums[i] == expected(i);
    return right ? 0 : 2;
}

// One source for CPU and GPU: `forall` and `reduce` over OpenMP (g++) or CUDA (nvcc --extended-lambda), buffers that live
// where the code runs, and the interface that every workload implements.
//
//     forall(n, KERNEL(std::size_t i) { a[i] = b[i] + s * c[i]; });
//     double sum = reduce<double>(n, KERNEL(std::size_t i) { return a[i] * b[i]; });
//
// A KERNEL captures by value: take the pointers of buffers into local variables first, and never touch `this` inside.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef __CUDACC__
#include <cuda_profiler_api.h>
#define KERNEL [=] __device__
#define BOTH __host__ __device__
#else
#define KERNEL [=]
#define BOTH
#endif

namespace testbed {

// What the region of interest moved, launched and opened; the harness sets it to zero before each batch.
struct Meter {
    std::uint64_t bytes_to_device = 0, bytes_to_host = 0, launches = 0, files_opened = 0;
    double seconds_to_device = 0, seconds_to_host = 0;  // taken while counting only: a clock costs time itself
};
Meter &meter();

// Whether one pass is being counted, and after how many launches the counting tool is told to stop (0: never).
struct Counting {
    bool on = false;
    std::uint64_t launches = 0;
};
Counting &counting();
double now();

#ifdef __CUDACC__
inline void check(cudaError_t status, const char *what) {
    if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}
constexpr unsigned kBlock = 256;
constexpr unsigned kReduceBlocks = 512;
#endif

// An array with a copy on the host and, on a GPU, one on the device. On a CPU both are the same memory and nothing moves.
template <class T>
class Buffer {
  public:
    explicit Buffer(std::size_t n = 0, T value = T()) : host_(n, value) {
#ifdef __CUDACC__
        if (n) check(cudaMalloc(&device_, bytes()), "allocating on the GPU");
#endif
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    ~Buffer() {
#ifdef __CUDACC__
        cudaFree(device_);
#endif
    }

    std::size_t size() const { return host_.size(); }
    std::size_t bytes() const { return host_.size() * sizeof(T); }
    T *host() { return host_.data(); }
    const T *host() const { return host_.data(); }
    T &operator[](std::size_t i) { return host_[i]; }
    const T &operator[](std::size_t i) const { return host_[i]; }

    // Where kernels find the data.
    T *data() {
#ifdef __CUDACC__
        return device_;
#else
        return host_.data();
#endif
    }

    void upload() { upload(size()); }
    void download() { download(size()); }
    // The first n elements only.
    void upload(std::size_t n) {
#ifdef __CUDACC__
        const double start = counting().on ? now() : 0;
        check(cudaMemcpy(device_, host_.data(), n * sizeof(T), cudaMemcpyHostToDevice), "copying to the GPU");
        meter().bytes_to_device += n * sizeof(T);
        if (counting().on) meter().seconds_to_device += now() - start;
#else
        (void)n;
#endif
    }
    void download(std::size_t n) {
#ifdef __CUDACC__
        if (counting().on) check(cudaDeviceSynchronize(), "running");
        const double start = counting().on ? now() : 0;
        check(cudaMemcpy(host_.data(), device_, n * sizeof(T), cudaMemcpyDeviceToHost), "copying from the GPU");
        meter().bytes_to_host += n * sizeof(T);
        if (counting().on) meter().seconds_to_host += now() - start;
#else
        (void)n;
#endif
    }

  private:
    std::vector<T> host_;
#ifdef __CUDACC__
    T *device_ = nullptr;
#endif
};

#ifdef __CUDACC__
template <class F>
__global__ void forall_kernel(std::size_t n, F f) {
    std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
    if (i < n) f(i);
}

template <class T, class F, class Join>
__global__ void reduce_kernel(std::size_t n, F f, Join join, T start, T *out) {
    __shared__ T part[kBlock];
    T mine = start;
    for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < n;
         i += static_cast<std::size_t>(gridDim.x) * blockDim.x)
        mine = join(mine, f(i));
    part[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned half = kBlock / 2; half; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] = join(part[threadIdx.x], part[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
#endif

// Notes a launch; of many launches of one pass the counting tool sees the first ones.
inline void launched() {
    meter().launches++;
#ifdef __CUDACC__
    if (counting().on && meter().launches == counting().launches) check(cudaProfilerStop(), "stopping the profiler");
#endif
}

// Calls f(i) for every i below n, in any order, in parallel.
template <class F>
void forall(std::size_t n, F f) {
    if (n == 0) return;
#ifdef __CUDACC__
    forall_kernel<<<static_cast<unsigned>((n + kBlock - 1) / kBlock), kBlock>>>(n, f);
    check(cudaGetLastError(), "launching");
    launched();
#else
    launched();
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < n; i++) f(i);
#endif
}

struct Sum {
    template <class T>
    BOTH T operator()(T a, T b) const {
        return a + b;
    }
};
struct Max {
    template <class T>
    BOTH T operator()(T a, T b) const {
        return a < b ? b : a;
    }
};

// Joins f(i) for every i below n and returns the result to the host: a sum, unless another way to join is given.
template <class T, class F, class Join = Sum>
T reduce(std::size_t n, F f, T start = T(), Join join = Join()) {
#ifdef __CUDACC__
    static T *parts = [] {
        T *memory = nullptr;
        check(cudaMalloc(&memory, kReduceBlocks * sizeof(T)), "allocating on the GPU");
        return memory;
    }();
    unsigned blocks = static_cast<unsigned>(std::min<std::size_t>((n + kBlock - 1) / kBlock, kReduceBlocks));
    if (blocks == 0) return start;
    reduce_kernel<<<blocks, kBlock>>>(n, f, join, start, parts);
    check(cudaGetLastError(), "launching");
    launched();
    T host[kReduceBlocks];
    check(cudaMemcpy(host, parts, blocks * sizeof(T), cudaMemcpyDeviceToHost), "copying from the GPU");
    meter().bytes_to_host += blocks * sizeof(T);
    T total = start;
    for (unsigned i = 0; i < blocks; i++) total = join(total, host[i]);
    return total;
#else
    launched();
    T total = start;
#pragma omp parallel
    {
        T mine = start;
#pragma omp for schedule(static) nowait
        for (std::size_t i = 0; i < n; i++) mine = join(mine, f(i));
#pragma omp critical
        total = join(total, mine);
    }
    return total;
#endif
}

// Adds to memory that other calls of the kernel add to as well; returns what was there before.
template <class T>
BOTH inline T atomic_add(T *at, T value) {
#ifdef __CUDA_ARCH__
    if constexpr (std::is_same_v<T, std::uint64_t>)
        return atomicAdd(reinterpret_cast<unsigned long long *>(at), static_cast<unsigned long long>(value));
    else
        return atomicAdd(at, value);
#else
    T before;
#pragma omp atomic capture
    {
        before = *at;
        *at += value;
    }
    return before;
#endif
}

// Writes `value` where `expected` stands; returns what was there before.
BOTH inline std::uint32_t atomic_exchange_if(std::uint32_t *at, std::uint32_t expected, std::uint32_t value) {
#ifdef __CUDA_ARCH__
    return atomicCAS(at, expected, value);
#else
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
#endif
}

BOTH inline std::uint32_t atomic_min(std::uint32_t *at, std::uint32_t value) {
#ifdef __CUDA_ARCH__
    return atomicMin(at, value);
#else
    std::uint32_t before = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (value < before && !__atomic_compare_exchange_n(at, &before, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return before;
#endif
}

// The i-th number of a stream: the same on every machine, and in tests/testbed (splitmix64).
BOTH inline std::uint64_t random_bits(std::uint64_t i, std::uint64_t seed = 0) {
    std::uint64_t z = (i + 1) * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// The same as a number from 0 up to 1.
BOTH inline double random_unit(std::uint64_t i, std::uint64_t seed = 0) {
    return static_cast<double>(random_bits(i, seed) >> 11) * 0x1.0p-53;
}

// The parameters of one input, by name: "size=1000 precision=float".
class Input {
  public:
    explicit Input(const std::vector<std::string> &words);
    // A whole number of at least `least`.
    std::size_t number(const std::string &name, std::size_t fallback, std::size_t least = 1) const;
    double real(const std::string &name, double fallback) const;
    std::string text(const std::string &name, const std::string &fallback) const;
    // Throws for a parameter that nobody asked for.
    void refuse_unknown() const;

  private:
    std::map<std::string, std::string> values_;
    mutable std::set<std::string> asked_;
};

// One input, set up: `pass` does the work once, transfers to and from the GPU included, and leaves the result on the host;
// `checksum` tells the result in one number that a CPU and a GPU agree on.
class Workload {
  public:
    virtual ~Workload() = default;
    virtual void pass() = 0;
    virtual double checksum() const = 0;
};

using Make = std::function<std::unique_ptr<Workload>(const Input &)>;
struct Registered {
    std::string what;
    Make make;
};
std::map<std::string, Registered> &registry();

struct Register {
    Register(const std::string &name, const std::string &what, Make make) { registry()[name] = {what, std::move(make)}; }
};

// Makes Type<float> or Type<double>, by the parameter `precision`.
template <template <class> class Type>
std::unique_ptr<Workload> by_precision(const Input &input) {
    const std::string precision = input.text("precision", "double");
    if (precision == "float") return std::make_unique<Type<float>>(input);
    if (precision == "double") return std::make_unique<Type<double>>(input);
    throw std::invalid_argument("precision: found '" + precision + "', expected float or double");
}

template <class Type>
std::unique_ptr<Workload> plain(const Input &input) {
    return std::make_unique<Type>(input);
}

}  // namespace testbed

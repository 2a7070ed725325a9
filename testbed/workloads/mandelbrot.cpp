// The Mandelbrot set on `size` x `size` points with up to `iterations` iterations: arithmetic alone, but neighbours
// leave the loop at different times.
#include "../testbed.hpp"

namespace {
using namespace testbed;

// Rounded once on every device. Left to the compilers, some products would be rounded before the sum and some not, and
// points near the edge of the set would leave at other times.
BOTH inline float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
BOTH inline double multiply_add(double a, double b, double c) { return fma(a, b, c); }

template <class T>
class Mandelbrot : public Workload {
  public:
    explicit Mandelbrot(const Input &input)
        : n_(input.number("size", 64)), iterations_(input.number("iterations", 100)), count_(n_ * n_) {}
    void pass() override {
        const std::uint32_t n = std::uint32_t(n_), iterations = std::uint32_t(iterations_);
        const T width = T(2.5 / double(n_));
        std::uint32_t *count = count_.data();
        forall(n_ * n_, KERNEL(std::size_t i) {
            const std::uint32_t row = std::uint32_t(i) / n, column = std::uint32_t(i) - row * n;
            const T cx = multiply_add(T(column), width, T(-1.875)), cy = multiply_add(T(row), width, T(-1.25));
            T x = 0, y = 0;
            std::uint32_t k = 0;
            while (k < iterations && multiply_add(x, x, y * y) <= 4) {
                const T next = multiply_add(x, x, multiply_add(-y, y, cx));
                y = multiply_add(x + x, y, cy);
                x = next;
                k++;
            }
            count[i] = k;
        });
        count_.download();
    }
    double checksum() const override {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < n_ * n_; i++) sum += std::uint64_t(count_[i]) * (1 + i % 7);
        return double(sum);
    }

  private:
    std::size_t n_, iterations_;
    Buffer<std::uint32_t> count_;
};

const Register registered("mandelbrot", "escape times of the Mandelbrot set", by_precision<Mandelbrot>);
}  // namespace

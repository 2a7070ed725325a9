// Fast Fourier transforms of length `size` (a power of two), `batch` of them: radix-2 Stockham, which sorts as it goes, so
// that each stage streams through memory with a stride of its own.
#include "../testbed.hpp"

namespace {
using namespace testbed;

template <class T>
struct Complex {
    T re, im;
};

template <class T>
class Fft : public Workload {
  public:
    explicit Fft(const Input &input)
        : n_(input.number("size", 1024, 2)), batch_(input.number("batch", 1)), in_(n_ * batch_), x_(n_ * batch_),
          y_(n_ * batch_), turn_(n_ / 2) {
        if (n_ & (n_ - 1)) throw std::invalid_argument("size: expected a power of two");
        for (std::size_t i = 0; i < n_ * batch_; i++) in_[i] = {T(random_unit(i, 1)), T(random_unit(i, 2))};
        const double step = -2 * std::acos(-1.0) / double(n_);
        for (std::size_t i = 0; i < n_ / 2; i++) turn_[i] = {T(std::cos(step * double(i))), T(std::sin(step * double(i)))};
    }
    void pass() override {
        in_.upload();
        turn_.upload();
        const std::size_t half = n_ / 2;
        unsigned bits = 0;
        while ((std::size_t(1) << bits) < half) bits++;
        const Complex<T> *turn = turn_.data(), *from = in_.data();
        Buffer<Complex<T>> *to = &x_, *other = &y_;
        for (std::size_t stride = 1; stride <= half; stride *= 2) {
            Complex<T> *out = to->data();
            forall(half * batch_, KERNEL(std::size_t i) {
                const std::size_t k = i & (half - 1), first = (i >> bits) * 2 * half, low = k & (stride - 1);
                const Complex<T> a = from[first + k], b = from[first + k + half], w = turn[k - low];
                const T re = a.re - b.re, im = a.im - b.im;
                Complex<T> *at = out + first + 2 * k - low;
                at[0] = {a.re + b.re, a.im + b.im};
                at[stride] = {re * w.re - im * w.im, re * w.im + im * w.re};
            });
            from = out;
            std::swap(to, other);
        }
        result_ = other;
        result_->download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < n_ * batch_; i++) {
            const Complex<T> &z = (*result_)[i];
            sum += (double(z.re) * z.re + double(z.im) * z.im) * double(1 + i % 7);
        }
        return sum / double(n_ * batch_);
    }

  private:
    std::size_t n_, batch_;
    Buffer<Complex<T>> in_, x_, y_, turn_;
    Buffer<Complex<T>> *result_ = &x_;
};

const Register registered("fft", "batched radix-2 Fourier transforms", by_precision<Fft>);
}  // namespace

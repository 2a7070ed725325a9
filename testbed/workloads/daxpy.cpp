// BLAS daxpy over every `stride`-th element: y += a x, `sweeps` times. A stride wastes most of each cache line that is read,
// and most of each transfer.
#include "../testbed.hpp"

namespace {
using namespace testbed;

class Daxpy : public Workload {
  public:
    explicit Daxpy(const Input &input)
        : n_(input.number("size", 1000)), stride_(input.number("stride", 1)), sweeps_(input.number("sweeps", 1)),
          x_(n_ * stride_), start_(n_ * stride_), y_(n_ * stride_) {
        for (std::size_t i = 0; i < n_; i++) {
            x_[i * stride_] = random_unit(i, 1);
            start_[i * stride_] = random_unit(i, 2);
        }
    }
    void pass() override {
        x_.upload();
        start_.upload();
        const std::size_t stride = stride_;
        double *x = x_.data(), *start = start_.data(), *y = y_.data();
        for (std::size_t sweep = 0; sweep < sweeps_; sweep++) {
            const double a = 1.0 / double(sweep + 1);
            const double *before = sweep ? y : start;  // so that a pass leaves its input as it was
            forall(n_, KERNEL(std::size_t i) { y[i * stride] = before[i * stride] + a * x[i * stride]; });
        }
        y_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < n_; i++) sum += y_[i * stride_] * double(i % 7 + 1);
        return sum / double(n_);
    }

  private:
    std::size_t n_, stride_, sweeps_;
    Buffer<double> x_, start_, y_;
};

const Register registered("daxpy", "y += a x over every stride-th element", plain<Daxpy>);
}  // namespace

// Jacobi sweeps of the five-point average over `size` x `size` cells with a fixed border. Few operations for each byte.
#include "../testbed.hpp"

namespace {
using namespace testbed;

// Where the i-th of n x n cells lies in an array with one cell more on each side.
BOTH inline std::uint32_t place(std::size_t i, std::uint32_t n) {
    return std::uint32_t(i) + std::uint32_t(i) / n * 2 + n + 3;
}

class Jacobi2d : public Workload {
  public:
    explicit Jacobi2d(const Input &input)
        : n_(input.number("size", 64)), sweeps_(input.number("sweeps", 1)), start_((n_ + 2) * (n_ + 2)), a_(start_.size()),
          b_(start_.size()) {
        for (std::size_t i = 0; i < start_.size(); i++) start_[i] = a_[i] = b_[i] = random_unit(i, 1);
        a_.upload();  // for the border, which no kernel writes
        b_.upload();
    }
    void pass() override {
        start_.upload();
        const auto n = std::uint32_t(n_), pitch = n + 2;
        const double *from = start_.data();
        double *to = a_.data();
        for (std::size_t sweep = 0; sweep < sweeps_; sweep++) {
            forall(n_ * n_, KERNEL(std::size_t i) {
                const std::uint32_t at = place(i, n);
                to[at] = 0.25 * (from[at - 1] + from[at + 1] + from[at - pitch] + from[at + pitch]);
            });
            from = to;
            to = to == a_.data() ? b_.data() : a_.data();
        }
        (sweeps_ % 2 ? a_ : b_).download();
    }
    double checksum() const override {
        const Buffer<double> &out = sweeps_ % 2 ? a_ : b_;
        double sum = 0;
        for (std::size_t i = 0; i < out.size(); i++) sum += out[i] * double(i % 7 + 1);
        return sum / double(out.size());
    }

  private:
    std::size_t n_, sweeps_;
    Buffer<double> start_, a_, b_;
};

const Register registered("jacobi2d", "five-point Jacobi sweeps", plain<Jacobi2d>);
}  // namespace

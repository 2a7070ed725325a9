// Jacobi sweeps of the seven-point average over a cube of `size` cells an edge, with a fixed border.
#include "../testbed.hpp"

namespace {
using namespace testbed;

template <class T>
class Jacobi3d : public Workload {
  public:
    explicit Jacobi3d(const Input &input)
        : n_(input.number("size", 16)), sweeps_(input.number("sweeps", 1)), start_((n_ + 2) * (n_ + 2) * (n_ + 2)),
          a_(start_.size()), b_(start_.size()) {
        for (std::size_t i = 0; i < start_.size(); i++) start_[i] = a_[i] = b_[i] = T(random_unit(i, 1));
        a_.upload();  // for the border, which no kernel writes
        b_.upload();
    }
    void pass() override {
        start_.upload();
        const auto n = std::uint32_t(n_), pitch = n + 2, plane = pitch * pitch;
        const T *from = start_.data();
        T *to = a_.data();
        for (std::size_t sweep = 0; sweep < sweeps_; sweep++) {
            forall(n_ * n_ * n_, KERNEL(std::size_t i) {
                const std::uint32_t line = std::uint32_t(i) / n, x = std::uint32_t(i) - line * n;
                const std::uint32_t z = line / n, y = line - z * n;
                const std::uint32_t at = (z + 1) * plane + (y + 1) * pitch + x + 1;
                const T around = from[at - 1] + from[at + 1] + from[at - pitch] + from[at + pitch] + from[at - plane] +
                                 from[at + plane];
                to[at] = T(0.4) * from[at] + T(0.1) * around;
            });
            from = to;
            to = to == a_.data() ? b_.data() : a_.data();
        }
        (sweeps_ % 2 ? a_ : b_).download();
    }
    double checksum() const override {
        const Buffer<T> &out = sweeps_ % 2 ? a_ : b_;
        double sum = 0;
        for (std::size_t i = 0; i < out.size(); i++) sum += double(out[i]) * double(i % 7 + 1);
        return sum / double(out.size());
    }

  private:
    std::size_t n_, sweeps_;
    Buffer<T> start_, a_, b_;
};

const Register registered("jacobi3d", "seven-point Jacobi sweeps", by_precision<Jacobi3d>);
}  // namespace

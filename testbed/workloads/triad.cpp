// STREAM's triad: a = b + s c, `sweeps` times over arrays of `size` elements. Bandwidth, from the first cache to memory.
#include "../testbed.hpp"

namespace {
using namespace testbed;

template <class T>
class Triad : public Workload {
  public:
    explicit Triad(const Input &input)
        : n_(input.number("size", 1000)), sweeps_(input.number("sweeps", 1)), a_(n_), b_(n_), c_(n_) {
        for (std::size_t i = 0; i < n_; i++) {
            b_[i] = T(random_unit(i, 1));
            c_[i] = T(random_unit(i, 2));
        }
    }
    void pass() override {
        b_.upload();
        c_.upload();
        T *a = a_.data(), *b = b_.data(), *c = c_.data();
        for (std::size_t sweep = 0; sweep < sweeps_; sweep++) {
            const T s = T(sweep + 1);
            forall(n_, KERNEL(std::size_t i) { a[i] = b[i] + s * c[i]; });
        }
        a_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < n_; i++) sum += a_[i];
        return sum / double(n_);
    }

  private:
    std::size_t n_, sweeps_;
    Buffer<T> a_, b_, c_;
};

const Register registered("triad", "a = b + s c over arrays", by_precision<Triad>);
}  // namespace

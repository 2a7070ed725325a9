// Scalar products of x with `sweeps` shifted views of y. Each one ends in a sum that the host waits for.
#include "../testbed.hpp"

namespace {
using namespace testbed;

template <class T>
class Dot : public Workload {
  public:
    explicit Dot(const Input &input)
        : n_(input.number("size", 1000)), sweeps_(input.number("sweeps", 1)), x_(n_), y_(n_ + sweeps_) {
        for (std::size_t i = 0; i < x_.size(); i++) x_[i] = T(random_unit(i, 1));
        for (std::size_t i = 0; i < y_.size(); i++) y_[i] = T(random_unit(i, 2));
        dots_.resize(sweeps_);
    }
    void pass() override {
        x_.upload();
        y_.upload();
        T *x = x_.data();
        for (std::size_t sweep = 0; sweep < sweeps_; sweep++) {
            T *y = y_.data() + sweep;
            // The sum is kept in double: in float it would depend on its order.
            dots_[sweep] = reduce<double>(n_, KERNEL(std::size_t i)->double { return double(x[i] * y[i]); });
        }
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t sweep = 0; sweep < sweeps_; sweep++) sum += dots_[sweep] * double(sweep + 1);
        return sum / double(n_);
    }

  private:
    std::size_t n_, sweeps_;
    Buffer<T> x_, y_;
    std::vector<double> dots_;
};

const Register registered("dot", "scalar products of two vectors", by_precision<Dot>);
}  // namespace

// Matrix product C = A B by the definition, one element of C at a time; the matrices have `size` rows or columns outside and
// `depth` inside. B is read down its columns, which a CPU's cache lines do not like.
#include "../testbed.hpp"

namespace {
using namespace testbed;

template <class T>
class DgemmNaive : public Workload {
  public:
    explicit DgemmNaive(const Input &input)
        : n_(input.number("size", 32)), depth_(input.number("depth", 32)), a_(n_ * depth_), b_(depth_ * n_), c_(n_ * n_) {
        for (std::size_t i = 0; i < a_.size(); i++) a_[i] = T(random_unit(i, 1));
        for (std::size_t i = 0; i < b_.size(); i++) b_[i] = T(random_unit(i, 2));
    }
    void pass() override {
        a_.upload();
        b_.upload();
        const std::size_t n = n_, depth = depth_;
        T *a = a_.data(), *b = b_.data(), *c = c_.data();
        forall(n_ * n_, KERNEL(std::size_t i) {
            const T *left = a + i / n * depth, *up = b + i % n;
            T sum = 0;
            for (std::size_t k = 0; k < depth; k++) sum += left[k] * up[k * n];
            c[i] = sum;
        });
        c_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < c_.size(); i++) sum += double(c_[i]) * double(i % 7 + 1);
        return sum / double(c_.size());
    }

  private:
    std::size_t n_, depth_;
    Buffer<T> a_, b_, c_;
};

const Register registered("dgemm_naive", "matrix product, one element at a time", by_precision<DgemmNaive>);
}  // namespace

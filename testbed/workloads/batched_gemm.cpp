// Products of many small matrices, `m` x `m` each, `size` elements in all; one call for each row of a product.
#include "../testbed.hpp"

namespace {
using namespace testbed;

class BatchedGemm : public Workload {
  public:
    explicit BatchedGemm(const Input &input)
        : m_(input.number("m", 8)), count_(std::max<std::size_t>(input.number("size", 4096) / (m_ * m_), 1)),
          a_(count_ * m_ * m_), b_(count_ * m_ * m_), c_(count_ * m_ * m_) {
        for (std::size_t i = 0; i < c_.size(); i++) {
            a_[i] = random_unit(i, 1);
            b_[i] = random_unit(i, 2);
        }
    }
    void pass() override {
        a_.upload();
        b_.upload();
        const std::size_t m = m_;
        double *all_a = a_.data(), *all_b = b_.data(), *all_c = c_.data();
        forall(count_ * m_, KERNEL(std::size_t i) {
            const double *a = all_a + i * m, *b = all_b + i / m * m * m;
            double *c = all_c + i * m;
            for (std::size_t column = 0; column < m; column++) {
                double sum = 0;
                for (std::size_t k = 0; k < m; k++) sum += a[k] * b[k * m + column];
                c[column] = sum;
            }
        });
        c_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < c_.size(); i++) sum += c_[i] * double(i % 7 + 1);
        return sum / double(c_.size());
    }

  private:
    std::size_t m_, count_;
    Buffer<double> a_, b_, c_;
};

const Register registered("batched_gemm", "products of many small matrices", plain<BatchedGemm>);
}  // namespace

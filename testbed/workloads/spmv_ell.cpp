// Sparse matrix times vector in the ELLPACK format, `sweeps` times: every row has `nonzeros` places, stored column after
// column so that neighbouring rows are neighbours in memory. Suits a GPU; a CPU follows as many streams as there are places.
#include "../testbed.hpp"

namespace {
using namespace testbed;

class SpmvEll : public Workload {
  public:
    explicit SpmvEll(const Input &input)
        : n_(input.number("size", 1000)), width_(input.number("nonzeros", 8)), sweeps_(input.number("sweeps", 1)),
          columns_(n_ * width_), values_(n_ * width_), start_(n_), a_(n_), b_(n_) {
        const double spread = std::max(1.0, input.real("spread", 0.1) * double(n_));
        if (spread > double(n_)) throw std::invalid_argument("spread: expected a share from 0 to 1");
        for (std::size_t row = 0; row < n_; row++) start_[row] = random_unit(row, 1);
        for (std::size_t place = 0; place < width_; place++)
            for (std::size_t row = 0; row < n_; row++) {
                const std::size_t k = place * n_ + row;
                columns_[k] = std::uint32_t((row + std::size_t(random_unit(k, 2) * spread)) % n_);
                values_[k] = random_unit(k, 3) * 2.0 / double(width_);
            }
    }
    void pass() override {
        columns_.upload();
        values_.upload();
        start_.upload();
        const std::size_t n = n_, places = n_ * width_;
        const std::uint32_t *columns = columns_.data();
        const double *values = values_.data(), *from = start_.data();
        double *to = a_.data();
        for (std::size_t sweep = 0; sweep < sweeps_; sweep++) {
            forall(n_, KERNEL(std::size_t row) {
                double sum = 0;
                for (std::size_t k = row; k < places; k += n) sum += values[k] * from[columns[k]];
                to[row] = sum;
            });
            from = to;
            to = to == a_.data() ? b_.data() : a_.data();
        }
        (sweeps_ % 2 ? a_ : b_).download();
    }
    double checksum() const override {
        const Buffer<double> &out = sweeps_ % 2 ? a_ : b_;
        double sum = 0;
        for (std::size_t i = 0; i < n_; i++) sum += out[i] * double(i % 7 + 1);
        return sum / double(n_);
    }

  private:
    std::size_t n_, width_, sweeps_;
    Buffer<std::uint32_t> columns_;
    Buffer<double> values_, start_, a_, b_;
};

const Register registered("spmv_ell", "sparse matrix times vector, ELLPACK", plain<SpmvEll>);
}  // namespace

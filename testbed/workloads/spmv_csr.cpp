// Sparse matrix times vector, compressed rows, `sweeps` times. A row holds 1 to 2 `nonzeros` - 1 elements, whose columns lie
// within the share `spread` of the matrix after the diagonal: 1.0 scatters the reads over the whole vector.
#include "../testbed.hpp"

namespace {
using namespace testbed;

class SpmvCsr : public Workload {
  public:
    explicit SpmvCsr(const Input &input)
        : n_(input.number("size", 1000)), sweeps_(input.number("sweeps", 1)), begins_(n_ + 1),
          columns_(set_begins(input.number("nonzeros", 8))), values_(columns_.size()), start_(n_), a_(n_), b_(n_) {
        const double width = std::max(1.0, input.real("spread", 0.1) * double(n_));
        if (width > double(n_)) throw std::invalid_argument("spread: expected a share from 0 to 1");
        for (std::size_t row = 0; row < n_; row++) {
            start_[row] = random_unit(row, 1);
            const double scale = 2.0 / double(begins_[row + 1] - begins_[row]);  // keeps the vector's size over sweeps
            for (std::size_t k = begins_[row]; k < begins_[row + 1]; k++) {
                columns_[k] = std::uint32_t((row + std::size_t(random_unit(k, 2) * width)) % n_);
                values_[k] = random_unit(k, 3) * scale;
            }
        }
    }
    void pass() override {
        begins_.upload();
        columns_.upload();
        values_.upload();
        start_.upload();
        const std::uint32_t *begins = begins_.data(), *columns = columns_.data();
        const double *values = values_.data(), *from = start_.data();
        double *to = a_.data();
        for (std::size_t sweep = 0; sweep < sweeps_; sweep++) {
            forall(n_, KERNEL(std::size_t row) {
                double sum = 0;
                const std::size_t end = begins[row + 1];
                for (std::size_t k = begins[row]; k < end; k++) sum += values[k] * from[columns[k]];
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
    // Returns how many elements all rows hold.
    std::size_t set_begins(std::size_t nonzeros) {
        for (std::size_t row = 0; row < n_; row++)
            begins_[row + 1] = begins_[row] + 1 + std::uint32_t(random_bits(row, 4) % (2 * nonzeros - 1));
        return begins_[n_];
    }
    std::size_t n_, sweeps_;
    Buffer<std::uint32_t> begins_, columns_;
    Buffer<double> values_, start_, a_, b_;
};

const Register registered("spmv_csr", "sparse matrix times vector, compressed rows", plain<SpmvCsr>);
}  // namespace

// LU factors without pivoting of a diagonally dominant matrix, in panels of `block` columns. Each panel begins with a corner
// that one thread factors alone: a large block means fewer launches, and more of that serial work.
#include "../testbed.hpp"

namespace {
using namespace testbed;

class Lu : public Workload {
  public:
    explicit Lu(const Input &input)
        : n_(input.number("size", 64)), block_(input.number("block", 16)), start_(n_ * n_), a_(n_ * n_) {
        for (std::size_t i = 0; i < n_ * n_; i++) start_[i] = random_unit(i, 1) + (i % (n_ + 1) ? 0.0 : double(n_));
    }
    void pass() override {
        start_.upload();
        double *start = start_.data(), *a = a_.data();
        forall(n_ * n_, KERNEL(std::size_t i) { a[i] = start[i]; });
        const auto n = std::uint32_t(n_), block = std::uint32_t(block_);
        for (std::uint32_t first = 0; first < n; first += block) {
            const std::uint32_t end = first + block < n ? first + block : n, rest = n - end;
            forall(1, KERNEL(std::size_t) {
                for (std::uint32_t k = first; k < end; k++)
                    for (std::uint32_t row = k + 1; row < end; row++) {
                        const double factor = a[row * n + k] / a[k * n + k];
                        a[row * n + k] = factor;
                        for (std::uint32_t column = k + 1; column < end; column++)
                            a[row * n + column] -= factor * a[k * n + column];
                    }
            });
            // Columns right of the corner, then rows below it: each is a triangular solve of its own.
            forall(2 * std::size_t(rest), KERNEL(std::size_t i) {
                if (i < rest) {
                    const std::uint32_t column = end + std::uint32_t(i);
                    for (std::uint32_t k = first; k < end; k++) {
                        double sum = a[k * n + column];
                        for (std::uint32_t j = first; j < k; j++) sum -= a[k * n + j] * a[j * n + column];
                        a[k * n + column] = sum;
                    }
                } else {
                    const std::uint32_t row = end + std::uint32_t(i) - rest;
                    for (std::uint32_t k = first; k < end; k++) {
                        double sum = a[row * n + k];
                        for (std::uint32_t j = first; j < k; j++) sum -= a[row * n + j] * a[j * n + k];
                        a[row * n + k] = sum / a[k * n + k];
                    }
                }
            });
            forall(std::size_t(rest) * rest, KERNEL(std::size_t i) {
                double *row = a + std::size_t(end + std::uint32_t(i) / rest) * n;
                const std::size_t column = end + std::uint32_t(i) % rest;
                double sum = row[column];
                for (std::size_t k = first; k < end; k++) sum -= row[k] * a[k * n + column];
                row[column] = sum;
            });
        }
        a_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < a_.size(); i++) sum += a_[i] * double(i % 7 + 1);
        return sum / double(n_);
    }

  private:
    std::size_t n_, block_;
    Buffer<double> start_, a_;
};

const Register registered("lu", "LU factors without pivoting", plain<Lu>);
}  // namespace

// Discrete ordinates: particles stream through a grid of `size` x `size` cells in `angles` directions, from all four corners
// at once. A cell needs its two neighbours upwind, so that only the cells of a diagonal can go together: many short kernels.
#include "../testbed.hpp"

namespace {
using namespace testbed;

class Sweep : public Workload {
  public:
    explicit Sweep(const Input &input)
        : n_(input.number("size", 24)), angles_(input.number("angles", 8)), across_(angles_), along_(angles_),
          absorption_(n_ * n_), source_(n_ * n_), from_x_(n_ * angles_), from_y_(n_ * angles_),
          angular_(n_ * n_ * angles_), flux_(n_ * n_) {
        if (n_ > 74) throw std::invalid_argument("size: expected 74 or less, since each diagonal is a launch");
        if (angles_ % 4) throw std::invalid_argument("angles: expected a multiple of 4");
        for (std::size_t a = 0; a < angles_; a++) {
            const double cosine = 0.1 + 0.8 * random_unit(a, 1);
            across_[a] = 2 * cosine * double(n_);
            along_[a] = 2 * std::sqrt(1 - cosine * cosine) * double(n_);
        }
        for (std::size_t i = 0; i < n_ * n_; i++) {
            absorption_[i] = 1 + 10 * random_unit(i, 2);
            source_[i] = random_unit(i, 3);
        }
    }
    void pass() override {
        across_.upload();
        along_.upload();
        absorption_.upload();
        source_.upload();
        const std::uint32_t n = std::uint32_t(n_), angles = std::uint32_t(angles_);
        const double *across = across_.data(), *along = along_.data();
        const double *absorption = absorption_.data(), *source = source_.data();
        double *from_x = from_x_.data(), *from_y = from_y_.data(), *angular = angular_.data(), *flux = flux_.data();
        forall(n_ * angles_, KERNEL(std::size_t i) { from_x[i] = from_y[i] = 0; });
        for (std::uint32_t diagonal = 0; diagonal < 2 * n - 1; diagonal++) {
            const std::uint32_t first = diagonal < n ? 0 : diagonal - n + 1, last = diagonal < n ? diagonal : n - 1;
            forall(std::size_t(last - first + 1) * angles, KERNEL(std::size_t i) {
                const std::uint32_t k = std::uint32_t(i) / angles, a = std::uint32_t(i) - k * angles, corner = a % 4;
                const std::uint32_t column = first + k, row = diagonal - column;
                const std::uint32_t x = corner & 1 ? n - 1 - column : column, y = corner & 2 ? n - 1 - row : row;
                const std::uint32_t cell = y * n + x;
                double *in_x = from_x + row * angles + a, *in_y = from_y + column * angles + a;
                const double mean = (source[cell] + across[a] * *in_x + along[a] * *in_y) /
                                    (absorption[cell] + across[a] + along[a]);
                const double out_x = 2 * mean - *in_x, out_y = 2 * mean - *in_y;
                *in_x = out_x > 0 ? out_x : 0;  // what streams out is never less than nothing
                *in_y = out_y > 0 ? out_y : 0;
                angular[std::size_t(cell) * angles + a] = mean;
            });
        }
        forall(n_ * n_, KERNEL(std::size_t cell) {
            double sum = 0;
            for (std::uint32_t a = 0; a < angles; a++) sum += angular[cell * angles + a];
            flux[cell] = sum / angles;
        });
        flux_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < n_ * n_; i++) sum += flux_[i] * double(1 + i % 7);
        return sum / double(n_ * n_);
    }

  private:
    std::size_t n_, angles_;
    Buffer<double> across_, along_, absorption_, source_, from_x_, from_y_, angular_, flux_;
};

const Register registered("sweep", "discrete-ordinates sweep by diagonals", plain<Sweep>);
}  // namespace

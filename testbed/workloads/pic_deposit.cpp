// Charge of `size` particles spread over the four nearest nodes of a periodic grid of `grid` x `grid`, with atomic
// additions. The share `clustered` of the particles sits in one cell, where the additions collide. Charges are whole
// numbers (2^20 for each particle), so that the order of the additions does not matter.
#include "../testbed.hpp"

namespace {
using namespace testbed;

struct Place {
    float x, y;
};

class PicDeposit : public Workload {
  public:
    explicit PicDeposit(const Input &input)
        : n_(input.number("size", 10000)), grid_(input.number("grid", 64, 2)), at_(n_), charge_(grid_ * grid_) {
        if (grid_ & (grid_ - 1)) throw std::invalid_argument("grid: expected a power of two");
        const double clustered = input.real("clustered", 0);
        for (std::size_t i = 0; i < n_; i++) {
            const double spread = random_unit(i, 3) < clustered ? 1.0 : double(grid_);
            // Cut to whole 1/1024 of a cell, where nothing is rounded any more.
            at_[i] = {float(std::floor(random_unit(i, 1) * spread * 1024) / 1024),
                      float(std::floor(random_unit(i, 2) * spread * 1024) / 1024)};
        }
    }
    void pass() override {
        at_.upload();
        const std::uint32_t grid = std::uint32_t(grid_), mask = grid - 1;
        const Place *at = at_.data();
        std::uint64_t *charge = charge_.data();
        forall(grid_ * grid_, KERNEL(std::size_t i) { charge[i] = 0; });
        forall(n_, KERNEL(std::size_t i) {
            const std::uint32_t x = std::uint32_t(at[i].x * 1024), y = std::uint32_t(at[i].y * 1024);
            const std::uint32_t fx = x & 1023, fy = y & 1023;
            const std::uint32_t west = (x >> 10) & mask, east = (west + 1) & mask;
            const std::uint32_t south = ((y >> 10) & mask) * grid, north = (((y >> 10) + 1) & mask) * grid;
            atomic_add(charge + south + west, std::uint64_t((1024 - fx) * (1024 - fy)));
            atomic_add(charge + south + east, std::uint64_t(fx * (1024 - fy)));
            atomic_add(charge + north + west, std::uint64_t((1024 - fx) * fy));
            atomic_add(charge + north + east, std::uint64_t(fx * fy));
        });
        charge_.download();
    }
    double checksum() const override {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < grid_ * grid_; i++) sum += charge_[i] * (1 + i % 13);
        return double(sum);
    }

  private:
    std::size_t n_, grid_;
    Buffer<Place> at_;
    Buffer<std::uint64_t> charge_;
};

const Register registered("pic_deposit", "particles deposit charge with atomics", plain<PicDeposit>);
}  // namespace

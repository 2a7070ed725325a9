// Walkers that follow links through a table of `size` entries: each step waits for the one before, so latency is all that
// counts, unless there are many walkers.
#include "../testbed.hpp"

namespace {
using namespace testbed;

class PointerChase : public Workload {
  public:
    explicit PointerChase(const Input &input)
        : n_(input.number("size", 1024)), walkers_(input.number("walkers", 32)), steps_(input.number("steps", 100)),
          next_(n_), starts_(walkers_), sums_(walkers_) {
        if (n_ & (n_ - 1)) throw std::invalid_argument("size: expected a power of two");
        // A linear congruential generator visits every entry once before it comes back, with no pattern to prefetch.
        for (std::size_t i = 0; i < n_; i++) next_[i] = std::uint32_t((1664525 * i + 1013904223) & (n_ - 1));
        for (std::size_t i = 0; i < walkers_; i++) starts_[i] = std::uint32_t(random_bits(i, 1) & (n_ - 1));
    }
    void pass() override {
        next_.upload();
        starts_.upload();
        const std::uint32_t *next = next_.data(), *starts = starts_.data();
        std::uint32_t *sums = sums_.data();
        const std::uint32_t steps = std::uint32_t(steps_);
        forall(walkers_, KERNEL(std::size_t i) {
            std::uint32_t at = starts[i], sum = 0;
            for (std::uint32_t step = 0; step < steps; step++) {
                at = next[at];
                sum = sum * 3 + at;
            }
            sums[i] = sum;
        });
        sums_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < walkers_; i++) sum += double(i % 1009 + 1) * sums_[i];
        return sum;
    }

  private:
    std::size_t n_, walkers_, steps_;
    Buffer<std::uint32_t> next_, starts_, sums_;
};

const Register registered("pointer_chase", "walkers that follow links through memory", plain<PointerChase>);
}  // namespace

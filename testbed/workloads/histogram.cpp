// A histogram of `size` keys in `bins` bins by atomic additions: few bins are fought over, many miss the caches.
#include "../testbed.hpp"

namespace {
using namespace testbed;

class Histogram : public Workload {
  public:
    explicit Histogram(const Input &input)
        : n_(input.number("size", 1000)), bins_(input.number("bins", 256)), keys_(n_), counts_(bins_) {
        for (std::size_t i = 0; i < n_; i++) keys_[i] = std::uint32_t(random_bits(i, 1) >> 32);
    }
    void pass() override {
        keys_.upload();
        std::uint32_t *keys = keys_.data(), *counts = counts_.data();
        const std::uint64_t bins = bins_;
        forall(bins_, KERNEL(std::size_t i) { counts[i] = 0; });
        forall(n_, KERNEL(std::size_t i) { atomic_add(counts + (keys[i] * bins >> 32), std::uint32_t(1)); });
        counts_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < bins_; i++) sum += double(i % 1009 + 1) * counts_[i] * counts_[i];
        return sum;
    }

  private:
    std::size_t n_, bins_;
    Buffer<std::uint32_t> keys_, counts_;
};

const Register registered("histogram", "counts of keys in bins, by atomic additions", plain<Histogram>);
}  // namespace

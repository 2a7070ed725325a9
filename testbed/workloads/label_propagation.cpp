// Connected components by labels: in each of `rounds` rounds a vertex takes the least label of its neighbours, and then the
// label of the vertex so named. `degree` is the mean number of neighbours.
#include "../testbed.hpp"

namespace {
using namespace testbed;

class LabelPropagation : public Workload {
  public:
    explicit LabelPropagation(const Input &input)
        : n_(input.number("size", 1000)), half_(input.number("degree", 4, 2) / 2), rounds_(input.number("rounds", 4)),
          offsets_(n_ + 1), neighbours_(2 * half_ * n_), label_(n_), next_(n_) {
        const auto partner = [&](std::size_t e) { return std::uint32_t((random_bits(e, 1) >> 16) % n_); };
        std::vector<std::uint32_t> at(n_ + 1, 0);
        for (std::size_t e = 0; e < n_ * half_; e++) {
            at[e / half_ + 1]++;
            at[partner(e) + 1]++;
        }
        for (std::size_t v = 0; v < n_; v++) at[v + 1] += at[v];
        for (std::size_t v = 0; v <= n_; v++) offsets_[v] = at[v];
        for (std::size_t e = 0; e < n_ * half_; e++) {
            const std::uint32_t v = std::uint32_t(e / half_), other = partner(e);
            neighbours_[at[v]++] = other;
            neighbours_[at[other]++] = v;
        }
    }
    void pass() override {
        offsets_.upload();
        neighbours_.upload();
        const std::uint32_t *offsets = offsets_.data(), *neighbours = neighbours_.data();
        std::uint32_t *label = label_.data(), *next = next_.data();
        forall(n_, KERNEL(std::size_t v) { label[v] = std::uint32_t(v); });
        for (std::size_t round = 0; round < rounds_; round++) {
            forall(n_, KERNEL(std::size_t v) {
                std::uint32_t least = label[v];
                for (std::uint32_t e = offsets[v]; e < offsets[v + 1]; e++) {
                    const std::uint32_t other = label[neighbours[e]];
                    least = other < least ? other : least;
                }
                next[v] = label[least];
            });
            std::swap(label, next);
        }
        (rounds_ % 2 ? next_ : label_).download();
    }
    double checksum() const override {
        const Buffer<std::uint32_t> &label = rounds_ % 2 ? next_ : label_;
        double sum = 0;
        for (std::size_t v = 0; v < n_; v++) sum += double(v % 1009 + 1) * (label[v] + 1.0);
        return sum;
    }

  private:
    std::size_t n_, half_, rounds_;
    Buffer<std::uint32_t> offsets_, neighbours_, label_, next_;
};

const Register registered("label_propagation", "connected components by the least label near by", plain<LabelPropagation>);
}  // namespace

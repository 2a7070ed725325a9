// Radix sort of keys of `bits` bits, each with a value, least digit first: chunks count their digits, a scan over the
// chunks says where each digit of each chunk goes, and the chunks scatter in order, so that the sort is stable.
#include "../testbed.hpp"

namespace {
using namespace testbed;

constexpr std::size_t kChunk = 512;
constexpr std::uint32_t kDigits = 256;

class RadixSort : public Workload {
  public:
    explicit RadixSort(const Input &input)
        : n_(input.number("size", 1000)), bits_(input.number("bits", 16)), chunks_((n_ + kChunk - 1) / kChunk), keys_(n_),
          sorted_(n_), spare_(n_), values_(n_), spare_values_(n_), counts_(chunks_ * kDigits), first_(kDigits),
          totals_(kDigits) {
        if (bits_ > 32) throw std::invalid_argument("bits: expected at most 32");
        for (std::size_t i = 0; i < n_; i++) keys_[i] = std::uint32_t(random_bits(i, 1) >> (64 - bits_));
    }
    void pass() override {
        keys_.upload();
        std::uint32_t *keys = keys_.data(), *counts = counts_.data(), *first = first_.data(), *totals = totals_.data();
        std::uint32_t *in = sorted_.data(), *out = spare_.data();
        std::uint32_t *in_values = values_.data(), *out_values = spare_values_.data();
        const std::size_t n = n_, chunks = chunks_;
        forall(n, KERNEL(std::size_t i) {
            in[i] = keys[i];
            in_values[i] = std::uint32_t(i);
        });
        const unsigned rounds = unsigned(bits_ + 7) / 8;
        for (unsigned round = 0; round < rounds; round++) {
            const unsigned shift = 8 * round;
            forall(chunks, KERNEL(std::size_t chunk) {
                std::uint32_t *mine = counts + chunk * kDigits;
                for (std::uint32_t digit = 0; digit < kDigits; digit++) mine[digit] = 0;
                const std::size_t end = chunk * kChunk + kChunk < n ? chunk * kChunk + kChunk : n;
                for (std::size_t i = chunk * kChunk; i < end; i++) mine[(in[i] >> shift) % kDigits]++;
            });
            forall(kDigits, KERNEL(std::size_t digit) {
                std::uint32_t before = 0;
                for (std::size_t chunk = 0; chunk < chunks; chunk++) {
                    const std::uint32_t count = counts[chunk * kDigits + digit];
                    counts[chunk * kDigits + digit] = before;
                    before += count;
                }
                totals[digit] = before;
            });
            forall(kDigits, KERNEL(std::size_t digit) {
                std::uint32_t before = 0;
                for (std::size_t lower = 0; lower < digit; lower++) before += totals[lower];
                first[digit] = before;
            });
            forall(chunks, KERNEL(std::size_t chunk) {
                std::uint32_t *mine = counts + chunk * kDigits;
                const std::size_t end = chunk * kChunk + kChunk < n ? chunk * kChunk + kChunk : n;
                for (std::size_t i = chunk * kChunk; i < end; i++) {
                    const std::uint32_t digit = (in[i] >> shift) % kDigits;
                    const std::uint32_t to = first[digit] + mine[digit]++;
                    out[to] = in[i];
                    out_values[to] = in_values[i];
                }
            });
            std::swap(in, out);
            std::swap(in_values, out_values);
        }
        in_spare_ = rounds % 2 == 1;
        (in_spare_ ? spare_ : sorted_).download();
        (in_spare_ ? spare_values_ : values_).download();
    }
    double checksum() const override {
        const Buffer<std::uint32_t> &keys = in_spare_ ? spare_ : sorted_, &values = in_spare_ ? spare_values_ : values_;
        double sum = 0;
        for (std::size_t i = 0; i < n_; i++) sum += double(i % 1009 + 1) * (double(keys[i]) + values[i]);
        return sum;
    }

  private:
    std::size_t n_, bits_, chunks_;
    bool in_spare_ = false;
    Buffer<std::uint32_t> keys_, sorted_, spare_, values_, spare_values_, counts_, first_, totals_;
};

const Register registered("radix_sort", "radix sort of keys and values, by digits of 8 bits", plain<RadixSort>);
}  // namespace

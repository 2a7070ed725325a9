// A hash table with open addressing: `size` keys are entered by compare-and-exchange, then as many are looked up, of which
// half are there. The higher the share `load` of slots in use, the longer the search.
#include "../testbed.hpp"

namespace {
using namespace testbed;

// Gives every number another one, and 0 to 0 alone, which marks a free slot (the end of MurmurHash3).
inline std::uint32_t scrambled(std::uint32_t x) {
    x = (x ^ x >> 16) * 0x85EBCA6Bu;
    x = (x ^ x >> 13) * 0xC2B2AE35u;
    return x ^ x >> 16;
}

class HashTable : public Workload {
  public:
    explicit HashTable(const Input &input)
        : n_(input.number("size", 1000)), slots_(slots(input, n_)), keys_(n_), wanted_(n_), found_(n_), table_(slots_),
          values_(slots_) {
        for (std::size_t i = 0; i < n_; i++) keys_[i] = scrambled(std::uint32_t(i + 1));
        for (std::size_t i = 0; i < n_; i++) {
            const std::uint64_t bits = random_bits(i, 1);
            wanted_[i] = bits & 1 ? keys_[(bits >> 1) % n_] : scrambled(std::uint32_t(n_ + i + 1));
        }
    }
    static std::size_t slots(const Input &input, std::size_t n) {
        const double load = input.real("load", 0.5);
        if (!(load > 0 && load <= 0.95)) throw std::invalid_argument("load: expected a share above 0, at most 0.95");
        return std::size_t(double(n) / load) + 1;
    }
    void pass() override {
        keys_.upload();
        wanted_.upload();
        std::uint32_t *keys = keys_.data(), *wanted = wanted_.data(), *found = found_.data(), *table = table_.data();
        std::uint32_t *values = values_.data();
        const std::uint64_t slots = slots_;
        forall(slots_, KERNEL(std::size_t i) { table[i] = 0; });
        forall(n_, KERNEL(std::size_t i) {
            std::uint64_t at = keys[i] * slots >> 32;
            while (atomic_exchange_if(table + at, 0, keys[i]) != 0) at = at + 1 < slots ? at + 1 : 0;
            values[at] = std::uint32_t(i + 1);
        });
        forall(n_, KERNEL(std::size_t i) {
            const std::uint32_t key = wanted[i];
            std::uint64_t at = key * slots >> 32;
            while (table[at] != 0 && table[at] != key) at = at + 1 < slots ? at + 1 : 0;
            found[i] = table[at] ? values[at] : 0;
        });
        found_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < n_; i++) sum += double(i % 1009 + 1) * found_[i];
        return sum;
    }

  private:
    std::size_t n_, slots_;
    Buffer<std::uint32_t> keys_, wanted_, found_, table_, values_;
};

const Register registered("hash_table", "build and probe of a hash table with open addressing", plain<HashTable>);
}  // namespace

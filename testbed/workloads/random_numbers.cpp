// `size` draws of random numbers of one `kind`, summed where they are drawn, so that no memory is touched: splitmix (64-bit
// products), philox (ten rounds of 32-bit products), box_muller (logarithm and cosine), polar (rejection: a branch that no
// one can foresee).
#include "../testbed.hpp"

namespace {
using namespace testbed;
using std::cos;
using std::fabs;
using std::log;
using std::sin;
using std::sqrt;

// Philox 4x32-10 of Salmon et al. (2011), key (7, 11); returns the first word with the third above it.
BOTH inline std::uint64_t philox(std::uint64_t counter) {
    std::uint32_t a = std::uint32_t(counter), b = std::uint32_t(counter >> 32), c = 0, d = 0, key0 = 7, key1 = 11;
    for (int round = 0; round < 10; round++) {
        const std::uint64_t first = std::uint64_t(0xD2511F53u) * a, second = std::uint64_t(0xCD9E8D57u) * c;
        const std::uint32_t next_a = std::uint32_t(second >> 32) ^ b ^ key0, next_c = std::uint32_t(first >> 32) ^ d ^ key1;
        b = std::uint32_t(second);
        d = std::uint32_t(first);
        a = next_a;
        c = next_c;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return (std::uint64_t(c) << 32) | a;
}

class RandomNumbers : public Workload {
  public:
    explicit RandomNumbers(const Input &input)
        : n_(input.number("size", 10000)), kind_(input.text("kind", "splitmix")) {
        if (kind_ != "splitmix" && kind_ != "philox" && kind_ != "box_muller" && kind_ != "polar")
            throw std::invalid_argument("kind: found '" + kind_ + "', expected splitmix, philox, box_muller or polar");
    }
    void pass() override {
        // Words are weighed by their place, so that a draw that comes twice is seen.
        if (kind_ == "splitmix") {
            sum_ = double(reduce<std::uint64_t>(n_, KERNEL(std::size_t i) {
                return (random_bits(i, 1) >> 40) * (1 + i % 8);
            }));
        } else if (kind_ == "philox") {
            sum_ = double(reduce<std::uint64_t>(n_, KERNEL(std::size_t i) {
                const std::uint64_t word = philox(i);
                return ((word >> 40) ^ (word & 0xFFFFFF)) * (1 + i % 8);
            }));
        } else if (kind_ == "box_muller") {
            const double turn = 2 * std::acos(-1.0);
            sum_ = reduce<double>(n_, KERNEL(std::size_t i) {
                const double radius = sqrt(-2 * log(1 - random_unit(i, 1))), angle = turn * random_unit(i, 2);
                return fabs(radius * cos(angle)) + 2 * fabs(radius * sin(angle));
            });
        } else {
            sum_ = reduce<double>(n_, KERNEL(std::size_t i) {
                double x = 0, y = 0, square = 0;
                for (std::uint64_t draw = i * 64; square >= 1 || square == 0; draw += 2) {
                    x = 2 * random_unit(draw, 3) - 1;
                    y = 2 * random_unit(draw + 1, 3) - 1;
                    square = x * x + y * y;
                }
                const double scale = sqrt(-2 * log(square) / square);
                return fabs(x * scale) + 2 * fabs(y * scale);
            });
        }
    }
    double checksum() const override { return sum_; }

  private:
    std::size_t n_;
    std::string kind_;
    double sum_ = 0;
};

const Register registered("random_numbers", "random numbers of several kinds, summed", plain<RandomNumbers>);
}  // namespace

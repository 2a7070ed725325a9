// Local alignment of many pairs of sequences, one pair for each call. Only cells within `band` of the diagonal are looked
// at; `alike` is the share of letters that a pair has in common.
#include "../testbed.hpp"

namespace {
using namespace testbed;

constexpr int kLongest = 256;

class SmithWaterman : public Workload {
  public:
    explicit SmithWaterman(const Input &input)
        : pairs_(input.number("pairs", 16)), length_(input.number("length", 64)), band_(input.number("band", 16)),
          a_(pairs_ * length_), b_(pairs_ * length_), score_(pairs_) {
        if (length_ > kLongest) throw std::invalid_argument("length: expected at most 256");
        const double alike = input.real("alike", 0.7);
        for (std::size_t i = 0; i < a_.size(); i++) {
            a_[i] = std::uint8_t(random_bits(i, 1) >> 62);
            b_[i] = random_unit(i, 2) < alike ? a_[i] : std::uint8_t(random_bits(i, 3) >> 62);
        }
    }
    void pass() override {
        a_.upload();
        b_.upload();
        const std::uint8_t *as = a_.data(), *bs = b_.data();
        std::int32_t *score = score_.data();
        const int length = int(length_), band = int(band_ < length_ ? band_ : length_);
        forall(pairs_, KERNEL(std::size_t pair) {
            const std::uint8_t *a = as + pair * length, *b = bs + pair * length;
            int row[kLongest + 1];  // of the letter before, and left of `j` already of this one
            for (int j = 0; j <= length; j++) row[j] = 0;
            int most = 0;
            for (int i = 1; i <= length; i++) {
                const int from = i - band > 1 ? i - band : 1, to = i + band < length ? i + band : length;
                const int letter = a[i - 1];
                int diagonal = row[from - 1], left = 0;
                for (int j = from; j <= to; j++) {
                    const int above = row[j];
                    int best = diagonal + (letter == b[j - 1] ? 2 : -1);
                    best = best > above - 1 ? best : above - 1;
                    best = best > left - 1 ? best : left - 1;
                    best = best > 0 ? best : 0;
                    most = most > best ? most : best;
                    diagonal = above;
                    left = best;
                    row[j] = best;
                }
            }
            score[pair] = most;
        });
        score_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < pairs_; i++) sum += double(i % 1009 + 1) * score_[i];
        return sum;
    }

  private:
    std::size_t pairs_, length_, band_;
    Buffer<std::uint8_t> a_, b_;
    Buffer<std::int32_t> score_;
};

const Register registered("smith_waterman", "local alignment of many pairs of sequences", plain<SmithWaterman>);
}  // namespace

// Merge sort from the bottom up: short runs by insertion, then one launch for each doubling of the runs, in which each call
// finds its piece of the output by a search along a diagonal (merge path). The share `presorted` of the keys is in place.
#include "../testbed.hpp"

namespace {
using namespace testbed;

constexpr std::size_t kRun = 32;

class MergeSort : public Workload {
  public:
    explicit MergeSort(const Input &input) : n_(input.number("size", 1000)), keys_(n_), sorted_(n_), spare_(n_) {
        const double presorted = input.real("presorted", 0.5);
        for (std::size_t i = 0; i < n_; i++)
            keys_[i] = random_unit(i, 2) < presorted ? std::uint32_t((std::uint64_t(i) << 32) / n_)
                                                     : std::uint32_t(random_bits(i, 1) >> 32);
    }
    void pass() override {
        keys_.upload();
        std::uint32_t *const keys = keys_.data();
        std::uint32_t *in = sorted_.data(), *out = spare_.data();
        const std::size_t n = n_, pieces = (n + kRun - 1) / kRun;
        forall(pieces, KERNEL(std::size_t piece) {
            const std::size_t start = piece * kRun, end = start + kRun < n ? start + kRun : n;
            for (std::size_t i = start; i < end; i++) {
                const std::uint32_t key = keys[i];
                std::size_t at = i;
                for (; at > start && in[at - 1] > key; at--) in[at] = in[at - 1];
                in[at] = key;
            }
        });
        in_spare_ = false;
        for (std::size_t width = kRun; width < n; width *= 2) {
            forall(pieces, KERNEL(std::size_t piece) {
                const std::size_t from = piece * kRun, to = from + kRun < n ? from + kRun : n;
                // Widths are powers of two, so a mask finds the start of the two runs.
                const std::size_t left = from & ~(2 * width - 1), right = left + width < n ? left + width : n;
                const std::size_t end = left + 2 * width < n ? left + 2 * width : n;
                if (right == end || in[right - 1] <= in[right]) {  // in order already
                    for (std::size_t i = from; i < to; i++) out[i] = in[i];
                    return;
                }
                const std::uint32_t *a = in + left, *b = in + right;
                const std::size_t diagonal = from - left, of_a = right - left, of_b = end - right;
                std::size_t low = diagonal > of_b ? diagonal - of_b : 0, high = diagonal < of_a ? diagonal : of_a;
                while (low < high) {
                    const std::size_t middle = (low + high) / 2;
                    if (a[middle] <= b[diagonal - 1 - middle]) low = middle + 1;
                    else high = middle;
                }
                std::size_t i = low, j = diagonal - low;
                for (std::size_t at = from; at < to; at++) {
                    if (j >= of_b || (i < of_a && a[i] <= b[j])) out[at] = a[i++];
                    else out[at] = b[j++];
                }
            });
            std::swap(in, out);
            in_spare_ = !in_spare_;
        }
        (in_spare_ ? spare_ : sorted_).download();
    }
    double checksum() const override {
        const Buffer<std::uint32_t> &keys = in_spare_ ? spare_ : sorted_;
        double sum = 0;
        for (std::size_t i = 0; i < n_; i++) sum += double(i % 1009 + 1) * keys[i];
        return sum;
    }

  private:
    std::size_t n_;
    bool in_spare_ = false;
    Buffer<std::uint32_t> keys_, sorted_, spare_;
};

const Register registered("merge_sort", "merge sort from the bottom up, by merge path", plain<MergeSort>);
}  // namespace

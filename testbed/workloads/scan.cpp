// Inclusive prefix sum: the sums of chunks of `chunk` elements, level upon level, and then back down. Small chunks give
// more calls in parallel, large ones fewer launches.
#include "../testbed.hpp"

namespace {
using namespace testbed;

template <class T>
class Scan : public Workload {
  public:
    explicit Scan(const Input &input)
        : n_(input.number("size", 1000)), chunk_(input.number("chunk", 64, 2)), in_(n_), out_(n_) {
        for (std::size_t i = 0; i < n_; i++) in_[i] = T(random_unit(i, 1));
        for (std::size_t n = n_; n > chunk_;) {
            n = (n + chunk_ - 1) / chunk_;
            sums_.push_back(std::make_unique<Buffer<T>>(n));
        }
    }
    void pass() override {
        in_.upload();
        const std::size_t chunk = chunk_;
        for (std::size_t level = 0; level < sums_.size(); level++) {
            const T *from = level ? sums_[level - 1]->data() : in_.data();
            const std::size_t n = level ? sums_[level - 1]->size() : n_;
            T *to = sums_[level]->data();
            forall(sums_[level]->size(), KERNEL(std::size_t c) {
                const std::size_t end = (c + 1) * chunk < n ? (c + 1) * chunk : n;
                T sum = 0;
                for (std::size_t i = c * chunk; i < end; i++) sum += from[i];
                to[c] = sum;
            });
        }
        // On the way down a level turns into what lies before each of its elements.
        for (std::size_t level = sums_.size(); level > 0; level--) {
            T *sums = sums_[level - 1]->data();
            const bool top = level == sums_.size();
            const T *before = top ? nullptr : sums_[level]->data();
            const std::size_t n = sums_[level - 1]->size();
            forall((n + chunk - 1) / chunk, KERNEL(std::size_t c) {
                const std::size_t end = (c + 1) * chunk < n ? (c + 1) * chunk : n;
                T sum = top ? T(0) : before[c];
                for (std::size_t i = c * chunk; i < end; i++) {
                    const T here = sums[i];
                    sums[i] = sum;
                    sum += here;
                }
            });
        }
        const T *in = in_.data(), *before = sums_.empty() ? nullptr : sums_[0]->data();
        T *out = out_.data();
        const std::size_t n = n_;
        forall((n + chunk - 1) / chunk, KERNEL(std::size_t c) {
            const std::size_t end = (c + 1) * chunk < n ? (c + 1) * chunk : n;
            T sum = before ? before[c] : T(0);
            for (std::size_t i = c * chunk; i < end; i++) out[i] = sum += in[i];
        });
        out_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < n_; i++) sum += double(i % 7 + 1) * out_[i];
        return sum / double(n_);
    }

  private:
    std::size_t n_, chunk_;
    Buffer<T> in_, out_;
    std::vector<std::unique_ptr<Buffer<T>>> sums_;
};

const Register registered("scan", "prefix sum by chunks", by_precision<Scan>);
}  // namespace

// A square image of side `size` convolved with a kernel of (2 radius + 1)^2 weights; the image has a border of that width.
#include "../testbed.hpp"

namespace {
using namespace testbed;

constexpr int kStrip = 8;  // pixels of a row in one call: vectors on a CPU, registers on a GPU

template <class T>
class Convolution2d : public Workload {
  public:
    explicit Convolution2d(const Input &input)
        : n_(input.number("size", 64)), radius_(input.number("radius", 2)), wide_(n_ + 2 * radius_), image_(wide_ * wide_),
          weights_((2 * radius_ + 1) * (2 * radius_ + 1)), out_(n_ * n_) {
        if (n_ % kStrip) throw std::invalid_argument("size: expected a multiple of 8");
        for (std::size_t i = 0; i < image_.size(); i++) image_[i] = T(random_unit(i, 1));
        for (std::size_t i = 0; i < weights_.size(); i++) weights_[i] = T(random_unit(i, 2));
    }
    void pass() override {
        image_.upload();
        weights_.upload();
        const T *image = image_.data(), *weights = weights_.data();
        T *out = out_.data();
        const std::uint32_t n = std::uint32_t(n_), wide = std::uint32_t(wide_), strips = n / kStrip;
        const int side = int(2 * radius_ + 1);
        forall(n_ * strips, KERNEL(std::size_t i) {
            const std::uint32_t y = std::uint32_t(i) / strips, x = std::uint32_t(i) % strips * kStrip;
            T sum[kStrip] = {};
            for (int dy = 0; dy < side; dy++) {
                const T *row = image + (y + dy) * wide + x;
                for (int dx = 0; dx < side; dx++) {
                    const T weight = weights[dy * side + dx];
#pragma omp simd
                    for (int k = 0; k < kStrip; k++) sum[k] += weight * row[dx + k];
                }
            }
            for (int k = 0; k < kStrip; k++) out[y * n + x + k] = sum[k];
        });
        out_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < out_.size(); i++) sum += double(i % 7 + 1) * out_[i];
        return sum / double(out_.size());
    }

  private:
    std::size_t n_, radius_, wide_;
    Buffer<T> image_, weights_, out_;
};

const Register registered("convolution2d", "an image convolved with a small kernel", by_precision<Convolution2d>);
}  // namespace

// A multi-layer perceptron applied to `batch` inputs: `layers` square layers of `width` neurons, each max(0, W x + b).
#include "../testbed.hpp"

namespace {
using namespace testbed;

constexpr std::uint32_t kStrip = 8;  // neurons in one call: vectors on a CPU, registers on a GPU

template <class T>
class Mlp : public Workload {
  public:
    explicit Mlp(const Input &input)
        : batch_(input.number("batch", 16)), width_(input.number("width", 64)), layers_(input.number("layers", 3)),
          weights_(layers_ * width_ * width_), bias_(layers_ * width_), in_(batch_ * width_), hidden_(in_.size()),
          spare_(in_.size()) {
        if (width_ % kStrip) throw std::invalid_argument("width: expected a multiple of 8");
        // Keeps the size of what goes through the layers (He initialisation).
        const double scale = std::sqrt(6.0 / double(width_));
        for (std::size_t i = 0; i < weights_.size(); i++) weights_[i] = T(scale * (2 * random_unit(i, 1) - 1));
        for (std::size_t i = 0; i < bias_.size(); i++) bias_[i] = T(0.1 * random_unit(i, 2));
        for (std::size_t i = 0; i < in_.size(); i++) in_[i] = T(random_unit(i, 3));
    }
    void pass() override {
        weights_.upload();
        bias_.upload();
        in_.upload();
        const std::uint32_t width = std::uint32_t(width_), strips = width / kStrip;
        T *next = hidden_.data(), *other = spare_.data();
        const T *from = in_.data();
        for (std::size_t layer = 0; layer < layers_; layer++) {
            const T *weights = weights_.data() + layer * width_ * width_, *bias = bias_.data() + layer * width_;
            const T *x = from;
            T *y = next;
            forall(batch_ * strips, KERNEL(std::size_t i) {
                const std::uint32_t row = std::uint32_t(i) / strips, column = std::uint32_t(i) % strips * kStrip;
                const T *mine = x + std::size_t(row) * width;
                T sum[kStrip];
                for (std::uint32_t k = 0; k < kStrip; k++) sum[k] = bias[column + k];
                for (std::uint32_t j = 0; j < width; j++) {
                    const T value = mine[j];
                    const T *weight = weights + j * width + column;
#pragma omp simd
                    for (std::uint32_t k = 0; k < kStrip; k++) sum[k] += value * weight[k];
                }
                for (std::uint32_t k = 0; k < kStrip; k++)
                    y[std::size_t(row) * width + column + k] = sum[k] > 0 ? sum[k] : T(0);
            });
            from = next;
            std::swap(next, other);
        }
        (layers_ % 2 ? hidden_ : spare_).download();
    }
    double checksum() const override {
        const Buffer<T> &out = layers_ % 2 ? hidden_ : spare_;
        double sum = 0;
        for (std::size_t i = 0; i < out.size(); i++) sum += double(i % 7 + 1) * out[i];
        return sum / double(out.size());
    }

  private:
    std::size_t batch_, width_, layers_;
    Buffer<T> weights_, bias_, in_, hidden_, spare_;
};

const Register registered("mlp", "inference of a multi-layer perceptron", by_precision<Mlp>);
}  // namespace

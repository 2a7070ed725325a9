// One sweep of a 3D star that reaches `radius` cells along each axis, as in seismic codes: 6 radius + 1 reads for a cell of
// a cube of `size` cells an edge. A wide star reads ever more planes, and does ever more work for each byte moved.
#include "../testbed.hpp"

namespace {
using namespace testbed;

class StencilHighorder : public Workload {
  public:
    explicit StencilHighorder(const Input &input)
        : n_(input.number("size", 16)), radius_(input.number("radius", 4)), weights_(radius_ + 1),
          in_((n_ + 2 * radius_) * (n_ + 2 * radius_) * (n_ + 2 * radius_)), out_(n_ * n_ * n_) {
        for (std::size_t d = 0; d <= radius_; d++) weights_[d] = 1.0 / double((d + 1) * (d + 1));
        for (std::size_t i = 0; i < in_.size(); i++) in_[i] = random_unit(i, 1);
    }
    void pass() override {
        weights_.upload();
        in_.upload();
        const auto n = std::uint32_t(n_), radius = std::uint32_t(radius_), pitch = n + 2 * radius, plane = pitch * pitch;
        const double *weights = weights_.data(), *in = in_.data();
        double *out = out_.data();
        forall(n_ * n_ * n_, KERNEL(std::size_t i) {
            const std::uint32_t line = std::uint32_t(i) / n, x = std::uint32_t(i) - line * n;
            const std::uint32_t z = line / n, y = line - z * n;
            const double *at = in + (z + radius) * plane + (y + radius) * pitch + x + radius;
            double sum = weights[0] * at[0];
            for (int d = 1; d <= int(radius); d++) {
                const int row = d * int(pitch), layer = d * int(plane);
                sum += weights[d] * (at[-d] + at[d] + at[-row] + at[row] + at[-layer] + at[layer]);
            }
            out[i] = sum;
        });
        out_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < out_.size(); i++) sum += out_[i] * double(i % 7 + 1);
        return sum / double(out_.size());
    }

  private:
    std::size_t n_, radius_;
    Buffer<double> weights_, in_, out_;
};

const Register registered("stencil_highorder", "a wide 3D star stencil", plain<StencilHighorder>);
}  // namespace

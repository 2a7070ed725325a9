// The action of a finite-element mass matrix on quadrilaterals of `order` 1, 2, 4 or 6, never assembled: each element
// gathers its nodes, interpolates to quadrature points one axis at a time, weighs them and goes back; then nodes add up
// their elements. The mesh has `size` + 1 nodes along each side whatever the order is.
#include "../testbed.hpp"

namespace {
using namespace testbed;

template <int P>
struct Basis {
    static constexpr int kNodes = P + 1, kPoints = P + 2;
    double at[kPoints][kNodes], weight[kPoints];  // Lagrange polynomials on even nodes of [0, 1], Gauss points

    Basis() {
        for (int q = 0; q < kPoints; q++) {
            // Newton's method for the zeros of the Legendre polynomial.
            double z = std::cos(std::acos(-1.0) * (q + 0.75) / (kPoints + 0.5)), slope = 1;
            for (int turn = 0; turn < 20; turn++) {
                double last = 1, now = z;
                for (int k = 2; k <= kPoints; k++) {
                    const double next = ((2 * k - 1) * z * now - (k - 1) * last) / k;
                    last = now;
                    now = next;
                }
                slope = kPoints * (z * now - last) / (z * z - 1);
                z -= now / slope;
            }
            weight[q] = 1 / ((1 - z * z) * slope * slope);
            for (int n = 0; n < kNodes; n++) {
                at[q][n] = 1;
                for (int m = 0; m < kNodes; m++)
                    if (m != n) at[q][n] *= ((z + 1) / 2 * P - m) / (n - m);
            }
        }
    }
};

template <int P>
class FemMass : public Workload {
  public:
    static constexpr int N = P + 1, Q = P + 2;
    explicit FemMass(const Input &input)
        : size_(input.number("size", 60)), side_(size_ / P), in_((size_ + 1) * (size_ + 1)), out_(in_.size()),
          weight_(side_ * side_ * Q * Q), part_(side_ * side_ * N * N) {
        if (size_ % P) throw std::invalid_argument("size: expected a multiple of the order");
        for (std::size_t i = 0; i < in_.size(); i++) in_[i] = 0.5 + random_unit(i, 1);
        for (std::size_t i = 0; i < weight_.size(); i++)  // as if every element had a shape of its own
            weight_[i] = basis_.weight[i / Q % Q] * basis_.weight[i % Q] * (0.5 + random_unit(i, 2));
    }
    void pass() override {
        in_.upload();
        weight_.upload();
        const std::size_t side = side_, row = size_ + 1;
        const Basis<P> basis = basis_;
        const double *in = in_.data(), *weights = weight_.data();
        double *out = out_.data(), *parts = part_.data();
        forall(side_ * side_, KERNEL(std::size_t e) {
            const double *nodes = in + (e / side) * P * row + (e % side) * P, *weight = weights + e * Q * Q;
            double *part = parts + e * N * N, half[N][Q], all[Q][Q];
            for (int j = 0; j < N; j++)
                for (int q = 0; q < Q; q++) {
                    double sum = 0;
                    for (int i = 0; i < N; i++) sum += basis.at[q][i] * nodes[j * row + i];
                    half[j][q] = sum;
                }
            for (int r = 0; r < Q; r++)
                for (int q = 0; q < Q; q++) {
                    double sum = 0;
                    for (int j = 0; j < N; j++) sum += basis.at[r][j] * half[j][q];
                    all[r][q] = sum * weight[r * Q + q];
                }
            for (int j = 0; j < N; j++)
                for (int q = 0; q < Q; q++) {
                    double sum = 0;
                    for (int r = 0; r < Q; r++) sum += basis.at[r][j] * all[r][q];
                    half[j][q] = sum;
                }
            for (int j = 0; j < N; j++)
                for (int i = 0; i < N; i++) {
                    double sum = 0;
                    for (int q = 0; q < Q; q++) sum += basis.at[q][i] * half[j][q];
                    part[j * N + i] = sum;
                }
        });
        forall(row * row, KERNEL(std::size_t node) {
            const int y = int(node / row), x = int(node % row), last = int(side) - 1;
            double sum = 0;
            // A node on the edge of elements belongs to the one before as well.
            for (int ey = (y % P ? y / P : y / P - 1); ey <= y / P; ey++)
                for (int ex = (x % P ? x / P : x / P - 1); ex <= x / P; ex++)
                    if (ey >= 0 && ex >= 0 && ey <= last && ex <= last)
                        sum += parts[((std::size_t(ey) * side + ex) * N + (y - ey * P)) * N + (x - ex * P)];
            out[node] = sum;
        });
        out_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < out_.size(); i++) sum += out_[i] * out_[i] * double(1 + i % 7);
        return sum / double(out_.size());
    }

  private:
    Basis<P> basis_;
    std::size_t size_, side_;
    Buffer<double> in_, out_, weight_, part_;
};

std::unique_ptr<Workload> by_order(const Input &input) {
    switch (input.number("order", 2)) {
        case 1: return std::make_unique<FemMass<1>>(input);
        case 2: return std::make_unique<FemMass<2>>(input);
        case 4: return std::make_unique<FemMass<4>>(input);
        case 6: return std::make_unique<FemMass<6>>(input);
        default: throw std::invalid_argument("order: expected 1, 2, 4 or 6");
    }
}

const Register registered("fem_mass", "finite-element mass action on quadrilaterals", by_order);
}  // namespace

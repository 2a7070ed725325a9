// Conjugate gradients for the 2D Poisson equation on `size` x `size` cells, matrix-free, a set number of iterations. Two
// sums an iteration go back to the host, which is what limits a GPU on a small grid.
#include "../testbed.hpp"

namespace {
using namespace testbed;

template <class T>
class ConjugateGradients : public Workload {
  public:
    explicit ConjugateGradients(const Input &input)
        : n_(input.number("size", 32)), iterations_(input.number("iterations", 5)), rhs_(n_ * n_), x_(n_ * n_), r_(n_ * n_),
          q_(n_ * n_), p_(n_ * n_) {
        for (std::size_t i = 0; i < n_ * n_; i++) rhs_[i] = T(random_unit(i, 1));
    }
    void pass() override {
        rhs_.upload();
        const std::size_t cells = n_ * n_;
        const auto n = std::uint32_t(n_);
        T *rhs = rhs_.data(), *x = x_.data(), *r = r_.data(), *q = q_.data(), *p = p_.data();
        double square = reduce<double>(cells, KERNEL(std::size_t i)->double {
            x[i] = 0;
            r[i] = p[i] = rhs[i];
            return double(rhs[i]) * double(rhs[i]);
        });
        for (std::size_t iteration = 0; iteration < iterations_ && square > 0; iteration++) {
            const double curvature = reduce<double>(cells, KERNEL(std::size_t i)->double {
                const std::uint32_t row = std::uint32_t(i) / n, column = std::uint32_t(i) - row * n;
                T applied = 4 * p[i];
                if (column > 0) applied -= p[i - 1];
                if (column < n - 1) applied -= p[i + 1];
                if (row > 0) applied -= p[i - n];
                if (row < n - 1) applied -= p[i + n];
                q[i] = applied;
                return double(p[i]) * double(applied);
            });
            const T alpha = T(square / curvature);
            const double next = reduce<double>(cells, KERNEL(std::size_t i)->double {
                x[i] += alpha * p[i];
                const T rest = r[i] - alpha * q[i];
                r[i] = rest;
                return double(rest) * double(rest);
            });
            const T beta = T(next / square);
            forall(cells, KERNEL(std::size_t i) { p[i] = r[i] + beta * p[i]; });
            square = next;
        }
        x_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < x_.size(); i++) sum += double(x_[i]) * double(i % 7 + 1);
        return sum / double(x_.size());
    }

  private:
    std::size_t n_, iterations_;
    Buffer<T> rhs_, x_, r_, q_, p_;
};

const Register registered("cg", "conjugate gradients for a 2D Poisson equation", by_precision<ConjugateGradients>);
}  // namespace

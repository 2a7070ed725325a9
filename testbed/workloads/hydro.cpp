// A shock tube of `size` zones for `steps` steps: Lagrangian hydrodynamics on a staggered mesh with artificial viscosity.
// Each step asks for the largest rate in the mesh before it can move, as codes with a time step control do.
#include "../testbed.hpp"

namespace {
using namespace testbed;
using std::fabs;
using std::sqrt;

constexpr double kGamma = 1.4;

class Hydro : public Workload {
  public:
    explicit Hydro(const Input &input)
        : n_(input.number("size", 1000, 2)), steps_(input.number("steps", 4)), density0_(n_), energy0_(n_), mass_(n_),
          energy_(n_), pressure_(n_), rate_(n_), x_(n_ + 1), u_(n_ + 1) {
        for (std::size_t i = 0; i < n_; i++) {
            const bool left = i < n_ / 2;
            density0_[i] = (left ? 1.0 : 0.125) * (1 + 0.1 * random_unit(i, 1));
            energy0_[i] = (left ? 2.5 : 2.0) * (1 + 0.1 * random_unit(i, 2));
        }
    }
    void pass() override {
        density0_.upload();
        energy0_.upload();
        const std::size_t n = n_;
        const double width = 1.0 / double(n_);
        const double *density0 = density0_.data(), *energy0 = energy0_.data();
        double *mass = mass_.data(), *energy = energy_.data(), *pressure = pressure_.data(), *rate = rate_.data();
        double *x = x_.data(), *u = u_.data();
        forall(n_ + 1, KERNEL(std::size_t i) {
            x[i] = width * double(i);
            u[i] = 0;
            if (i == n) return;
            mass[i] = density0[i] * width;
            energy[i] = energy0[i];
        });
        for (std::size_t step = 0; step < steps_; step++) {
            forall(n_, KERNEL(std::size_t i) {
                const double volume = x[i + 1] - x[i], jump = u[i + 1] - u[i], density = mass[i] / volume;
                const double sound = sqrt(kGamma * (kGamma - 1) * energy[i]);
                const double viscosity = jump < 0 ? density * jump * (1.5 * jump - 0.5 * sound) : 0;
                pressure[i] = (kGamma - 1) * density * energy[i] + viscosity;
                rate[i] = (sound + 4 * fabs(jump)) / volume;
            });
            const double dt = 0.3 / reduce<double>(n_, KERNEL(std::size_t i) { return rate[i]; }, 0.0, Max());
            // The first and the last node are walls.
            forall(n_ - 1, KERNEL(std::size_t i) {
                const double speed = u[i + 1] + dt * (pressure[i] - pressure[i + 1]) / (0.5 * (mass[i] + mass[i + 1]));
                u[i + 1] = speed;
                x[i + 1] += dt * speed;
            });
            forall(n_, KERNEL(std::size_t i) { energy[i] -= dt * pressure[i] * (u[i + 1] - u[i]) / mass[i]; });
        }
        energy_.download();
        x_.download();
        u_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < n_; i++)
            sum += (energy_[i] + x_[i + 1] + 10 * u_[i] * u_[i]) * double(1 + i % 7);
        return sum / double(n_);
    }

  private:
    std::size_t n_, steps_;
    Buffer<double> density0_, energy0_, mass_, energy_, pressure_, rate_, x_, u_;
};

const Register registered("hydro", "Lagrangian hydrodynamics in one dimension", plain<Hydro>);
}  // namespace

// Lattice Boltzmann (D2Q9, one relaxation time) on a periodic grid of `size` x `size` cells for `steps` steps: nine streams
// in, nine streams out, some arithmetic between.
#include "../testbed.hpp"

namespace {
using namespace testbed;

// Directions are numbered (dy + 1) * 3 + dx + 1, and known to the compiler: most products are with -1, 0 or 1.
template <int K, class T>
BOTH inline T equilibrium(T density, T ux, T uy) {
    constexpr int dx = K % 3 - 1, dy = K / 3 - 1, length = dx * dx + dy * dy;
    constexpr T weight = length == 0 ? T(4.0 / 9) : length == 1 ? T(1.0 / 9) : T(1.0 / 36);
    const T along = 3 * (dx == 0 ? T(0) : dx * ux) + 3 * (dy == 0 ? T(0) : dy * uy);
    return weight * density * (1 + along + T(0.5) * along * along - T(1.5) * (ux * ux + uy * uy));
}
template <class T, int... K>
BOTH inline void start(T *f, std::uint32_t cells, T density, T ux, T uy, std::integer_sequence<int, K...>) {
    ((f[K * cells] = equilibrium<K>(density, ux, uy)), ...);
}
template <class T, int... K>
BOTH inline void relax(T *f, std::uint32_t cells, const T *before, T density, T ux, T uy,
                       std::integer_sequence<int, K...>) {
    ((f[K * cells] = before[K] + T(1.2) * (equilibrium<K>(density, ux, uy) - before[K])), ...);
}
using Directions = std::make_integer_sequence<int, 9>;

template <class T>
struct Flow {
    T mass, ux, uy;
};
template <class T>
BOTH inline Flow<T> flow_of(const T *f) {
    const T south = f[0] + f[1] + f[2], north = f[6] + f[7] + f[8];
    const T mass = south + f[3] + f[4] + f[5] + north;
    return {mass, (f[2] + f[5] + f[8] - f[0] - f[3] - f[6]) / mass, (north - south) / mass};
}

template <class T>
class LatticeBoltzmann : public Workload {
  public:
    explicit LatticeBoltzmann(const Input &input)
        : n_(input.number("size", 64)), steps_(input.number("steps", 4)), density_(n_ * n_), ux_(n_ * n_), uy_(n_ * n_),
          flow_(n_ * n_), a_(9 * n_ * n_), b_(9 * n_ * n_) {
        for (std::size_t i = 0; i < n_ * n_; i++) {
            density_[i] = T(1 + 0.1 * random_unit(i, 1));
            ux_[i] = T(0.1 * (random_unit(i, 2) - 0.5));
            uy_[i] = T(0.1 * (random_unit(i, 3) - 0.5));
        }
    }
    void pass() override {
        density_.upload();
        ux_.upload();
        uy_.upload();
        const std::uint32_t n = std::uint32_t(n_), cells = n * n;
        const T *density = density_.data(), *ux = ux_.data(), *uy = uy_.data();
        T *from = a_.data(), *to = b_.data();
        Flow<T> *flow = flow_.data();
        forall(cells, KERNEL(std::size_t i) { start(from + i, cells, density[i], ux[i], uy[i], Directions()); });
        for (std::size_t step = 0; step < steps_; step++) {
            forall(cells, KERNEL(std::size_t cell) {
                const std::uint32_t i = std::uint32_t(cell), row = i / n, column = i - row * n;
                const std::uint32_t north = (row + 1 == n ? 0 : row + 1) * n, south = (row == 0 ? n - 1 : row - 1) * n;
                const std::uint32_t east = column + 1 == n ? 0 : column + 1, west = column == 0 ? n - 1 : column - 1;
                const std::uint32_t here = row * n;
                // What moves to the north east comes from the south west.
                const T f[9] = {from[north + east],
                                from[cells + north + column],
                                from[2 * cells + north + west],
                                from[3 * cells + here + east],
                                from[4 * cells + i],
                                from[5 * cells + here + west],
                                from[6 * cells + south + east],
                                from[7 * cells + south + column],
                                from[8 * cells + south + west]};
                const Flow<T> now = flow_of(f);
                relax(to + i, cells, f, now.mass, now.ux, now.uy, Directions());
            });
            std::swap(from, to);
        }
        forall(cells, KERNEL(std::size_t i) {
            T f[9];
            for (int k = 0; k < 9; k++) f[k] = from[k * cells + i];
            flow[i] = flow_of(f);
        });
        flow_.download();
    }
    double checksum() const override {
        double sum = 0;
        const std::size_t cells = n_ * n_;
        for (std::size_t i = 0; i < cells; i++) {
            const double mass = flow_[i].mass, ux = flow_[i].ux, uy = flow_[i].uy;
            sum += (mass - 1 + 100 * ux * ux + 200 * uy * uy) * double(1 + i % 7);
        }
        return sum / double(cells);
    }

  private:
    std::size_t n_, steps_;
    Buffer<T> density_, ux_, uy_;
    Buffer<Flow<T>> flow_;
    Buffer<T> a_, b_;
};

const Register registered("lattice_boltzmann", "D2Q9 lattice Boltzmann", by_precision<LatticeBoltzmann>);
}  // namespace

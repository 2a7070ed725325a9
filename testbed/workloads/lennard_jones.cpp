// Lennard-Jones forces between `size` particles in a periodic box, found by a list of cells that is built in each pass. The
// cut-off grows with `per_cell`, the particles in a cell, and with it the work for each particle.
#include "../testbed.hpp"

#include <algorithm>

namespace {
using namespace testbed;

struct Vector {
    double x, y, z;
};
struct Force {
    double x, y, z, energy;
};

constexpr double kSpacing = 1.12;  // near the distance of least energy, so that forces stay of one size

// The cell along one axis; rounding may put a particle at the edge of the box one cell too far.
BOTH inline int cell_of(double x, double cells_per_length, int cells) {
    const int cell = int(x * cells_per_length);
    return cell < cells ? cell : cells - 1;
}

class LennardJones : public Workload {
  public:
    explicit LennardJones(const Input &input)
        : n_(input.number("size", 1000, 27)), per_cell_(input.number("per_cell", 2)),
          side_(std::size_t(std::ceil(std::cbrt(double(n_)) - 1e-9))), length_(kSpacing * double(side_)),
          cutoff_(std::min(kSpacing * std::cbrt(double(per_cell_)), length_ / 3)), cells_(int(length_ / cutoff_ + 1e-9)),
          room_(most_in_a_cell() + 1), at_(n_), count_(all_cells()), slots_(all_cells() * room_), force_(n_) {
        for (std::size_t i = 0; i < n_; i++) at_[i] = place(i);
    }
    void pass() override {
        at_.upload();
        const int cells = cells_;
        const std::uint32_t room = std::uint32_t(room_);
        const double scale = cells_ / length_, reach = cutoff_ * cutoff_;
        const double box_per_cell = length_ / cells_;  // a neighbour beyond the edge is `cells` cells away: the whole box
        const Vector *at = at_.data();
        std::uint32_t *count = count_.data();
        Vector *slots = slots_.data();
        Force *force = force_.data();
        forall(all_cells(), KERNEL(std::size_t c) { count[c] = 0; });
        forall(n_, KERNEL(std::size_t i) {
            const Vector me = at[i];
            const int cell = (cell_of(me.z, scale, cells) * cells + cell_of(me.y, scale, cells)) * cells +
                             cell_of(me.x, scale, cells);
            slots[std::size_t(cell) * room + atomic_add(count + cell, std::uint32_t(1))] = me;
        });
        forall(n_, KERNEL(std::size_t i) {
            const Vector me = at[i];
            const int cx = cell_of(me.x, scale, cells), cy = cell_of(me.y, scale, cells), cz = cell_of(me.z, scale, cells);
            Force sum{0, 0, 0, 0};
            for (int k = cz - 1; k <= cz + 1; k++) {
                const int ck = k < 0 ? cells - 1 : k == cells ? 0 : k;
                const double z = me.z + (ck - k) * box_per_cell;
                for (int j = cy - 1; j <= cy + 1; j++) {
                    const int cj = j < 0 ? cells - 1 : j == cells ? 0 : j;
                    const double y = me.y + (cj - j) * box_per_cell;
                    for (int l = cx - 1; l <= cx + 1; l++) {
                        const int cl = l < 0 ? cells - 1 : l == cells ? 0 : l;
                        const double x = me.x + (cl - l) * box_per_cell;
                        const int cell = (ck * cells + cj) * cells + cl;
                        const Vector *others = slots + std::size_t(cell) * room;
                        const std::uint32_t many = count[cell];
                        for (std::uint32_t s = 0; s < many; s++) {
                            const double dx = x - others[s].x, dy = y - others[s].y, dz = z - others[s].z;
                            const double r2 = dx * dx + dy * dy + dz * dz;
                            if (r2 >= reach || r2 == 0) continue;
                            const double near = 1 / r2, near6 = near * near * near, push = near6 * (near6 - 0.5) * near;
                            sum.x += push * dx;
                            sum.y += push * dy;
                            sum.z += push * dz;
                            sum.energy += near6 * (near6 - 1);
                        }
                    }
                }
            }
            force[i] = sum;
        });
        force_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < n_; i++) {
            const Force &f = force_[i];
            sum += (f.x * f.x + 2 * f.y * f.y + 3 * f.z * f.z + f.energy * f.energy) * double(1 + i % 7);
        }
        return sum / double(n_);
    }

  private:
    std::size_t all_cells() const { return std::size_t(cells_) * cells_ * cells_; }
    // A place near the i-th point of a cubic lattice.
    Vector place(std::size_t i) const {
        const auto along = [&](std::size_t k, std::uint64_t seed) {
            return kSpacing * (double(k) + 0.4 + 0.2 * random_unit(i, seed));
        };
        return {along(i % side_, 1), along(i / side_ % side_, 2), along(i / side_ / side_, 3)};
    }
    std::size_t most_in_a_cell() const {
        std::vector<std::size_t> count(all_cells());
        const double scale = cells_ / length_;
        for (std::size_t i = 0; i < n_; i++) {
            const Vector p = place(i);
            count[std::size_t((cell_of(p.z, scale, cells_) * cells_ + cell_of(p.y, scale, cells_)) * cells_ +
                              cell_of(p.x, scale, cells_))]++;
        }
        return *std::max_element(count.begin(), count.end());
    }

    std::size_t n_, per_cell_, side_;
    double length_, cutoff_;
    int cells_;
    std::size_t room_;
    Buffer<Vector> at_;
    Buffer<std::uint32_t> count_;
    Buffer<Vector> slots_;
    Buffer<Force> force_;
};

const Register registered("lennard_jones", "short-range forces by cell lists", plain<LennardJones>);
}  // namespace

// V-cycles of geometric multigrid for the 2D Poisson equation: `levels` grids, each with half the cells an edge of the one
// before. The coarse grids are small, so a GPU spends its time on launches there.
#include "../testbed.hpp"

namespace {
using namespace testbed;

// Where the i-th of n x n cells lies in an array with one cell more on each side.
BOTH inline std::uint32_t place(std::size_t i, std::uint32_t n) {
    return std::uint32_t(i) + std::uint32_t(i) / n * 2 + n + 3;
}

struct Level {
    explicit Level(std::size_t cells) : n(std::uint32_t(cells)), u((n + 2) * (n + 2)), v(u.size()), f(u.size()) {
        u.upload();  // the zeros around the grid, which no kernel writes
        v.upload();
        f.upload();
    }
    std::uint32_t n;
    Buffer<double> u, v, f;  // solution, work space, right-hand side; f takes in the square of the cells' width
};

class Multigrid : public Workload {
  public:
    explicit Multigrid(const Input &input) : cycles_(input.number("cycles", 1)) {
        const std::size_t n = input.number("size", 31), levels = input.number("levels", 3);
        if ((n + 1) % (std::size_t(1) << (levels - 1)) || (n + 1) >> levels == 0)
            throw std::invalid_argument("levels: size + 1 can be halved fewer times; try size=31");
        for (std::size_t level = 0; level < levels; level++)
            levels_.push_back(std::make_unique<Level>(((n + 1) >> level) - 1));
        Level &top = *levels_[0];
        for (std::size_t i = 0; i < n * n; i++) top.f[place(i, top.n)] = random_unit(i, 1);
    }
    void pass() override {
        Level &top = *levels_[0];
        top.f.upload();
        clear(top);
        for (std::size_t cycle = 0; cycle < cycles_; cycle++) {
            for (std::size_t level = 0; level + 1 < levels_.size(); level++) {
                smooth(*levels_[level], 1);
                restrict_residual(*levels_[level], *levels_[level + 1]);
                clear(*levels_[level + 1]);
            }
            smooth(*levels_.back(), 2);
            for (std::size_t level = levels_.size() - 1; level-- > 0;) {
                correct(*levels_[level], *levels_[level + 1]);
                smooth(*levels_[level], 1);
            }
        }
        top.u.download();
    }
    // Damped Jacobi sweeps, by pairs: from u to v and back.
    void smooth(Level &level, int pairs) {
        const std::uint32_t n = level.n, pitch = n + 2;
        const double *f = level.f.data();
        double *from = level.u.data(), *to = level.v.data();
        for (int sweep = 0; sweep < 2 * pairs; sweep++, std::swap(from, to))
            forall(std::size_t(n) * n, KERNEL(std::size_t i) {
                const std::uint32_t at = place(i, n);
                const double around = from[at - 1] + from[at + 1] + from[at - pitch] + from[at + pitch];
                to[at] = 0.2 * from[at] + 0.2 * (f[at] + around);
            });
    }
    // The coarse right-hand side is the fine residual, weighted over nine cells, times four as the cells are twice as wide.
    void restrict_residual(Level &fine, Level &coarse) {
        const std::uint32_t n = fine.n, pitch = n + 2, coarse_n = coarse.n;
        const double *u = fine.u.data(), *f = fine.f.data();
        double *v = fine.v.data(), *coarse_f = coarse.f.data();
        forall(std::size_t(n) * n, KERNEL(std::size_t i) {
            const std::uint32_t at = place(i, n);
            v[at] = f[at] - (4 * u[at] - u[at - 1] - u[at + 1] - u[at - pitch] - u[at + pitch]);
        });
        forall(std::size_t(coarse_n) * coarse_n, KERNEL(std::size_t i) {
            const std::uint32_t row = std::uint32_t(i) / coarse_n + 1, column = std::uint32_t(i) % coarse_n + 1;
            const double *at = v + 2 * row * pitch + 2 * column, *above = at - pitch, *below = at + pitch;
            const double corners = above[-1] + above[1] + below[-1] + below[1];
            coarse_f[row * (coarse_n + 2) + column] =
                at[0] + 0.5 * (at[-1] + at[1] + above[0] + below[0]) + 0.25 * corners;
        });
    }
    // Adds the coarse solution to the fine one, interpolated: each cell lies amid one, two or four coarse cells.
    void correct(Level &fine, Level &coarse) {
        const std::uint32_t n = fine.n, pitch = n + 2, coarse_pitch = coarse.n + 2;
        const double *coarse_u = coarse.u.data();
        double *u = fine.u.data();
        forall(std::size_t(n) * n, KERNEL(std::size_t i) {
            const std::uint32_t row = std::uint32_t(i) / n + 1, column = std::uint32_t(i) % n + 1;
            const double *above = coarse_u + row / 2 * coarse_pitch, *below = coarse_u + (row + 1) / 2 * coarse_pitch;
            const std::uint32_t left = column / 2, right = (column + 1) / 2;
            u[row * pitch + column] += 0.25 * (above[left] + above[right] + below[left] + below[right]);
        });
    }
    void clear(Level &level) {
        double *u = level.u.data();
        forall(level.u.size(), KERNEL(std::size_t i) { u[i] = 0; });
    }
    double checksum() const override {
        const Buffer<double> &u = levels_[0]->u;
        double sum = 0;
        for (std::size_t i = 0; i < u.size(); i++) sum += u[i] * double(i % 7 + 1);
        return sum / double(u.size());
    }

  private:
    std::size_t cycles_;
    std::vector<std::unique_ptr<Level>> levels_;
};

const Register registered("multigrid", "multigrid V-cycles for a 2D Poisson equation", plain<Multigrid>);
}  // namespace

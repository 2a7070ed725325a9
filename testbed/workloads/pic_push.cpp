// Particle-in-cell push: `size` particles gather electric and magnetic fields from a periodic grid of `grid` x `grid` nodes
// and move for `steps` steps (Boris). Gathers at random places: in cache for a small grid, beyond it for a large one.
#include "../testbed.hpp"

namespace {
using namespace testbed;
using std::floor;

template <class T>
struct Field {
    T ex, ey, bz;
};
template <class T>
struct Particle {
    T x, y, vx, vy;
};

template <class T>
class PicPush : public Workload {
  public:
    explicit PicPush(const Input &input)
        : n_(input.number("size", 10000)), grid_(input.number("grid", 64, 2)), steps_(input.number("steps", 1)),
          field_(grid_ * grid_), in_(n_), out_(n_) {
        if (grid_ & (grid_ - 1)) throw std::invalid_argument("grid: expected a power of two");
        for (std::size_t i = 0; i < grid_ * grid_; i++)
            field_[i] = {T(random_unit(i, 1) - 0.5), T(random_unit(i, 2) - 0.5), T(random_unit(i, 3))};
        for (std::size_t i = 0; i < n_; i++)
            in_[i] = {T(random_unit(i, 4) * double(grid_)), T(random_unit(i, 5) * double(grid_)),
                      T(random_unit(i, 6) - 0.5), T(random_unit(i, 7) - 0.5)};
    }
    void pass() override {
        field_.upload();
        in_.upload();
        const std::uint32_t grid = std::uint32_t(grid_), mask = grid - 1;
        const T length = T(grid_), half = T(0.05), dt = T(0.1);
        const Field<T> *field = field_.data();
        Particle<T> *out = out_.data();
        for (std::size_t step = 0; step < steps_; step++) {
            const Particle<T> *from = step ? out : in_.data();
            forall(n_, KERNEL(std::size_t i) {
                Particle<T> p = from[i];
                const std::uint32_t ix = std::uint32_t(p.x), iy = std::uint32_t(p.y);
                const T fx = p.x - T(ix), fy = p.y - T(iy);
                const std::uint32_t west = ix & mask, east = (ix + 1) & mask;
                const std::uint32_t south = (iy & mask) * grid, north = ((iy + 1) & mask) * grid;
                const Field<T> sw = field[south + west], se = field[south + east];
                const Field<T> nw = field[north + west], ne = field[north + east];
                const T wsw = (1 - fx) * (1 - fy), wse = fx * (1 - fy), wnw = (1 - fx) * fy, wne = fx * fy;
                const T ex = wsw * sw.ex + wse * se.ex + wnw * nw.ex + wne * ne.ex;
                const T ey = wsw * sw.ey + wse * se.ey + wnw * nw.ey + wne * ne.ey;
                const T bz = wsw * sw.bz + wse * se.bz + wnw * nw.bz + wne * ne.bz;
                // Half the push, a turn about the magnetic field, the other half.
                const T t = half * bz, s = 2 * t / (1 + t * t);
                const T ux = p.vx + half * ex, uy = p.vy + half * ey;
                const T wx = ux + uy * t, wy = uy - ux * t;
                p.vx = ux + wy * s + half * ex;
                p.vy = uy - wx * s + half * ey;
                p.x += dt * p.vx;
                p.y += dt * p.vy;
                p.x -= length * floor(p.x / length);
                p.y -= length * floor(p.y / length);
                out[i] = p;
            });
        }
        out_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < n_; i++) {
            // A place next to the edge may land on either side of it: its distance from the middle is the same.
            const double x = std::fabs(double(out_[i].x) / double(grid_) - 0.5);
            const double y = std::fabs(double(out_[i].y) / double(grid_) - 0.5);
            sum += (x + 2 * y + double(out_[i].vx) * out_[i].vx + 2.0 * out_[i].vy * out_[i].vy) * double(1 + i % 7);
        }
        return sum / double(n_);
    }

  private:
    std::size_t n_, grid_, steps_;
    Buffer<Field<T>> field_;
    Buffer<Particle<T>> in_, out_;
};

const Register registered("pic_push", "particles gather fields and move", by_precision<PicPush>);
}  // namespace

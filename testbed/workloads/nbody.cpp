// Gravity between all pairs of `size` bodies for `steps` steps: arithmetic with square roots, and hardly any memory.
#include "../testbed.hpp"

namespace {
using namespace testbed;
using std::sqrt;

template <class T>
struct Body {
    T x, y, z, mass;
};

template <class T>
class Nbody : public Workload {
  public:
    explicit Nbody(const Input &input)
        : n_(input.number("size", 128)), steps_(input.number("steps", 1)), in_(n_), a_(n_), b_(n_), v_(n_) {
        for (std::size_t i = 0; i < n_; i++)
            in_[i] = {T(random_unit(i, 1)), T(random_unit(i, 2)), T(random_unit(i, 3)), T(0.5 + random_unit(i, 4))};
    }
    void pass() override {
        in_.upload();
        const std::uint32_t n = std::uint32_t(n_);
        const T dt = T(0.01 / double(n_));
        const Body<T> *from = in_.data();
        Body<T> *v = v_.data();
        for (std::size_t step = 0; step < steps_; step++) {
            // Positions go to and fro between two buffers: every body must see the others where the step began.
            Body<T> *to = step % 2 ? b_.data() : a_.data();
            const bool first = step == 0;
            forall(n_, KERNEL(std::size_t i) {
                const Body<T> me = from[i];
                T ax = 0, ay = 0, az = 0;
                for (std::uint32_t j = 0; j < n; j++) {
                    const Body<T> other = from[j];
                    const T dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
                    const T near = 1 / sqrt(dx * dx + dy * dy + dz * dz + T(0.01));
                    const T pull = other.mass * near * near * near;
                    ax += pull * dx;
                    ay += pull * dy;
                    az += pull * dz;
                }
                Body<T> speed{};
                if (!first) speed = v[i];
                speed = {speed.x + dt * ax, speed.y + dt * ay, speed.z + dt * az, 0};
                v[i] = speed;
                to[i] = {me.x + dt * speed.x, me.y + dt * speed.y, me.z + dt * speed.z, me.mass};
            });
            from = to;
        }
        v_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < n_; i++)
            sum += (double(v_[i].x) * v_[i].x + 2.0 * v_[i].y * v_[i].y + 3.0 * v_[i].z * v_[i].z) * double(1 + i % 7);
        return 1e6 * sum / double(n_);
    }

  private:
    std::size_t n_, steps_;
    Buffer<Body<T>> in_, a_, b_, v_;
};

const Register registered("nbody", "gravity between all pairs", by_precision<Nbody>);
}  // namespace

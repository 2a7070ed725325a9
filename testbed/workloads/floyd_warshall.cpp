// Shortest paths between all pairs of vertices, in `batch` graphs of `size` vertices at once; one launch for each vertex
// that paths may pass through. `density` is the share of edges that exist: where there is no way yet, work is skipped.
#include "../testbed.hpp"

namespace {
using namespace testbed;

constexpr std::uint32_t kStrip = 8;  // columns in one call: one vector register of a CPU
constexpr float kNoWay = 1e30f;

class FloydWarshall : public Workload {
  public:
    explicit FloydWarshall(const Input &input)
        : n_(input.number("size", 32)), batch_(input.number("batch", 1)), edges_(batch_ * n_ * n_),
          distance_(edges_.size()) {
        if (n_ % kStrip) throw std::invalid_argument("size: expected a multiple of 8");
        const double density = input.real("density", 0.5);
        for (std::size_t i = 0; i < edges_.size(); i++) {
            edges_[i] = random_unit(i, 2) < density ? float(random_unit(i, 1)) : kNoWay;
            if (i / n_ % n_ == i % n_) edges_[i] = 0;
        }
    }
    void pass() override {
        edges_.upload();
        const float *edges = edges_.data();
        float *distance = distance_.data();
        forall(edges_.size(), KERNEL(std::size_t i) { distance[i] = edges[i]; });
        const std::uint32_t n = std::uint32_t(n_), strips = n / kStrip;
        for (std::uint32_t via = 0; via < n; via++) {
            forall(edges_.size() / kStrip, KERNEL(std::size_t i) {
                const std::uint32_t line = std::uint32_t(i) / strips, column = std::uint32_t(i) % strips * kStrip;
                const float first = distance[std::size_t(line) * n + via];
                if (first >= kNoWay) return;
                // Row and column `via` do not change in this launch, so the order of the calls does not matter.
                const float *second = distance + std::size_t(line / n * n + via) * n + column;
                float *best = distance + std::size_t(line) * n + column;
#pragma omp simd
                for (std::uint32_t k = 0; k < kStrip; k++) {
                    const float through = first + second[k];
                    best[k] = through < best[k] ? through : best[k];
                }
            });
        }
        distance_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < distance_.size(); i++)
            if (distance_[i] < kNoWay) sum += double(i % 1009 + 1) * (distance_[i] + 1);
        return sum / double(distance_.size());
    }

  private:
    std::size_t n_, batch_;
    Buffer<float> edges_, distance_;
};

const Register registered("floyd_warshall", "shortest paths between all pairs, in many graphs", plain<FloydWarshall>);
}  // namespace

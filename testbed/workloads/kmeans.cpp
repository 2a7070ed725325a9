// k-means of points with whole coordinates, so that sums are exact in any order. Each point finds the nearest of `clusters`
// centres and adds itself to that one by atomic additions.
#include "../testbed.hpp"

namespace {
using namespace testbed;

class KMeans : public Workload {
  public:
    explicit KMeans(const Input &input)
        : n_(input.number("size", 500)), clusters_(input.number("clusters", 4)), dimensions_(input.number("dimensions", 2)),
          iterations_(input.number("iterations", 2)), points_(n_ * dimensions_), centres_(clusters_ * dimensions_),
          sums_(clusters_ * dimensions_), counts_(clusters_), nearest_(n_) {
        if (n_ < clusters_) throw std::invalid_argument("size: expected at least as many points as clusters");
        for (std::size_t i = 0; i < points_.size(); i++) points_[i] = std::int32_t(random_bits(i, 1) >> 54);
    }
    void pass() override {
        points_.upload();
        const std::int32_t *points = points_.data();
        std::int32_t *centres = centres_.data();
        std::uint32_t *sums = sums_.data(), *counts = counts_.data(), *nearest = nearest_.data();
        const int clusters = int(clusters_), dimensions = int(dimensions_);
        forall(centres_.size(), KERNEL(std::size_t i) {
            centres[i] = points[i];
            sums[i] = 0;
            counts[i / dimensions] = 0;
        });
        for (std::size_t iteration = 0; iteration < iterations_; iteration++) {
            forall(n_, KERNEL(std::size_t i) {
                const std::int32_t *point = points + i * dimensions;
                std::int32_t least = 0x7FFFFFFF;
                int best = 0;
                for (int c = 0; c < clusters; c++) {
                    const std::int32_t *centre = centres + c * dimensions;
                    std::int32_t distance = 0;
                    for (int k = 0; k < dimensions; k++) distance += (point[k] - centre[k]) * (point[k] - centre[k]);
                    if (distance < least) {
                        least = distance;
                        best = c;
                    }
                }
                nearest[i] = std::uint32_t(best);
                atomic_add(counts + best, std::uint32_t(1));
                for (int k = 0; k < dimensions; k++) atomic_add(sums + best * dimensions + k, std::uint32_t(point[k]));
            });
            forall(clusters_, KERNEL(std::size_t c) {
                for (int k = 0; k < dimensions; k++) {
                    if (counts[c]) centres[c * dimensions + k] = std::int32_t(sums[c * dimensions + k] / counts[c]);
                    sums[c * dimensions + k] = 0;
                }
                counts[c] = 0;
            });
        }
        nearest_.download();
        centres_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < n_; i++) sum += double(i % 1009 + 1) * (nearest_[i] + 1);
        for (std::size_t i = 0; i < centres_.size(); i++) sum += double(i + 1) * centres_[i];
        return sum;
    }

  private:
    std::size_t n_, clusters_, dimensions_, iterations_;
    Buffer<std::int32_t> points_, centres_;
    Buffer<std::uint32_t> sums_, counts_, nearest_;
};

const Register registered("kmeans", "clusters of points with whole coordinates", plain<KMeans>);
}  // namespace

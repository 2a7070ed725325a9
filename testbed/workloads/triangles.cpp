// Triangles of a graph: for each edge, how many vertices are in both of the sorted lists of neighbours. Edges go from a
// vertex to up to `degree` of the `window` vertices after it: a narrow window makes many triangles and stays in the caches.
#include "../testbed.hpp"

#include <algorithm>

namespace {
using namespace testbed;

class Triangles : public Workload {
  public:
    explicit Triangles(const Input &input)
        : Triangles(graph(input.number("size", 1000), input.number("degree", 8), input.number("window", 64))) {}
    struct Graph {
        std::vector<std::uint32_t> offsets{0}, sources, targets;
    };
    explicit Triangles(const Graph &graph)
        : offsets_(graph.offsets.size()), sources_(graph.sources.size()), targets_(graph.targets.size()) {
        std::copy(graph.offsets.begin(), graph.offsets.end(), offsets_.host());
        std::copy(graph.sources.begin(), graph.sources.end(), sources_.host());
        std::copy(graph.targets.begin(), graph.targets.end(), targets_.host());
    }
    static Graph graph(std::size_t n, std::size_t degree, std::size_t window) {
        Graph made;
        for (std::size_t v = 0; v < n; v++) {
            std::vector<std::uint32_t> after;
            for (std::size_t k = 0; k < degree; k++) {
                const std::size_t to = v + 1 + (random_bits(v * degree + k, 1) >> 16) % window;
                if (to < n) after.push_back(std::uint32_t(to));
            }
            std::sort(after.begin(), after.end());
            made.targets.insert(made.targets.end(), after.begin(), std::unique(after.begin(), after.end()));
            made.sources.resize(made.targets.size(), std::uint32_t(v));
            made.offsets.push_back(std::uint32_t(made.targets.size()));
        }
        return made;
    }
    void pass() override {
        offsets_.upload();
        sources_.upload();
        targets_.upload();
        const std::uint32_t *offsets = offsets_.data(), *sources = sources_.data(), *targets = targets_.data();
        sum_ = reduce<std::uint64_t>(sources_.size(), KERNEL(std::size_t edge) {
            const std::uint32_t from = sources[edge], to = targets[edge];
            const std::uint32_t end = offsets[from + 1], other_end = offsets[to + 1];
            std::uint32_t i = std::uint32_t(edge) + 1, j = offsets[to], common = 0;
            while (i < end && j < other_end) {
                const std::uint32_t a = targets[i], b = targets[j];
                common += a == b;
                i += a <= b;
                j += b <= a;
            }
            return std::uint64_t(common) * (from % 1009 + 1);
        });
    }
    double checksum() const override { return double(sum_); }

  private:
    Buffer<std::uint32_t> offsets_, sources_, targets_;
    std::uint64_t sum_ = 0;
};

const Register registered("triangles", "triangles of a graph, by intersecting sorted neighbours", plain<Triangles>);
}  // namespace

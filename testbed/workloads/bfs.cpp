// Breadth-first search from vertex 0, one launch for each level. `kind` is the graph: random (edges to anywhere), local
// (edges to vertices near by) or skewed (anywhere, but a few vertices have most of the edges).
#include "../testbed.hpp"

#include <algorithm>

namespace {
using namespace testbed;

constexpr std::uint32_t kUnseen = 0xFFFFFFFFu;

class Bfs : public Workload {
  public:
    struct Graph {
        std::vector<std::uint32_t> offsets{0}, targets;
    };
    explicit Bfs(const Input &input)
        : Bfs(graph(input.number("size", 1000), input.number("degree", 8, 2), input.text("kind", "random"))) {}
    explicit Bfs(const Graph &graph)
        : n_(graph.offsets.size() - 1), offsets_(n_ + 1), targets_(graph.targets.size()), level_(n_), frontier_(n_),
          next_(n_), count_(1) {
        std::copy(graph.offsets.begin(), graph.offsets.end(), offsets_.host());
        std::copy(graph.targets.begin(), graph.targets.end(), targets_.host());
    }
    static Graph graph(std::size_t n, std::size_t degree, const std::string &kind) {
        const bool local = kind == "local", skewed = kind == "skewed";
        if (!local && !skewed && kind != "random")
            throw std::invalid_argument("kind: found '" + kind + "', expected random, local or skewed");
        Graph made;
        const std::size_t near = std::max<std::size_t>(n / 16, 1);
        for (std::size_t v = 0; v < n; v++) {
            // Skewed: a power law with nearly the same mean, cut off at 64 times that.
            const double heavy = 0.5 * double(degree) / std::sqrt(1 - random_unit(v, 2));
            const std::size_t edges = skewed ? std::size_t(std::min(heavy, 64.0 * double(degree))) : degree;
            for (std::size_t k = 0; k < edges; k++) {
                const std::uint64_t bits = random_bits(made.targets.size(), 1) >> 16;
                made.targets.push_back(std::uint32_t(local ? (v + 1 + bits % near) % n : bits % n));
            }
            made.offsets.push_back(std::uint32_t(made.targets.size()));
        }
        return made;
    }
    void pass() override {
        offsets_.upload();
        targets_.upload();
        const std::uint32_t *offsets = offsets_.data(), *targets = targets_.data();
        std::uint32_t *level = level_.data(), *now = frontier_.data(), *next = next_.data(), *count = count_.data();
        forall(n_, KERNEL(std::size_t v) {
            level[v] = v == 0 ? 0 : kUnseen;
            if (v == 0) now[0] = 0;
        });
        std::size_t size = 1;
        for (std::uint32_t depth = 1; size > 0; depth++) {
            count_[0] = 0;
            count_.upload();
            forall(size, KERNEL(std::size_t i) {
                const std::uint32_t v = now[i];
                for (std::uint32_t e = offsets[v]; e < offsets[v + 1]; e++) {
                    const std::uint32_t to = targets[e];
                    if (level[to] == kUnseen && atomic_exchange_if(level + to, kUnseen, depth) == kUnseen)
                        next[atomic_add(count, std::uint32_t(1))] = to;
                }
            });
            count_.download();
            size = count_[0];
            std::swap(now, next);
        }
        level_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t v = 0; v < n_; v++)
            if (level_[v] != kUnseen) sum += double(v % 1009 + 1) * (level_[v] + 1);
        return sum;
    }

  private:
    std::size_t n_;
    Buffer<std::uint32_t> offsets_, targets_, level_, frontier_, next_, count_;
};

const Register registered("bfs", "breadth-first search, level by level", plain<Bfs>);
}  // namespace

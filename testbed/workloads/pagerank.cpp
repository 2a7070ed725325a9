// PageRank in its pull form: each vertex gathers the shares of the `degree` vertices that link to it, `iterations` times.
#include "../testbed.hpp"

namespace {
using namespace testbed;

class PageRank : public Workload {
  public:
    explicit PageRank(const Input &input)
        : n_(input.number("size", 1000)), degree_(input.number("degree", 8)), iterations_(input.number("iterations", 5)),
          sources_(n_ * degree_), links_(n_), rank_(n_), share_(n_) {
        for (std::size_t e = 0; e < sources_.size(); e++) {
            sources_[e] = std::uint32_t((random_bits(e, 1) >> 16) % n_);
            links_[sources_[e]]++;
        }
    }
    void pass() override {
        sources_.upload();
        links_.upload();
        const std::uint32_t *sources = sources_.data(), *links = links_.data();
        double *rank = rank_.data(), *share = share_.data();
        const std::size_t degree = degree_;
        const double damping = 0.85, even = 1.0 / double(n_);
        forall(n_, KERNEL(std::size_t v) { rank[v] = even; });
        for (std::size_t iteration = 0; iteration < iterations_; iteration++) {
            forall(n_, KERNEL(std::size_t v) { share[v] = links[v] ? rank[v] / links[v] : 0.0; });
            forall(n_, KERNEL(std::size_t v) {
                double sum = 0;
                for (std::size_t e = v * degree; e < (v + 1) * degree; e++) sum += share[sources[e]];
                rank[v] = (1 - damping) * even + damping * sum;
            });
        }
        rank_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t v = 0; v < n_; v++) sum += double(v % 7 + 1) * rank_[v];
        return sum;
    }

  private:
    std::size_t n_, degree_, iterations_;
    Buffer<std::uint32_t> sources_, links_;
    Buffer<double> rank_, share_;
};

const Register registered("pagerank", "ranks of vertices, gathered along links", plain<PageRank>);
}  // namespace

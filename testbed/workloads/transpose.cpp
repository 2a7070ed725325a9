// Transposes a square matrix `sweeps` times, in tiles of `tile` x `tile` elements, 1, 4 or 8; tile=1 is the naive walk.
#include "../testbed.hpp"

namespace {
using namespace testbed;

template <int Tile>
class Transpose : public Workload {
  public:
    Transpose(std::size_t n, std::size_t sweeps) : n_(n), sweeps_(sweeps), start_(n * n), a_(n * n), b_(n * n) {
        if (n % Tile) throw std::invalid_argument("size: expected a multiple of the tile, " + std::to_string(Tile));
        for (std::size_t i = 0; i < n * n; i++) start_[i] = random_unit(i, 1);
    }
    void pass() override {
        start_.upload();
        const std::size_t n = n_;
        const auto tiles = std::uint32_t(n_ / Tile);
        const double *from = start_.data();
        double *to = a_.data();
        for (std::size_t sweep = 0; sweep < sweeps_; sweep++) {
            forall(std::size_t(tiles) * tiles, KERNEL(std::size_t i) {
                const std::size_t row = std::uint32_t(i) / tiles * Tile, column = std::uint32_t(i) % tiles * Tile;
                const double *in = from + row * n + column;
                double *out = to + column * n + row;
                for (std::size_t r = 0; r < Tile; r++)
                    for (std::size_t c = 0; c < Tile; c++) out[c * n + r] = in[r * n + c];
            });
            from = to;
            to = to == a_.data() ? b_.data() : a_.data();
        }
        (sweeps_ % 2 ? a_ : b_).download();
    }
    double checksum() const override {
        const Buffer<double> &out = sweeps_ % 2 ? a_ : b_;
        double sum = 0;
        for (std::size_t i = 0; i < out.size(); i++) sum += out[i] * double(i % 101 + 1);
        return sum / double(out.size());
    }

  private:
    std::size_t n_, sweeps_;
    Buffer<double> start_, a_, b_;
};

std::unique_ptr<Workload> make(const Input &input) {
    const std::size_t n = input.number("size", 64), tile = input.number("tile", 1), sweeps = input.number("sweeps", 1);
    if (tile == 1) return std::make_unique<Transpose<1>>(n, sweeps);
    if (tile == 4) return std::make_unique<Transpose<4>>(n, sweeps);
    if (tile == 8) return std::make_unique<Transpose<8>>(n, sweeps);
    throw std::invalid_argument("tile: found " + std::to_string(tile) + ", expected 1, 4 or 8");
}

const Register registered("transpose", "transposes a matrix, naive or in tiles", make);
}  // namespace

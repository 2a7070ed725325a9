// Matrix product C = A B in blocks of `block` x `block` elements of C that stay in registers, 2, 4 or 8. A larger block
// reads less memory, and leaves a GPU fewer threads.
#include "../testbed.hpp"

namespace {
using namespace testbed;

template <int Block>
class DgemmBlocked : public Workload {
  public:
    explicit DgemmBlocked(std::size_t n) : n_(n), a_(n * n), b_(n * n), c_(n * n) {
        if (n % Block) throw std::invalid_argument("size: expected a multiple of the block, " + std::to_string(Block));
        for (std::size_t i = 0; i < n * n; i++) {
            a_[i] = random_unit(i, 1);
            b_[i] = random_unit(i, 2);
        }
    }
    void pass() override {
        a_.upload();
        b_.upload();
        const std::size_t n = n_, blocks = n / Block;
        double *a = a_.data(), *b = b_.data(), *c = c_.data();
        forall(blocks * blocks, KERNEL(std::size_t i) {
            const std::size_t row = i / blocks * Block, column = i % blocks * Block;
            const double *left = a + row * n, *up = b + column;
            double sum[Block][Block] = {};
            for (std::size_t k = 0; k < n; k++)
                for (int r = 0; r < Block; r++)
                    for (int s = 0; s < Block; s++) sum[r][s] += left[r * n + k] * up[k * n + s];
            for (int r = 0; r < Block; r++)
                for (int s = 0; s < Block; s++) c[(row + r) * n + column + s] = sum[r][s];
        });
        c_.download();
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < c_.size(); i++) sum += c_[i] * double(i % 7 + 1);
        return sum / double(c_.size());
    }

  private:
    std::size_t n_;
    Buffer<double> a_, b_, c_;
};

std::unique_ptr<Workload> make(const Input &input) {
    const std::size_t n = input.number("size", 64), block = input.number("block", 4);
    if (block == 2) return std::make_unique<DgemmBlocked<2>>(n);
    if (block == 4) return std::make_unique<DgemmBlocked<4>>(n);
    if (block == 8) return std::make_unique<DgemmBlocked<8>>(n);
    throw std::invalid_argument("block: found " + std::to_string(block) + ", expected 2, 4 or 8");
}

const Register registered("dgemm_blocked", "matrix product in blocks held in registers", make);
}  // namespace

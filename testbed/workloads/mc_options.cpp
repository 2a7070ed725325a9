// The price of an Asian option from `size` random paths of `steps` steps: random numbers, logarithms and exponentials, and
// nothing to move to or from a GPU but the answer.
#include "../testbed.hpp"

namespace {
using namespace testbed;
using std::cos;
using std::exp;
using std::log;
using std::sqrt;

template <class T>
class McOptions : public Workload {
  public:
    explicit McOptions(const Input &input)
        : n_(input.number("size", 1000)), steps_(input.number("steps", 4)), payoff_(n_) {}
    void pass() override {
        const std::uint32_t steps = std::uint32_t(steps_);
        const double rate = 0.03, volatility = 0.25, dt = 1.0 / double(steps_);
        const T drift = T((rate - 0.5 * volatility * volatility) * dt), spread = T(volatility * std::sqrt(dt));
        const T strike = 100, turn = T(2 * std::acos(-1.0));
        T *payoff = payoff_.data();
        forall(n_, KERNEL(std::size_t i) {
            T price = 100, sum = 0;
            for (std::uint32_t k = 0; k < steps; k++) {
                const T u = T(1 - random_unit(i * steps + k, 1)), v = T(random_unit(i * steps + k, 2));
                const T normal = sqrt(-2 * log(u)) * cos(turn * v);
                price *= exp(drift + spread * normal);
                sum += price;
            }
            const T gain = sum / T(steps) - strike;
            payoff[i] = gain > 0 ? gain : 0;
        });
        sum_ = reduce<double>(n_, KERNEL(std::size_t i) { return double(payoff[i]); });
        squares_ = reduce<double>(n_, KERNEL(std::size_t i) { return double(payoff[i]) * payoff[i]; });
    }
    double checksum() const override { return std::exp(-0.03) * sum_ / double(n_) + 1e-2 * squares_ / double(n_); }

  private:
    std::size_t n_, steps_;
    Buffer<T> payoff_;
    double sum_ = 0, squares_ = 0;
};

const Register registered("mc_options", "Asian options priced on random paths", by_precision<McOptions>);
}  // namespace

// The exchange of the faces of a block of `size`^3 cells, `width` cells deep: packed, swapped as with neighbours all round,
// and unpacked into the ghost cells. `exchange` is host (by way of the host's memory, as a message does) or device. The
// block itself stays where the code runs, as between the steps of a simulation: only faces move.
#include "../testbed.hpp"

namespace {
using namespace testbed;

// Where a cell of a face lies: faces go low x, high x, low y, and so on, each by layer and then row by row.
struct Faces {
    std::uint32_t n, width;
    BOTH std::uint32_t cells() const { return n * n * width; }
    BOTH std::uint32_t cell(std::uint32_t i, std::uint32_t low, std::uint32_t high) const {
        const std::uint32_t face = i / cells(), rest = i % cells();
        const std::uint32_t along = (face % 2 ? high : low) + rest / (n * n);
        const std::uint32_t a = width + rest / n % n, b = width + rest % n, side = n + 2 * width;
        const std::uint32_t x = face / 2 == 0 ? along : b;
        const std::uint32_t y = face / 2 == 0 ? b : face / 2 == 1 ? along : a;
        const std::uint32_t z = face / 2 == 2 ? along : a;
        return (z * side + y) * side + x;
    }
    BOTH std::uint32_t inner(std::uint32_t i) const { return cell(i, width, n); }
    BOTH std::uint32_t ghost(std::uint32_t i) const { return cell(i, 0, n + width); }
};

class Halo : public Workload {
  public:
    explicit Halo(const Input &input)
        : faces_{std::uint32_t(input.number("size", 16)), std::uint32_t(input.number("width", 1))},
          by_host_(input.text("exchange", "host") == "host"), side_(faces_.n + 2 * faces_.width),
          block_(side_ * side_ * side_), send_(6 * std::size_t(faces_.cells())), receive_(send_.size()) {
        if (!by_host_ && input.text("exchange", "host") != "device")
            throw std::invalid_argument("exchange: expected host or device");
        if (faces_.n < faces_.width) throw std::invalid_argument("width: expected at most the size");
        for (std::size_t i = 0; i < block_.size(); i++) block_[i] = random_unit(i, 1);
        block_.upload();
    }
    void pass() override {
        double *block = block_.data(), *send = send_.data(), *receive = receive_.data();
        const Faces faces = faces_;
        const std::size_t n = send_.size(), one = faces.cells();
        forall(n, KERNEL(std::size_t i) { send[i] = block[faces.inner(std::uint32_t(i))]; });
        // What leaves through one face arrives at the opposite one.
        if (by_host_) {
            send_.download();
            for (std::size_t face = 0; face < 6; face++)
                std::memcpy(receive_.host() + (face ^ 1) * one, send_.host() + face * one, one * sizeof(double));
            receive_.upload();
        } else {
            forall(n, KERNEL(std::size_t i) {
                const std::uint32_t face = std::uint32_t(i) / std::uint32_t(one);
                receive[i - face * one + (face ^ 1) * one] = send[i];
            });
        }
        forall(n, KERNEL(std::size_t i) { block[faces.ghost(std::uint32_t(i))] = receive[i]; });
        sum_ = reduce<double>(n, KERNEL(std::size_t i) {
            return double(i % 1009 + 1) * block[faces.ghost(std::uint32_t(i))];
        });
    }
    double checksum() const override { return sum_ / double(send_.size()); }

  private:
    Faces faces_;
    bool by_host_;
    std::size_t side_;
    Buffer<double> block_, send_, receive_;
    double sum_ = 0;
};

const Register registered("halo", "faces of a block packed, exchanged and unpacked", plain<Halo>);
}  // namespace

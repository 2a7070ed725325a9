// Monte Carlo transport: `size` particles fly through a slab and collide up to `collisions` times. Cross sections come
// from a table of `table` energies, found by binary search: unpredictable branches and scattered reads. Random numbers
// are counted by particle and collision, and tallies are whole numbers, so that the order of the particles does not
// matter.
#include "../testbed.hpp"

namespace {
using namespace testbed;
using std::log;

constexpr int kBins = 64;
constexpr double kThickness = 20;

struct CrossSection {
    double total, absorption;
};

class McTransport : public Workload {
  public:
    explicit McTransport(const Input &input)
        : n_(input.number("size", 1000)), table_(input.number("table", 1000, 2)),
          collisions_(input.number("collisions", 4)), energy_(table_), section_(table_), absorbed_(kBins),
          leaked_(2), track_(kBins) {
        for (std::size_t i = 0; i < table_; i++) {
            const double u = (double(i) + 0.5 * random_unit(i, 1)) / double(table_ - 1);
            energy_[i] = 20 * u * u * u;  // dense at low energies, where resonances are
            const double total = 0.5 + random_unit(i, 2);
            section_[i] = {total, 0.2 * total * random_unit(i, 3)};
        }
    }
    void pass() override {
        energy_.upload();
        section_.upload();
        const std::uint32_t last = std::uint32_t(table_ - 2), collisions = std::uint32_t(collisions_);
        const double *energies = energy_.data();
        const CrossSection *sections = section_.data();
        std::uint64_t *absorbed = absorbed_.data(), *leaked = leaked_.data(), *track = track_.data();
        forall(kBins, KERNEL(std::size_t i) {
            absorbed[i] = track[i] = 0;
            if (i < 2) leaked[i] = 0;
        });
        forall(n_, KERNEL(std::size_t i) {
            double x = kThickness * random_unit(i, 4), energy = 20 * random_unit(i, 5), cosine = 2 * random_unit(i, 6) - 1;
            for (std::uint32_t k = 0; k < collisions; k++) {
                const std::uint64_t draw = (i * collisions + k) * 4;
                std::uint32_t low = 0, high = last + 1;  // the last entry that is not above the energy
                while (low + 1 < high) {
                    const std::uint32_t middle = (low + high) / 2;
                    if (energies[middle] <= energy) low = middle;
                    else high = middle;
                }
                const CrossSection a = sections[low], b = sections[low + 1];
                double share = (energy - energies[low]) / (energies[low + 1] - energies[low]);
                share = share < 0 ? 0 : share > 1 ? 1 : share;
                const double total = a.total + share * (b.total - a.total);
                const double absorption = a.absorption + share * (b.absorption - a.absorption);
                const double flight = -log(1 - random_unit(draw, 7)) / total;
                x += flight * cosine;
                if (x < 0 || x >= kThickness) {
                    atomic_add(leaked + (x < 0 ? 0 : 1), std::uint64_t(1));
                    break;
                }
                const int bin = int(x * (kBins / kThickness));
                atomic_add(track + bin, std::uint64_t(flight * 1024));
                if (random_unit(draw + 1, 7) * total < absorption) {
                    atomic_add(absorbed + bin, std::uint64_t(1));
                    break;
                }
                energy *= 0.2 + 0.8 * random_unit(draw + 2, 7);
                cosine = 2 * random_unit(draw + 3, 7) - 1;
            }
        });
        absorbed_.download();
        leaked_.download();
        track_.download();
    }
    double checksum() const override {
        std::uint64_t sum = 1000 * leaked_[0] + 3000 * leaked_[1];
        for (std::size_t i = 0; i < kBins; i++) sum += (1 + i) * (1000 * absorbed_[i] + track_[i]);
        return double(sum);
    }

  private:
    std::size_t n_, table_, collisions_;
    Buffer<double> energy_;
    Buffer<CrossSection> section_;
    Buffer<std::uint64_t> absorbed_, leaked_, track_;
};

const Register registered("mc_transport", "Monte Carlo transport with cross-section look-ups", plain<McTransport>);
}  // namespace

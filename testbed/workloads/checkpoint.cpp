// A computation that saves itself: `checkpoints` times it does `sweeps` steps on `size` numbers, writes them to a file and
// reads them back, as a restart would. Few sweeps: nearly all input and output; many: nearly all arithmetic.
#include "../testbed.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

namespace {
using namespace testbed;

// A file that is gone when the object is.
class TemporaryFile {
  public:
    TemporaryFile() {
        const char *folder = std::getenv("TMPDIR");
        path_ = std::string(folder && *folder ? folder : "/tmp") + "/testbed-XXXXXX";
        file_ = mkstemp(path_.data());
        if (file_ < 0) fail("making");
        meter().files_opened++;
    }
    TemporaryFile(const TemporaryFile &) = delete;
    TemporaryFile &operator=(const TemporaryFile &) = delete;
    ~TemporaryFile() {
        close(file_);
        unlink(path_.c_str());
    }
    void write_all(const char *from, std::size_t bytes) {
        while (bytes > 0) {
            const ssize_t done = write(file_, from, bytes);
            if (done <= 0) fail("writing");
            from += done;
            bytes -= std::size_t(done);
        }
    }
    void reopen() {
        close(file_);
        file_ = open(path_.c_str(), O_RDONLY);
        if (file_ < 0) fail("opening");
        meter().files_opened++;
    }
    void read_all(char *to, std::size_t bytes) {
        while (bytes > 0) {
            const ssize_t done = read(file_, to, bytes);
            if (done <= 0) fail("reading");
            to += done;
            bytes -= std::size_t(done);
        }
    }

  private:
    [[noreturn]] void fail(const char *what) { throw std::runtime_error(std::string(what) + " " + path_ + " failed"); }
    std::string path_;
    int file_ = -1;
};

class Checkpoint : public Workload {
  public:
    explicit Checkpoint(const Input &input)
        : n_(input.number("size", 1000)), checkpoints_(input.number("checkpoints", 1)), sweeps_(input.number("sweeps", 1)),
          start_(n_), state_(n_) {
        for (std::size_t i = 0; i < n_; i++) start_[i] = random_unit(i, 1);
    }
    void pass() override {
        start_.upload();
        const double *start = start_.data();
        double *state = state_.data();
        const int sweeps = int(sweeps_);
        forall(n_, KERNEL(std::size_t i) { state[i] = 1 - start[i]; });
        for (std::size_t checkpoint = 0; checkpoint < checkpoints_; checkpoint++) {
            forall(n_, KERNEL(std::size_t i) {
                double x = state[i];
                for (int sweep = 0; sweep < sweeps; sweep++) x += 0.1 * (start[i] - x * x);
                state[i] = x;
            });
            state_.download();
            save_and_restore();
            state_.upload();
        }
    }
    void save_and_restore() {
        TemporaryFile file;
        file.write_all(reinterpret_cast<const char *>(state_.host()), state_.bytes());
        file.reopen();
        file.read_all(reinterpret_cast<char *>(state_.host()), state_.bytes());
    }
    double checksum() const override {
        double sum = 0;
        for (std::size_t i = 0; i < n_; i++) sum += double(i % 7 + 1) * state_[i];
        return sum / double(n_);
    }

  private:
    std::size_t n_, checkpoints_, sweeps_;
    Buffer<double> start_, state_;
};

const Register registered("checkpoint", "arithmetic between writing a file and reading it back", plain<Checkpoint>);
}  // namespace

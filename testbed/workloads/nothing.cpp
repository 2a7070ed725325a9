// Does nothing: what a program takes that only starts and ends.
#include "../testbed.hpp"

namespace {
using namespace testbed;

struct Nothing : Workload {
    explicit Nothing(const Input &) {}
    void pass() override {}
    double checksum() const override { return 1; }
};

const Register registered("nothing", "starts and ends, no more", plain<Nothing>);
}  // namespace

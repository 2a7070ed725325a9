// A reader of tokens (words, numbers, strings with escapes, comments) over `size` streams of `length` bytes each. The share
// `branchiness` of the bytes is drawn from all classes; the rest are letters, whose branches are easily foreseen.
#include "../testbed.hpp"

namespace {
using namespace testbed;

enum State : std::uint32_t { kBlank, kWord, kNumber, kString, kEscape, kComment };

BOTH inline bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }
BOTH inline bool is_letter(unsigned char c) { return c >= 'a' && c <= 'z'; }

class StateMachine : public Workload {
  public:
    explicit StateMachine(const Input &input)
        : n_(input.number("size", 100)), length_(input.number("length", 64)), text_(n_ * length_), result_(n_) {
        const double branchiness = input.real("branchiness", 0.5);
        const std::uint64_t share = std::uint64_t(branchiness * 65536);
        const char *other = "  0123456789\"\"\\#\n.";
        const std::uint64_t others = std::strlen(other);
        for (std::size_t i = 0; i < n_ * length_; i++) {
            const std::uint64_t bits = random_bits(i, 1);
            text_[i] = (bits & 65535) < share ? static_cast<unsigned char>(other[(bits >> 16) % others])
                                              : static_cast<unsigned char>('a' + (bits >> 32) % 26);
        }
    }
    void pass() override {
        text_.upload();
        const std::uint32_t length = std::uint32_t(length_);
        const unsigned char *text = text_.data();
        std::uint32_t *result = result_.data();
        forall(n_, KERNEL(std::size_t i) {
            const unsigned char *at = text + i * length;
            std::uint32_t state = kBlank, hash = 1, value = 0;
            for (std::uint32_t k = 0; k < length; k++) {
                const unsigned char c = at[k];
                switch (state) {
                    case kString:
                        if (c == '\\') state = kEscape;
                        else if (c == '"') {
                            hash = hash * 31 + value;
                            state = kBlank;
                        } else value = value * 17 + c;
                        break;
                    case kEscape:
                        value += c ^ 64u;
                        state = kString;
                        break;
                    case kComment:
                        if (c == '\n') {
                            hash += 7;
                            state = kBlank;
                        }
                        break;
                    default:
                        if (is_letter(c)) {
                            if (state == kNumber) hash = (hash ^ value) * 13;
                            value = state == kWord ? value * 5 + c : c;
                            state = kWord;
                        } else if (is_digit(c)) {
                            if (state == kWord) value ^= c;  // a digit within a name
                            else {
                                value = state == kNumber ? value * 10 + (c - '0') : c - '0';
                                state = kNumber;
                            }
                        } else {
                            if (state == kWord) hash = hash * 37 + value;
                            else if (state == kNumber) hash = hash * 41 ^ value;
                            if (c == '"') {
                                value = 0;
                                state = kString;
                            } else state = c == '#' ? kComment : kBlank;
                        }
                }
            }
            result[i] = hash * 43 + value + state;
        });
        result_.download();
    }
    double checksum() const override {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < n_; i++) sum += std::uint64_t(result_[i]) * (1 + i % 7);
        return double(sum);
    }

  private:
    std::size_t n_, length_;
    Buffer<unsigned char> text_;
    Buffer<std::uint32_t> result_;
};

const Register registered("state_machine", "tokens read by a state machine", plain<StateMachine>);
}  // namespace

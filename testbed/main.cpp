// The harness: sets inputs up, times passes over them, and prints one line of JSON for each input.
//
//     testbed triad size=1000 sweeps=10 --threads 2 --repeats 5
//     testbed --batch inputs.txt --threads 16          one input a line: NAME key=value ...
//     testbed --list
//
// With --passes N a batch is N passes; without, as many as take 5 ms or more. With --count one pass runs alone, marked for
// callgrind (CALLGRIND_TOGGLE_COLLECT) or Nsight Compute (cudaProfilerStart), after one that leaves the caches as they are
// between timed passes; --count-launches N marks the first N launches of it only.
#include "testbed.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>

#ifndef __CUDACC__
#include <omp.h>
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#endif
#endif
#ifndef CALLGRIND_TOGGLE_COLLECT
#define CALLGRIND_TOGGLE_COLLECT
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#endif

namespace testbed {

Meter &meter() {
    static Meter all;
    return all;
}
Counting &counting() {
    static Counting state;
    return state;
}
double now() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}
std::map<std::string, Registered> &registry() {
    static std::map<std::string, Registered> all;
    return all;
}

Input::Input(const std::vector<std::string> &words) {
    for (const std::string &word : words) {
        const std::size_t at = word.find('=');
        if (at == std::string::npos || at == 0) throw std::invalid_argument("found '" + word + "', expected name=value");
        values_[word.substr(0, at)] = word.substr(at + 1);
    }
}
std::string Input::text(const std::string &name, const std::string &fallback) const {
    asked_.insert(name);
    const auto found = values_.find(name);
    return found == values_.end() ? fallback : found->second;
}
double Input::real(const std::string &name, double fallback) const {
    const std::string word = text(name, "");
    if (word.empty()) return fallback;
    std::size_t read = 0;
    double value = 0;
    try {
        value = std::stod(word, &read);
    } catch (const std::logic_error &) {
    }
    if (read != word.size()) throw std::invalid_argument(name + ": found '" + word + "', expected a number");
    return value;
}
std::size_t Input::number(const std::string &name, std::size_t fallback, std::size_t least) const {
    const double value = real(name, double(fallback));
    if (value != std::floor(value) || value < double(least) || value > 1e15)
        throw std::invalid_argument(name + ": expected a whole number of at least " + std::to_string(least));
    return static_cast<std::size_t>(value);
}
void Input::refuse_unknown() const {
    for (const auto &[name, value] : values_)
        if (!asked_.count(name)) throw std::invalid_argument("'" + name + "' is no parameter of this workload");
}

namespace {

struct Options {
    int threads = 1;
    int repeats = 5;
    std::size_t passes = 0;  // 0: as many as take kLeastSeconds
    bool count = false;
    std::uint64_t count_launches = 0;  // 0: all
    std::string batch;
    std::vector<std::string> words;
};

constexpr double kLeastSeconds = 5e-3;

void finish() {
#ifdef __CUDACC__
    check(cudaDeviceSynchronize(), "running");
#endif
}

double batch(Workload &work, std::size_t passes) {
    const double start = now();
    for (std::size_t i = 0; i < passes; i++) work.pass();
    finish();
    return now() - start;
}

// Returns how many passes take the least time that is worth timing, with some margin for a faster repeat.
std::size_t enough_passes(Workload &work) {
    std::size_t passes = 1;
    double seconds = batch(work, passes);
    while (seconds < 1.3 * kLeastSeconds) {
        const double more = 1.6 * kLeastSeconds / std::max(seconds, 1e-7);
        passes = std::max(passes + 1, static_cast<std::size_t>(double(passes) * std::min(more, 1000.0)));
        seconds = batch(work, passes);
    }
    return passes;
}

struct Kernel {  // what the operating system counted for this process so far
    double faults = 0, read = 0, written = 0;
    static Kernel counts() {
        Kernel found;
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        found.faults = double(usage.ru_minflt + usage.ru_majflt);
        std::ifstream io("/proc/self/io");
        for (std::string name; io >> name;) {
            double value = 0;
            io >> value;
            if (name == "rchar:") found.read = value;
            if (name == "wchar:") found.written = value;
        }
        return found;
    }
    // The same, less what asking costs itself.
    static Kernel start() {
        const Kernel first = counts();
        Kernel second = counts();
        second.read += second.read - first.read;
        return second;
    }
};

std::string quoted(const std::string &text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out + "\"";
}

const char *device() {
#ifdef __CUDACC__
    return "gpu";
#else
    return "cpu";
#endif
}

std::string joined(const std::vector<std::string> &words) {
    std::string text;
    for (const std::string &word : words) text += (text.empty() ? "" : " ") + word;
    return text;
}

std::unique_ptr<Workload> set_up(const std::vector<std::string> &words) {
    const auto found = registry().find(words.at(0));
    if (found == registry().end()) throw std::invalid_argument("no workload is called '" + words[0] + "'; see --list");
    const Input input({words.begin() + 1, words.end()});
    std::unique_ptr<Workload> work = found->second.make(input);
    input.refuse_unknown();
    return work;
}

// Runs one pass alone, inside the marks that a counting tool looks for. Times are those of passes in a row, so the caches are
// simulated over a pass before it: they hold what such a pass leaves, all of the data or, where it is larger, the end of it.
void count_one(Workload &work, std::uint64_t launches) {
    CALLGRIND_START_INSTRUMENTATION;
    work.pass();
    finish();
    counting() = {true, launches};
#ifdef __CUDACC__
    check(cudaProfilerStart(), "starting the profiler");
    meter() = Meter();
    work.pass();
    finish();
    check(cudaProfilerStop(), "stopping the profiler");
#else
    meter() = Meter();
    CALLGRIND_TOGGLE_COLLECT;
    work.pass();
    CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_STOP_INSTRUMENTATION;
#endif
    counting() = Counting();
}

void run(const std::vector<std::string> &words, const Options &options, std::ostream &out) {
    std::unique_ptr<Workload> work = set_up(words);
    std::vector<double> seconds;
    std::size_t passes = 1;
    Kernel before, after;
    if (options.count) {
        before = Kernel::start();
        count_one(*work, options.count_launches);
        after = Kernel::counts();
    } else {
        work->pass();
        finish();
        passes = options.passes ? options.passes : enough_passes(*work);
        meter() = Meter();
        before = Kernel::start();
        for (int i = 0; i < options.repeats; i++) {
            double taken = batch(*work, passes);
            if (!options.passes && taken < kLeastSeconds) {  // a faster repeat than those before: measure it again, longer
                passes = static_cast<std::size_t>(double(passes) * 1.5) + 1;
                seconds.clear();
                i = -1;
                meter() = Meter();
                before = Kernel::start();
                continue;
            }
            seconds.push_back(taken / double(passes));
        }
        after = Kernel::counts();
    }
    const double all = double(passes) * double(std::max<std::size_t>(seconds.size(), 1));
    const Meter moved = meter();
    const std::uint64_t counted = options.count_launches ? std::min(moved.launches, options.count_launches) : moved.launches;
    out.precision(9);
    out << "{\"workload\": " << quoted(words[0]) << ", \"input\": " << quoted(joined({words.begin() + 1, words.end()}))
        << ", \"device\": \"" << device() << "\", \"threads\": " << options.threads << ", \"passes\": " << passes
        << ", \"seconds\": [";
    for (std::size_t i = 0; i < seconds.size(); i++) out << (i ? ", " : "") << seconds[i];
    out << "], \"bytes_to_device\": " << double(moved.bytes_to_device) / all
        << ", \"bytes_to_host\": " << double(moved.bytes_to_host) / all << ", \"launches\": " << double(moved.launches) / all
        << ", \"launches_counted\": " << (options.count ? counted : 0)
        << ", \"seconds_to_device\": " << moved.seconds_to_device << ", \"seconds_to_host\": " << moved.seconds_to_host
        << ", \"files_opened\": " << double(moved.files_opened) / all
        << ", \"page_faults\": " << (after.faults - before.faults) / all
        << ", \"bytes_read\": " << (after.read - before.read) / all
        << ", \"bytes_written\": " << (after.written - before.written) / all;
    out.precision(15);
    out << ", \"checksum\": " << work->checksum() << "}" << std::endl;
}

int run_or_tell(const std::vector<std::string> &words, const Options &options) {
    try {
        std::ostringstream line;
        run(words, options, line);
        std::cout << line.str() << std::flush;
        return 0;
    } catch (const std::exception &error) {
        std::cout << "{\"workload\": " << quoted(words.at(0))
                  << ", \"input\": " << quoted(joined({words.begin() + 1, words.end()})) << ", \"device\": \"" << device()
                  << "\", \"threads\": " << options.threads << ", \"error\": " << quoted(error.what()) << "}" << std::endl;
        return 1;
    }
}

Options parse(int argc, char **argv) {
    Options options;
    for (int i = 1; i < argc; i++) {
        const std::string word = argv[i];
        const auto value = [&]() -> std::string {
            if (++i >= argc) throw std::invalid_argument(word + " needs a value");
            return argv[i];
        };
        if (word == "--threads") options.threads = std::stoi(value());
        else if (word == "--repeats") options.repeats = std::stoi(value());
        else if (word == "--passes") options.passes = std::stoul(value());
        else if (word == "--count") options.count = true;
        else if (word == "--count-launches") options.count_launches = std::stoul(value());
        else if (word == "--batch") options.batch = value();
        else if (word == "--list") {
            for (const auto &[name, found] : registry()) std::cout << name << "\t" << found.what << "\n";
            std::exit(0);
        } else if (word.rfind("--", 0) == 0) throw std::invalid_argument("unknown option " + word);
        else options.words.push_back(word);
    }
    if (options.words.empty() == options.batch.empty())
        throw std::invalid_argument("expected a workload with its input, or --batch FILE, or --list");
    if (options.threads < 1 || options.repeats < 1) throw std::invalid_argument("expected one thread and repeat or more");
    return options;
}

int start(int argc, char **argv) {
    const Options options = parse(argc, argv);
#ifndef __CUDACC__
    omp_set_num_threads(options.threads);
#endif
    if (options.batch.empty()) return run_or_tell(options.words, options);
    std::ifstream file(options.batch);
    if (!file) throw std::invalid_argument(options.batch + ": cannot be read");
    int failed = 0;
    for (std::string line; std::getline(file, line);) {
        std::istringstream text(line);
        std::vector<std::string> words;
        for (std::string word; text >> word;) words.push_back(word);
        if (!words.empty() && words[0][0] != '#') failed |= run_or_tell(words, options);
    }
    return failed;
}

}  // namespace
}  // namespace testbed

int main(int argc, char **argv) {
    try {
        return testbed::start(argc, argv);
    } catch (const std::exception &error) {
        std::cerr << "error: " << error.what() << std::endl;
        return 2;
    }
}

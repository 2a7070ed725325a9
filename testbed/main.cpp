// The harness: a program with one input, or a batch of inputs whose parts are timed, one line of JSON for each.
//
//     testbed triad size=1000 sweeps=10 passes=400 --threads 2    the whole program: set-up, 400 passes, the checksum
//     testbed triad size=1000 sweeps=10 --threads 2 --repeats 5   times its parts
//     testbed --batch inputs.txt --threads 16                     one input a line: NAME key=value ...
//     testbed --list
//
// The parts of a program: `set_up`, its `first` pass, more passes (`seconds`, each a mean over as many as take 5 ms or more,
// or over --passes N; before each the threads move to other processors, since some have busier neighbours), and the `rest`, from the fork to the end of the process less the parts. Each input of a batch has a
// process of its own on a CPU; on a GPU they share one, whose start is in no part. What a program takes that does nothing,
// `testbed nothing passes=1`, is the start.
//
// With --count two passes run, between marks that counting tools look for: CALLGRIND_DUMP_STATS at both ends of the second
// pass, CALLGRIND_TOGGLE_COLLECT besides, cudaProfilerStart on a GPU. --count-launches N marks the first N launches only.
#include "testbed.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#ifndef __CUDACC__
#include <omp.h>
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#endif
#endif
#ifndef CALLGRIND_TOGGLE_COLLECT
#define CALLGRIND_TOGGLE_COLLECT
#define CALLGRIND_DUMP_STATS
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
    std::size_t run = 0;     // passes of a whole program; 0: time the parts
    bool count = false;
    std::uint64_t count_launches = 0;  // 0: all
    std::string batch;
    std::vector<std::string> words;
};

constexpr double kLeastSeconds = 5e-3;
constexpr useconds_t kPause = 4000;
constexpr double kWarmSeconds = 20e-3;  // a longer pass is as good as warm from its beginning
constexpr double kMostSeconds = 0.25;   // of all repeats together, two of them aside

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

#ifdef __CUDACC__
struct Movement {  // the processor of a GPU's host matters little
    explicit Movement(int) {}
    void elsewhere() const {}
};
#else
// Moves the threads of this process to processors drawn at random, each to its own, and lets them go in the end. Where there
// are no more processors than threads nothing moves.
class Movement {
  public:
    explicit Movement(int threads) {
        CPU_ZERO(&all_);
        sched_getaffinity(0, sizeof all_, &all_);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &all_)) processors_.push_back(cpu);
        if (processors_.size() <= std::size_t(threads)) processors_.clear();
    }
    Movement(const Movement &) = delete;
    Movement &operator=(const Movement &) = delete;
    ~Movement() { each([this](std::size_t) { return all_; }); }

    void elsewhere() {
        std::shuffle(processors_.begin(), processors_.end(), random_);
        each([this](std::size_t thread) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(processors_[thread % processors_.size()], &one);
            return one;
        });
    }

  private:
    template <class F>
    void each(F set) const {
        if (processors_.empty()) return;
        std::size_t thread = 0;
        for (const auto &entry : std::filesystem::directory_iterator("/proc/self/task")) {
            const cpu_set_t wanted = set(thread++);
            sched_setaffinity(std::stoi(entry.path().filename()), sizeof wanted, &wanted);
        }
    }
    cpu_set_t all_;
    std::vector<int> processors_;
    std::mt19937 random_{std::random_device{}()};
};
#endif

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
    Kernel operator-(const Kernel &before) const {
        return {faults - before.faults, read - before.read, written - before.written};
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
    meter() = Meter();
#ifdef __CUDACC__
    check(cudaProfilerStart(), "starting the profiler");
    work.pass();
    finish();
    check(cudaProfilerStop(), "stopping the profiler");
#else
    CALLGRIND_DUMP_STATS;
    CALLGRIND_TOGGLE_COLLECT;
    work.pass();
    CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_DUMP_STATS;
    CALLGRIND_STOP_INSTRUMENTATION;
#endif
    counting() = Counting();
}

// What a part of a program takes: its time, and what the kernel and the meter counted in it.
struct Part {
    double seconds = 0;
    Kernel kernel;
    Meter meter;

    template <class F>
    static Part of(F work) {
        Part part;
        testbed::meter() = Meter();
        const Kernel before = Kernel::start();
        const double start = now();
        work();
        finish();
        part.seconds = now() - start;
        part.kernel = Kernel::counts() - before;
        part.meter = testbed::meter();
        return part;
    }
};

void write_counts(std::ostream &out, const Kernel &kernel, const Meter &moved, double passes) {
    out << "\"bytes_to_device\": " << double(moved.bytes_to_device) / passes
        << ", \"bytes_to_host\": " << double(moved.bytes_to_host) / passes << ", \"launches\": " << double(moved.launches) / passes
        << ", \"files_opened\": " << double(moved.files_opened) / passes << ", \"page_faults\": " << kernel.faults / passes
        << ", \"bytes_read\": " << kernel.read / passes << ", \"bytes_written\": " << kernel.written / passes;
}

void begin_line(std::ostream &out, const std::vector<std::string> &words, const Options &options) {
    out.precision(9);
    out << "{\"workload\": " << quoted(words.at(0)) << ", \"input\": " << quoted(joined({words.begin() + 1, words.end()}))
        << ", \"device\": \"" << device() << "\", \"threads\": " << options.threads;
}

void end_line(std::ostream &out, const Workload &work) {
    out.precision(15);
    out << ", \"checksum\": " << work.checksum();
}

// The whole program, as a user runs it.
void run_whole(const std::vector<std::string> &words, const Options &options, std::ostream &out) {
    std::unique_ptr<Workload> work = set_up(words);
    for (std::size_t i = 0; i < options.run; i++) work->pass();
    finish();
    begin_line(out, words, options);
    out << ", \"passes\": " << options.run;
    end_line(out, *work);
}

void run_counted(const std::vector<std::string> &words, const Options &options, std::ostream &out) {
    std::unique_ptr<Workload> work = set_up(words);
    count_one(*work, options.count_launches);
    const Meter moved = meter();
    const std::uint64_t counted = options.count_launches ? std::min(moved.launches, options.count_launches) : moved.launches;
    begin_line(out, words, options);
    out << ", \"passes\": 1, \"seconds\": [], ";
    write_counts(out, Kernel(), moved, 1);
    out << ", \"launches_counted\": " << counted << ", \"seconds_to_device\": " << moved.seconds_to_device
        << ", \"seconds_to_host\": " << moved.seconds_to_host;
    end_line(out, *work);
}

// Times the parts of a program, all but its rest; returns what they took, and what only timing them took.
double run_timed(const std::vector<std::string> &words, const Options &options, std::ostream &out) {
    std::unique_ptr<Workload> work;
    const Part setting_up = Part::of([&] { work = set_up(words); });
    const Part first = Part::of([&] { work->pass(); });
    const double more = now();
    std::size_t passes = options.passes ? options.passes : enough_passes(*work);
    std::vector<double> seconds;
    meter() = Meter();
    Kernel before = Kernel::start();
    Movement threads(options.threads);
    double spent = 0;
    std::size_t warm = 0;  // passes that are not timed
    while (seconds.size() < std::size_t(options.repeats) && (spent < kMostSeconds || seconds.size() < 2)) {
        threads.elsewhere();
        if (first.seconds < kWarmSeconds) warm++, work->pass();
        const double taken = batch(*work, passes);
        spent += taken;
        seconds.push_back(taken / double(passes));
        if (options.passes || taken >= kLeastSeconds) continue;
        passes = static_cast<std::size_t>(double(passes) * 1.5) + 1;  // faster than those before: measure again, longer
        seconds.clear();
        spent = 0, warm = 0;
        meter() = Meter();
        before = Kernel::start();
    }
    const Kernel after = Kernel::counts();
    const Meter moved = meter();
    const double inside = setting_up.seconds + first.seconds + now() - more;
    begin_line(out, words, options);
    out << ", \"passes\": " << passes << ", \"seconds\": [";
    for (std::size_t i = 0; i < seconds.size(); i++) out << (i ? ", " : "") << seconds[i];
    out << "], ";
    write_counts(out, after - before, moved, double(passes) * double(seconds.size()) + double(warm));
    for (const auto &[name, part] : {std::pair("set_up", &setting_up), std::pair("first", &first)}) {
        out << ", \"" << name << "\": {\"seconds\": " << part->seconds << ", ";
        write_counts(out, part->kernel, part->meter, 1);
        out << "}";
    }
    end_line(out, *work);
    return inside;
}

// A line about an input, without its end.
struct Answer {
    std::string line;
    double inside = 0;  // what its parts took but the rest
    int failed = 0;
};

Answer run(const std::vector<std::string> &words, const Options &options) {
    Answer answer;
    std::ostringstream line;
    try {
        if (options.run) run_whole(words, options, line);
        else if (options.count) run_counted(words, options, line);
        else answer.inside = run_timed(words, options, line);
    } catch (const std::exception &error) {
        line.str("");
        begin_line(line, words, options);
        line << ", \"error\": " << quoted(error.what());
        answer.failed = 1;
    }
    answer.line = line.str();
    return answer;
}

int run_here(const std::vector<std::string> &words, const Options &options) {
    const double start = now();
    const Answer answer = run(words, options);
    std::cout << answer.line;
    if (answer.inside) std::cout << ", \"rest\": {\"seconds\": " << now() - start - answer.inside << "}";
    std::cout << "}" << std::endl;
    return answer.failed;
}

#ifdef __CUDACC__
// A GPU is started once for all inputs of a batch. What one of them leaves to the next of the heap is given back.
int run_of_batch(const std::vector<std::string> &words, const Options &options) {
    const int failed = run_here(words, options);
    malloc_trim(0);
    return failed;
}
#else
std::string read_all(int descriptor) {
    std::string text;
    char some[4096];
    for (ssize_t n; (n = read(descriptor, some, sizeof some)) > 0;) text.append(some, std::size_t(n));
    return text;
}

// Runs an input in a process of its own, which begins as a program does: with an empty heap and one thread.
int run_of_batch(const std::vector<std::string> &words, const Options &options) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe to the process of an input");
    const double start = now();
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("no process for an input");
    if (child == 0) {
        const Answer answer = run(words, options);
        const std::string text = std::string(reinterpret_cast<const char *>(&answer.inside), sizeof answer.inside) + answer.line;
        std::exit(write(ends[1], text.data(), text.size()) == ssize_t(text.size()) ? answer.failed : 2);
    }
    close(ends[1]);
    const std::string text = read_all(ends[0]);
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    const double seconds = now() - start;
    double inside = 0;
    if (text.size() <= sizeof inside || !WIFEXITED(status) || WEXITSTATUS(status) > 1) {
        begin_line(std::cout, words, options);
        std::cout << ", \"error\": \"its process was ended\"}" << std::endl;
        return 1;
    }
    std::memcpy(&inside, text.data(), sizeof inside);
    std::cout << text.substr(sizeof inside);
    if (inside) std::cout << ", \"rest\": {\"seconds\": " << seconds - inside << "}";
    std::cout << "}" << std::endl;
    return WEXITSTATUS(status);
}
#endif

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
        } else if (word.rfind("passes=", 0) == 0) options.run = std::stoul(word.substr(7));
        else if (word.rfind("--", 0) == 0) throw std::invalid_argument("unknown option " + word);
        else options.words.push_back(word);
    }
    if (options.words.empty() == options.batch.empty())
        throw std::invalid_argument("expected a workload with its input, or --batch FILE, or --list");
    if (options.threads < 1 || options.repeats < 1) throw std::invalid_argument("expected one thread and repeat or more");
    return options;
}

int start(int argc, char **argv) {
    const Options options = parse(argc, argv);
#ifdef __CUDACC__
    // All kernels are loaded with the first call, so that no input pays for those of its workload alone.
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    check(cudaFree(nullptr), "starting the GPU");
#else
    omp_set_num_threads(options.threads);
#endif
    if (options.batch.empty()) return run_here(options.words, options);
    std::ifstream file(options.batch);
    if (!file) throw std::invalid_argument(options.batch + ": cannot be read");
    int failed = 0;
    for (std::string line; std::getline(file, line);) {
        std::istringstream text(line);
        std::vector<std::string> words;
        for (std::string word; text >> word;) words.push_back(word);
        if (words.empty() || words[0][0] == '#') continue;
        failed |= options.count ? run_here(words, options) : run_of_batch(words, options);
        usleep(kPause);  // whoever reads the line is busy with it first
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

// Counts a program under qemu's user mode: executed blocks, memory accesses and their locality, branches, threads, files.
//
// One report a process image, NUMBER-of-process.NUMBER-of-image in the folder CROSSPERF_QEMU_OUT: a line of JSON, then the
// executed blocks (executions, number of instructions, the size of each, their bytes), which are sorted elsewhere. The file
// is there, empty, from the start, so that a process that was killed is missed.
//
// Every thread has counters of its own and takes no lock, so counts are exact with threads. Reuse distances are those of a
// thread by itself: each thread has a cache, as each process has.
//
// Nothing of qemu is included: the few functions used are declared here, as its plugin API has them from version 1 on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info {
    const char *target_name;
    struct { int min, cur; } version;
};
typedef uint64_t plugin_id;
void qemu_plugin_register_vcpu_init_cb(plugin_id, void (*)(plugin_id, unsigned));
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int flags, void *);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *), int flags, void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, void (*)(unsigned, uint32_t, uint64_t, void *), int flags,
                                      int direction, void *);
void qemu_plugin_register_vcpu_syscall_cb(plugin_id, void (*)(plugin_id, unsigned, int64_t, uint64_t, uint64_t, uint64_t,
                                                              uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));
void qemu_plugin_register_vcpu_syscall_ret_cb(plugin_id, void (*)(plugin_id, unsigned, int64_t, int64_t));
void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
unsigned qemu_plugin_mem_size_shift(uint32_t);
bool qemu_plugin_mem_is_store(uint32_t);

#define PUBLIC __attribute__((visibility("default")))
PUBLIC int qemu_plugin_version = 1;
static int api;

// Before qemu asks for it: version 2 took qemu_plugin_n_vcpus away and refuses plugins of version 1.
__attribute__((constructor)) static void tell_version(void) {
    qemu_plugin_version = dlsym(RTLD_DEFAULT, "qemu_plugin_n_vcpus") ? 1 : 2;
}

// From version 3 on the bytes are copied; before, a pointer came back.
static void bytes_of(const struct qemu_plugin_insn *insn, unsigned char *into, size_t size) {
    static void *ask;
    if (!ask) ask = dlsym(RTLD_DEFAULT, "qemu_plugin_insn_data");
    if (api >= 3)
        ((size_t(*)(const struct qemu_plugin_insn *, void *, size_t))ask)(insn, into, size);
    else
        memcpy(into, ((const void *(*)(const struct qemu_plugin_insn *))ask)(insn), size);
}

enum {
    LINE_SHIFT = 6,        // lines of 64 bytes
    WIDEST = 64,           // bytes of the widest access of one instruction
    SAMPLED = 8192,        // lines that are followed: smaller data is followed whole
    SLOTS = 2 * SAMPLED + 2,  // of the hash table
    CLOCK = 4 * SAMPLED,   // times before they are numbered anew
    GROUP = 512,           // times whose bits are counted together
    RECENT = 16,
    NEAR_HALVINGS = 3,     // the near stack follows one line in eight
    BINS = 320,            // of reuse distances: 8 an octave
    HISTORY = 8,           // outcomes of earlier branches that make the context of a branch
    CONTEXTS = 1 << 16,    // found by the upper 16 bits of a hash
    BIMODAL = 1 << 12,
    GSHARE = 1 << 14,
    GSHARE_HISTORY = 12,
    TARGETS = 1 << 11,
    MOST_SETS = 1 << 14,
    MOST_WAYS = 64,
    MOST_FIRST = 4,        // first data caches that are simulated side by side
    VCPUS = 1 << 16,
    CHUNK = 1 << 10,       // counters are made in chunks, when first used
    BLOCK_CHUNKS = 1 << 12,
    SITE_CHUNKS = 1 << 14,
    PAGE = 4096,
    AT_PAGE_END = 1 << 15, // added to the number of a block's instructions, which is at most 512
    STORES = 8,            // addresses of the last stores: what a mark hands over was stored just before it
};
enum ending { OTHER, CONDITIONAL, INDIRECT };

// A translated block: straight code up to a jump.
struct block {
    uint64_t address, after, hash;
    uint64_t branch;       // the last instruction's address, mixed
    uint32_t id, first_site, n_insns, n_bytes;
    enum ending ending;
    struct block *next;    // of the same bucket
    unsigned char data[];  // sizes, then bytes
};

// Where an instruction read or wrote last, and how far that was from the time before.
struct site { uint64_t address; int64_t stride; };

// A sampled line: when it was touched last (0: the slot is empty), and in which part of the program it was.
struct slot { uint64_t line; uint32_t time, part; };
#define ON_TOP UINT32_MAX
#ifdef __x86_64__
#define POPCOUNT __attribute__((target("popcnt")))
#else
#define POPCOUNT
#endif

// Counted while counting is on; cleared where a marked part begins and in a forked child.
struct counts {
    uint64_t instructions, accesses[2], bytes[2], sequential, irregular, d1_misses[MOST_FIRST];
    uint64_t conditional, conditional_missed, indirect, indirect_missed, unsure;
    uint64_t files_opened, bytes_read;
};

// Sampled lines, last touched first: SHARDS with a fixed number of lines (Waldspurger and others, FAST 2015). Where there
// are too many, the far stack takes half of them out of the sample, and the near one forgets the half touched longest ago:
// it keeps its rate, so that small caches are known well whatever the size of the data.
struct stack {
    uint64_t threshold;            // a line is sampled if its hash is below
    unsigned halvings;             // of the sample: a line stands for two to the power of it
    bool forgets;
    uint64_t top[RECENT];
    uint32_t on_top, live, now;
    struct slot *slots;
    uint64_t bits[CLOCK / 64];
    uint16_t group[CLOCK / GROUP];
    uint64_t first_touches, distances[BINS];
};

struct cpu {
    struct counts counts;
    unsigned era;                  // of the counts: older than the program's, they are to be cleared
    uint64_t thread_instructions;  // of the thread that runs on it now
    const struct block *previous;
    uint64_t *executions[BLOCK_CHUNKS];
    struct site *sites[2][SITE_CHUNKS];
    // The access that the current instruction has begun: a vector comes in pieces of 8 bytes.
    uint64_t open_key, open_end, open_room;
    uint64_t last_line;
    uint64_t *d1[MOST_FIRST];      // first data caches: the lines of each set, last touched first
    struct stack far, near;
    uint32_t part;
    // Branches.
    uint64_t history, targets_history;
    uint64_t *contexts;            // all outcomes in the lower half, those taken in the upper one
    unsigned char bimodal[BIMODAL], gshare[GSHARE], chooser[BIMODAL];
    uint64_t targets[TARGETS];
    uint64_t stores[STORES];
    unsigned next_store;
};

static struct cpu *cpus[VCPUS];
static unsigned highest_cpu;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of what follows up to the next blank line
static struct block **buckets, **blocks;
static uint32_t n_buckets, n_blocks, n_sites, blocks_room;
static uint64_t busiest_thread, threads, blocks_left_out;

static struct {
    bool toggles, toggled;     // collection is switched by CALLGRIND_TOGGLE_COLLECT, from off
    bool marked;               // the program marks a part of its own
    int depth;                 // how many marked parts are open
    bool main_seen;
    uint64_t startup_instructions, startup_files, startup_bytes;
    int parallel_depth;
    uint64_t parallel_regions, parallel_begin, parallel_instructions;
} marks;
static volatile bool on = true;
static volatile unsigned era;  // how often all threads were told to count from 0
static char report_path[4096];
static const char *folder;
static pid_t pid;
static bool forked, on_x86, on_arm;
static struct first { unsigned sets, ways; } first[MOST_FIRST];
static unsigned n_first;  // none: only the curve tells of caches

static uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void *zeroed(size_t n, size_t size) {
    void *memory = calloc(n, size);
    if (!memory) {
        fputs("crossperf: no memory left to count in\n", stderr);
        _exit(70);
    }
    return memory;
}

// Reuse distances.
//
// The stack of the sampled lines, last touched first: its top is an array, RECENT long, since most distances are short. A
// line that leaves the array is given the next time, and a bit in a row of bits; as many lines lie between two touches
// of a line as there are bits behind its own.

static struct slot *slot_of(struct stack *c, uint64_t line, uint64_t hash) {
    uint32_t i = hash % SLOTS;
    while (c->slots[i].time && c->slots[i].line != line) i = (i + 1) % SLOTS;
    return &c->slots[i];
}
static void set_bit(struct stack *c, uint32_t time) {
    c->bits[time / 64] |= UINT64_C(1) << time % 64;
    c->group[time / GROUP]++;
}
static void clear_bit(struct stack *c, uint32_t time) {
    c->bits[time / 64] &= ~(UINT64_C(1) << time % 64);
    c->group[time / GROUP]--;
}
POPCOUNT static uint32_t bits_after(const struct stack *c, uint32_t time) {
    uint32_t word = time / 64, group = time / GROUP, sum;
    sum = (uint32_t)__builtin_popcountll(c->bits[word] >> time % 64) - 1;
    for (word++; word % (GROUP / 64); word++) sum += (uint32_t)__builtin_popcountll(c->bits[word]);
    for (group++; group <= c->now / GROUP; group++) sum += c->group[group];
    return sum;
}
// Numbers the times anew from 1.
static void renumber(struct stack *c) {
    struct slot **by_time = zeroed(CLOCK, sizeof *by_time);
    for (uint32_t i = 0; i < SLOTS; i++)
        if (c->slots[i].time && c->slots[i].time != ON_TOP) by_time[c->slots[i].time] = &c->slots[i];
    memset(c->bits, 0, sizeof c->bits);
    memset(c->group, 0, sizeof c->group);
    c->now = 0;
    for (uint32_t time = 0; time < CLOCK; time++)
        if (by_time[time]) set_bit(c, by_time[time]->time = ++c->now);
    free(by_time);
}
static void leaves_top(struct stack *c, uint64_t line) {
    if (c->now == CLOCK - 1) renumber(c);
    set_bit(c, slot_of(c, line, mixed(line))->time = ++c->now);
}
static void empty_top(struct stack *c) {
    while (c->on_top) leaves_top(c, c->top[--c->on_top]);
}
// Keeps half of the lines: those with a smaller hash, or those touched last.
static void keep_half(struct stack *c) {
    empty_top(c);
    renumber(c);
    struct slot *all = c->slots;
    uint32_t oldest = c->forgets ? c->live / 2 : 0;
    c->slots = zeroed(SLOTS, sizeof *all);
    if (!c->forgets) {
        c->threshold /= 2;
        c->halvings++;
    }
    c->live = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        uint64_t hash = mixed(all[i].line);
        if (all[i].time <= oldest || hash >= c->threshold) continue;
        *slot_of(c, all[i].line, hash) = all[i];
        c->live++;
    }
    free(all);
    renumber(c);
}
// The bin of a distance in lines: the distance itself up to 16, from there on 8 bins an octave, cut at powers of two.
static unsigned bin_of(uint64_t distance) {
    if (distance < 16) return (unsigned)distance;
    unsigned octave = 63 - (unsigned)__builtin_clzll(distance);
    unsigned bin = 16 + (octave - 4) * 8 + (unsigned)((distance >> (octave - 3)) & 7);
    return bin < BINS ? bin : BINS - 1;
}
static void count_distance(struct stack *c, uint32_t between) {
    if (on) c->distances[bin_of((uint64_t)between << c->halvings)] += UINT64_C(1) << c->halvings;
}
static void sample(struct stack *c, uint64_t line, uint64_t hash, uint32_t part) {
    uint32_t place = 0;
    while (place < c->on_top && c->top[place] != line) place++;
    if (place < c->on_top) {
        count_distance(c, place);
    } else {
        struct slot *s = slot_of(c, line, hash);
        if (s->time) {
            count_distance(c, c->on_top + bits_after(c, s->time));
            clear_bit(c, s->time);
        } else {
            if (on) c->first_touches += UINT64_C(1) << c->halvings;
            s->line = line;
            c->live++;
        }
        s->time = ON_TOP;
        if (on) s->part = part;
        if (c->on_top == RECENT) leaves_top(c, c->top[--place]);
        else c->on_top++;
    }
    memmove(c->top + 1, c->top, place * sizeof *c->top);
    c->top[0] = line;
    if (c->live > SAMPLED) keep_half(c);
}
// The near stack begins as a copy of the far one, at the rate that it keeps.
static void begin_near(struct cpu *c) {
    c->near = c->far;
    c->near.forgets = true;
    c->near.slots = zeroed(SLOTS, sizeof *c->near.slots);
    memcpy(c->near.slots, c->far.slots, SLOTS * sizeof *c->near.slots);
}
static inline void look_up(struct cpu *c, unsigned cache, uint64_t line) {
    unsigned ways = first[cache].ways, way = 1;
    uint64_t *set = c->d1[cache] + line % first[cache].sets * ways, before = set[0];
    if (before == line) return;
    while (way < ways && set[way] != line) way++;
    if (way == ways) {
        way--;
        if (on) c->counts.d1_misses[cache]++;
    }
    for (; way > 1; way--) set[way] = set[way - 1];
    if (ways > 1) set[1] = before;
    set[0] = line;
}
static inline void touch(struct cpu *c, uint64_t line) {
    if (line == c->last_line) return;  // distance 0: a hit in every cache
    c->last_line = line;
    for (unsigned i = 0; i < n_first; i++) look_up(c, i, line);
    uint64_t hash = mixed(line);
    if (hash < c->near.threshold) sample(&c->near, line, hash, c->part);
    if (hash < c->far.threshold) {
        sample(&c->far, line, hash, c->part);
        if (!c->near.slots && c->far.halvings == NEAR_HALVINGS) begin_near(c);
    }
}

// Memory accesses.

static void stride(struct cpu *c, bool store, uint64_t id, uint64_t address) {
    struct site **chunk = &c->sites[store][id / CHUNK];
    if (!*chunk) *chunk = zeroed(CHUNK, sizeof **chunk);
    struct site *s = &(*chunk)[id % CHUNK];
    int64_t step = (int64_t)(address - s->address);
    if (s->address) {  // nothing can be said of an instruction's first access
        if (step <= 64 && step >= -64) c->counts.sequential++;
        else if (step != s->stride) c->counts.irregular++;
    }
    s->stride = step;
    s->address = address;
}
static void on_access(unsigned vcpu, uint32_t info, uint64_t address, void *data) {
    struct cpu *c = cpus[vcpu];
    bool store = qemu_plugin_mem_is_store(info);
    uint64_t size = UINT64_C(1) << qemu_plugin_mem_size_shift(info), id = (uintptr_t)data, key = 2 * id + store;
    uint64_t line = address >> LINE_SHIFT, last = (address + size - 1) >> LINE_SHIFT;
    if (on) c->counts.bytes[store] += size;
    if (key == c->open_key && address == c->open_end && size <= c->open_room) {
        // The next piece of the same access.
        c->open_end += size;
        c->open_room -= size;
        touch(c, line);
    } else {
        c->open_key = key;
        c->open_end = address + size;
        c->open_room = WIDEST - size;
        if (store) c->stores[c->next_store++ % STORES] = address;
        if (on) {
            c->counts.accesses[store]++;
            stride(c, store, id, address);
        }
        touch(c, line);
    }
    if (last != line) touch(c, last);
}

// Branches.

static bool predict(struct cpu *c, uint64_t branch, bool taken) {
    unsigned char *local = &c->bimodal[branch % BIMODAL], *chooser = &c->chooser[branch % BIMODAL];
    unsigned char *global = &c->gshare[(branch ^ (c->history & ((1 << GSHARE_HISTORY) - 1))) % GSHARE];
    bool local_right = (*local >= 2) == taken, global_right = (*global >= 2) == taken;
    bool right = *chooser >= 2 ? global_right : local_right;
    if (global_right != local_right) *chooser += global_right ? *chooser < 3 : -(*chooser > 0);
    *local += taken ? *local < 3 : -(*local > 0);
    *global += taken ? *global < 3 : -(*global > 0);
    return right;
}
// Adds the rarer outcome of a context to what no history decides.
static void settle(struct cpu *c, uint64_t *context) {
    uint64_t taken = *context >> 32, not_taken = (uint32_t)*context - taken;
    c->counts.unsure += taken < not_taken ? taken : not_taken;
    *context = 0;
}
static void branched(struct cpu *c, const struct block *from, const struct block *to) {
    if (from->ending == CONDITIONAL) {
        bool taken = to->address != from->after, right = predict(c, from->branch, taken);
        if (on) {
            uint64_t past = c->history & ((1 << HISTORY) - 1);
            uint64_t *context = &c->contexts[(from->branch + past * 0x9e3779b97f4a7c15u) >> 48];
            *context += UINT64_C(1) + ((uint64_t)taken << 32);
            if ((uint32_t)*context == UINT32_MAX) settle(c, context);
            c->counts.conditional++;
            c->counts.conditional_missed += !right;
        }
        c->history = c->history << 1 | taken;
    } else {
        uint64_t *target = &c->targets[mixed(from->branch + c->targets_history) % TARGETS];
        if (on) {
            c->counts.indirect++;
            c->counts.indirect_missed += *target != to->address;
        }
        *target = to->address;
        c->targets_history = (c->targets_history << 16) ^ mixed(to->address) % (1 << 20);
    }
}
static void clear_stack(struct stack *c) {
    empty_top(c);  // a line's part is noted when it comes to the top
    memset(c->distances, 0, sizeof c->distances);
    c->first_touches = 0;
}
static void clear(struct cpu *c) {
    c->era = era;
    memset(&c->counts, 0, sizeof c->counts);
    memset(c->contexts, 0, CONTEXTS * sizeof *c->contexts);
    c->thread_instructions = 0;
    c->last_line = 0;
    clear_stack(&c->far);
    if (c->near.slots) clear_stack(&c->near);
    c->part++;  // lines of before are not of this part's footprint
    for (unsigned i = 0; i < BLOCK_CHUNKS; i++)
        if (c->executions[i]) memset(c->executions[i], 0, CHUNK * sizeof **c->executions);
}
static void on_block(unsigned vcpu, void *data) {
    struct cpu *c = cpus[vcpu];
    const struct block *b = data, *from = c->previous;
    if (c->era != era) clear(c);
    if (from && from->ending != OTHER) branched(c, from, b);
    c->previous = b;
    c->open_key = 0;
    if (!on) return;
    c->counts.instructions += b->n_insns;
    c->thread_instructions += b->n_insns;
    uint64_t **chunk = &c->executions[b->id / CHUNK];
    if (!*chunk) *chunk = zeroed(CHUNK, sizeof **chunk);
    (*chunk)[b->id % CHUNK]++;
}

// Marks: a sequence that does nothing, valgrind's client request, with the address of six words in a register.

enum {
    CALLGRIND = ('C' << 24) | ('T' << 16), DUMP = CALLGRIND, TOGGLE = CALLGRIND + 2,
    OURS = ('X' << 24) | ('P' << 16), MAIN_BEGINS = OURS + 1, PARALLEL_BEGINS, PARALLEL_ENDS, PART_BEGINS, PART_ENDS,
};

static uint64_t all_instructions(void) {
    uint64_t sum = 0;
    for (unsigned i = 0; i <= highest_cpu; i++)
        if (cpus[i] && cpus[i]->era == era) sum += cpus[i]->counts.instructions;
    return sum;
}
// Each thread clears its own counts, before its next block.
static void start_over(void) {
    era++;
    busiest_thread = 0;
    marks.parallel_regions = marks.parallel_instructions = marks.parallel_begin = 0;
}
static void switch_counting(void) {
    on = (!marks.toggles || marks.toggled) && (!marks.marked || marks.depth > 0);
}
// A plugin cannot read registers before API 4, so the code is found where the last stores went.
static uint32_t code_of_mark(const struct cpu *c) {
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    uint32_t code = 0;
    for (unsigned back = 1; back <= STORES && !code; back++) {
        uint64_t word = 0;
        if (pread(memory, &word, sizeof word, (off_t)c->stores[(c->next_store - back) % STORES]) != sizeof word) continue;
        if ((word & ~UINT64_C(0xffff)) == CALLGRIND || (word & ~UINT64_C(0xffff)) == OURS) code = (uint32_t)word;
    }
    if (memory >= 0) close(memory);
    return code;
}
// What following a process costs it: our library and /proc/self/comm, the head of an ELF file and "qemu-x86_64\n".
enum { OWN_FILES = 2, OWN_BYTES = 832 + 12 };
static uint64_t less(uint64_t count, uint64_t own) { return count > own ? count - own : 0; }

static void dump(void);

static void on_mark(unsigned vcpu, void *data) {
    (void)data;
    uint32_t code = code_of_mark(cpus[vcpu]);
    pthread_mutex_lock(&lock);
    switch (code) {
    case DUMP:
        dump();
        break;
    case TOGGLE:
        marks.toggled = !marks.toggled;
        break;
    case PART_BEGINS:
        if (!marks.marked) start_over();
        marks.marked = true;
        marks.depth++;
        break;
    case PART_ENDS:
        if (marks.depth > 0) marks.depth--;
        break;
    case MAIN_BEGINS:
        if (marks.main_seen) break;
        marks.main_seen = true;
        marks.startup_instructions = all_instructions();
        // The loader opened our own library and read its head, and that library asked for the name of this process.
        cpus[vcpu]->counts.files_opened = less(cpus[vcpu]->counts.files_opened, OWN_FILES);
        cpus[vcpu]->counts.bytes_read = less(cpus[vcpu]->counts.bytes_read, OWN_BYTES);
        marks.startup_files = cpus[vcpu]->counts.files_opened;
        marks.startup_bytes = cpus[vcpu]->counts.bytes_read;
        break;
    case PARALLEL_BEGINS:
        if (marks.parallel_depth++ == 0) marks.parallel_begin = all_instructions();
        break;
    case PARALLEL_ENDS:
        if (marks.parallel_depth == 0 || --marks.parallel_depth > 0) break;
        uint64_t done = all_instructions();
        if (on) marks.parallel_regions++;
        if (done > marks.parallel_begin) marks.parallel_instructions += done - marks.parallel_begin;
    }
    switch_counting();
    pthread_mutex_unlock(&lock);
}

// Translation.

static enum ending ending_on_x86(const unsigned char *code, size_t size) {
    while (size > 1 && (strchr("\x66\x67\xf2\xf3\x2e\x36\x3e\x26\x64\x65", *code) || (*code & 0xf0) == 0x40)) code++, size--;
    if ((code[0] & 0xf0) == 0x70 || (code[0] >= 0xe0 && code[0] <= 0xe3)) return CONDITIONAL;
    if (code[0] == 0x0f && size > 1 && (code[1] & 0xf0) == 0x80) return CONDITIONAL;
    if (code[0] == 0xff && size > 1 && ((code[1] >> 3 & 7) == 2 || (code[1] >> 3 & 7) == 4)) return INDIRECT;
    return OTHER;
}
static enum ending ending_on_arm(const unsigned char *code) {
    uint32_t word;
    memcpy(&word, code, sizeof word);
    if (word >> 24 == 0x54 || (word & 0x7c000000) == 0x34000000) return CONDITIONAL;
    if ((word & 0xffdffc1f) == 0xd61f0000) return INDIRECT;
    return OTHER;
}
static void more_buckets(void) {
    uint32_t wanted = n_buckets ? 4 * n_buckets : 1 << 14;
    struct block **larger = zeroed(wanted, sizeof *larger);
    for (uint32_t i = 0; i < n_blocks; i++) {
        struct block **bucket = &larger[blocks[i]->hash % wanted];
        blocks[i]->next = *bucket;
        *bucket = blocks[i];
    }
    free(buckets);
    buckets = larger;
    n_buckets = wanted;
}
// Returns the record of a block: qemu translates the same code again and again, and other code at the same address.
static struct block *record(uint64_t address, uint32_t n_insns, uint32_t n_bytes, const unsigned char *data) {
    uint64_t hash = address;
    for (uint32_t i = 0; i < n_insns + n_bytes; i++) hash = (hash ^ data[i]) * 0x100000001b3u;
    hash = mixed(hash);
    if (n_blocks >= n_buckets) more_buckets();
    struct block **bucket = &buckets[hash % n_buckets];
    for (struct block *b = *bucket; b; b = b->next)
        if (b->address == address && b->n_insns == n_insns && b->n_bytes == n_bytes && !memcmp(b->data, data, n_insns + n_bytes))
            return b;
    if (n_blocks / CHUNK >= BLOCK_CHUNKS || (n_sites + n_insns) / CHUNK >= SITE_CHUNKS) {
        blocks_left_out++;
        return NULL;
    }
    struct block *b = zeroed(1, sizeof *b + n_insns + n_bytes);
    *b = (struct block){.address = address, .after = address + n_bytes, .hash = hash, .id = n_blocks,
                        .first_site = n_sites + 1, .n_insns = n_insns, .n_bytes = n_bytes, .next = *bucket};
    memcpy(b->data, data, n_insns + n_bytes);
    const unsigned char *code = data + n_insns + n_bytes - data[n_insns - 1];
    b->ending = on_x86 ? ending_on_x86(code, data[n_insns - 1]) : on_arm ? ending_on_arm(code) : OTHER;
    b->branch = mixed(b->after);
    if (n_blocks == blocks_room) {
        blocks_room = blocks_room ? 2 * blocks_room : 1 << 12;
        blocks = realloc(blocks, blocks_room * sizeof *blocks);
        if (!blocks) zeroed(SIZE_MAX / 2, 1);
    }
    blocks[n_blocks++] = *bucket = b;
    n_sites += n_insns;
    return b;
}
static bool is_mark(const unsigned char *code, size_t size) {
    static const unsigned char on_x86_64[] = {0x48, 0x87, 0xdb};       // xchg rbx, rbx
    static const unsigned char on_aarch64[] = {0x4a, 0x01, 0x0a, 0xaa};  // orr x10, x10, x10
    if (on_x86) return size == sizeof on_x86_64 && !memcmp(code, on_x86_64, size);
    return on_arm && !memcmp(code, on_aarch64, sizeof on_aarch64);
}
static void on_translation(plugin_id id, struct qemu_plugin_tb *tb) {
    (void)id;
    size_t n = qemu_plugin_tb_n_insns(tb);
    unsigned char data[n * 16 + 1], *code = data + n;
    if (!n) return;
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        size_t size = qemu_plugin_insn_size(insn);
        data[i] = (unsigned char)size;
        bytes_of(insn, code, size);
        if (is_mark(code, size)) qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, 0, NULL);
        code += size;
    }
    pthread_mutex_lock(&lock);
    struct block *b = record(qemu_plugin_tb_vaddr(tb), (uint32_t)n, (uint32_t)(code - data - n), data);
    pthread_mutex_unlock(&lock);
    if (!b) return;
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, 0, b);
    for (size_t i = 0; i < n; i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), on_access, 0, 3, (void *)(uintptr_t)(b->first_site + i));
}

// The report.

static void open_report(void) {
    pid = getpid();
    for (int image = 0; image < 100000; image++) {
        snprintf(report_path, sizeof report_path, "%s/%d.%d", folder, (int)pid, image);
        int file = open(report_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file >= 0) {
            close(file);
            return;
        }
        if (errno != EEXIST) return;
    }
}
// Lines touched in the part that is counted, by any thread: those below the lowest threshold, each once.
static int by_line(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}
static uint64_t footprint(void) {
    unsigned halvings = 0;
    size_t n = 0, distinct = 0;
    for (unsigned i = 0; i <= highest_cpu; i++)
        if (cpus[i] && cpus[i]->far.halvings > halvings) halvings = cpus[i]->far.halvings;
    uint64_t *lines = zeroed((size_t)(highest_cpu + 1) * SLOTS, sizeof *lines);
    for (unsigned i = 0; i <= highest_cpu; i++)
        for (uint32_t k = 0; cpus[i] && k < SLOTS; k++) {
            const struct slot *s = &cpus[i]->far.slots[k];
            if (s->time && s->part == cpus[i]->part && mixed(s->line) < UINT64_MAX >> halvings) lines[n++] = s->line;
        }
    qsort(lines, n, sizeof *lines, by_line);
    for (size_t k = 0; k < n; k++) distinct += !k || lines[k] != lines[k - 1];
    free(lines);
    return (distinct << halvings) << LINE_SHIFT;
}
static void write_blocks(FILE *file) {
    for (uint32_t k = 0; k < n_blocks; k++) {
        uint64_t executions = 0;
        for (unsigned i = 0; i <= highest_cpu; i++)
            if (cpus[i] && cpus[i]->executions[k / CHUNK]) executions += cpus[i]->executions[k / CHUNK][k % CHUNK];
        if (!executions) continue;
        // qemu may add the beginning of an instruction that goes on in the next page, and executes it in a block of its own.
        uint16_t at_page_end = blocks[k]->n_insns > 1 && blocks[k]->after % PAGE == 0 ? AT_PAGE_END : 0;
        uint16_t n = (uint16_t)blocks[k]->n_insns | at_page_end;
        fwrite(&executions, sizeof executions, 1, file);
        fwrite(&n, sizeof n, 1, file);
        fwrite(blocks[k]->data, blocks[k]->n_insns + blocks[k]->n_bytes, 1, file);
    }
}
// The last of the numbers are first touches: misses in every cache.
static void add_distances(uint64_t *into, const struct stack *c) {
    for (unsigned k = 0; k < BINS; k++) into[k] += c->distances[k];
    into[BINS] += c->first_touches;
}
static void write_distances(FILE *file, const char *name, const uint64_t *numbers) {
    fprintf(file, "\"%s\": [", name);
    for (unsigned k = 0; k <= BINS; k++) fprintf(file, "%s%llu", k ? ", " : "", (unsigned long long)numbers[k]);
    fputs("]", file);
}
static void report(const char *ended) {
    struct counts t = {0};
    uint64_t near[BINS + 1] = {0}, far[BINS + 1] = {0};
    uint64_t busiest = busiest_thread;
    for (unsigned i = 0; i <= highest_cpu; i++) {
        struct cpu *c = cpus[i];
        if (!c) continue;
        if (c->era != era) clear(c);
        for (unsigned k = 0; k < CONTEXTS; k++) settle(c, &c->contexts[k]);
        const uint64_t *from = (const uint64_t *)&c->counts;
        uint64_t *into = (uint64_t *)&t;
        for (size_t k = 0; k < sizeof t / sizeof *into; k++) into[k] += from[k];
        // A thread with little data has no need of its near stack.
        add_distances(near, c->near.slots ? &c->near : &c->far);
        add_distances(far, &c->far);
        if (c->thread_instructions > busiest) busiest = c->thread_instructions;
    }
    FILE *file = fopen(report_path, "we");
    if (!file) return;
#define NUMBER(name, value) fprintf(file, "\"%s\": %llu, ", name, (unsigned long long)(value))
    fprintf(file, "{\"version\": 1, \"ended\": \"%s\", \"forked\": %s, \"main\": %s, \"marked\": %s, ", ended,
            forked ? "true" : "false", marks.main_seen ? "true" : "false", marks.marked || marks.toggles ? "true" : "false");
    NUMBER("instructions", t.instructions);
    NUMBER("loads", t.accesses[0]);
    NUMBER("stores", t.accesses[1]);
    NUMBER("bytes_loaded", t.bytes[0]);
    NUMBER("bytes_stored", t.bytes[1]);
    NUMBER("sequential", t.sequential);
    NUMBER("irregular", t.irregular);
    fputs("\"d1_misses\": {", file);
    for (unsigned i = 0; i < n_first; i++)
        fprintf(file, "%s\"%u,%u\": %llu", i ? ", " : "", first[i].sets, first[i].ways, (unsigned long long)t.d1_misses[i]);
    fputs("}, ", file);
    NUMBER("footprint_bytes", footprint());
    NUMBER("conditional", t.conditional);
    NUMBER("conditional_missed", t.conditional_missed);
    NUMBER("indirect", t.indirect);
    NUMBER("indirect_missed", t.indirect_missed);
    NUMBER("unsure", t.unsure);
    NUMBER("threads", threads);
    NUMBER("busiest_thread", busiest);
    NUMBER("files_opened", t.files_opened);
    NUMBER("bytes_read", t.bytes_read);
    NUMBER("startup_instructions", marks.startup_instructions);
    NUMBER("startup_files_opened", marks.startup_files);
    NUMBER("startup_bytes_read", marks.startup_bytes);
    NUMBER("parallel_regions", marks.parallel_regions);
    NUMBER("parallel_instructions", marks.parallel_instructions);
    NUMBER("blocks_left_out", blocks_left_out);
    write_distances(file, "near", near);
    fputs(", ", file);
    write_distances(file, "far", far);
    fputs("}\n", file);
    write_blocks(file);
    fclose(file);
}
// Reports what was counted so far and goes on from 0, caches as they are: what came since the last report is a part.
static void dump(void) {
    report("dump");
    open_report();
    start_over();
    marks.startup_instructions = marks.startup_files = marks.startup_bytes = 0;
    threads = 1;
}
static void on_exit_of_program(plugin_id id, void *data) {
    (void)id, (void)data;
    report("exit");
}

// System calls, by their numbers on each machine.

struct calls { int64_t open[4], read[4], fork[3], exec[2]; };
static const struct calls calls_on_x86 = {{2, 257, 85, 437}, {0, 17, 19, 295}, {56, 57, 58}, {59, 322}};
static const struct calls calls_on_arm = {{-1, 56, -1, 437}, {63, 67, 65, 69}, {220, -1, -1}, {221, 281}};
static const struct calls *calls;
#define AMONG(number, list) among(number, list, sizeof(list) / sizeof *(list))
static bool among(int64_t number, const int64_t *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (list[i] == number) return true;
    return false;
}
static void on_call(plugin_id id, unsigned vcpu, int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                    uint64_t f, uint64_t g, uint64_t h) {
    (void)id, (void)vcpu, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
    // What is not written now is lost if another program takes this process over.
    if (AMONG(number, calls->exec)) report("exec");
}
static void on_return(plugin_id id, unsigned vcpu, int64_t number, int64_t result) {
    (void)id;
    struct cpu *c = cpus[vcpu];
    if (AMONG(number, calls->fork) && result == 0 && getpid() != pid) {
        // A child: what its parent counted is not its own.
        start_over();
        marks.startup_instructions = marks.startup_files = marks.startup_bytes = 0;
        forked = true;
        threads = 1;
        open_report();
    } else if (!on || result < 0) {
        return;
    } else if (AMONG(number, calls->open)) {
        c->counts.files_opened++;
    } else if (AMONG(number, calls->read)) {
        c->counts.bytes_read += (uint64_t)result;
    }
}
static void on_thread(plugin_id id, unsigned vcpu) {
    (void)id;
    pthread_mutex_lock(&lock);
    threads++;
    struct cpu *c = cpus[vcpu];
    if (c) {
        // The thread before it has ended; its caches stay, as those of a core would.
        if (c->era == era && c->thread_instructions > busiest_thread) busiest_thread = c->thread_instructions;
        c->thread_instructions = 0;
        c->previous = NULL;
    } else {
        c = zeroed(1, sizeof *c);
        c->far.threshold = UINT64_MAX;
        c->part = 1;
        c->era = era;
        c->far.slots = zeroed(SLOTS, sizeof *c->far.slots);
        c->contexts = zeroed(CONTEXTS, sizeof *c->contexts);
        for (unsigned i = 0; i < n_first; i++) c->d1[i] = zeroed((size_t)first[i].sets * first[i].ways, sizeof **c->d1);
        cpus[vcpu] = c;
        if (vcpu > highest_cpu) highest_cpu = vcpu;
    }
    pthread_mutex_unlock(&lock);
}

PUBLIC int qemu_plugin_install(plugin_id id, const struct qemu_info *info, int argc, char **argv) {
    (void)argc, (void)argv;
    api = info->version.cur;
    on_x86 = !strcmp(info->target_name, "x86_64");
    on_arm = !strcmp(info->target_name, "aarch64");
    calls = on_arm ? &calls_on_arm : &calls_on_x86;
    folder = getenv("CROSSPERF_QEMU_OUT");
    if (!folder) return 1;
    marks.toggles = getenv("CROSSPERF_QEMU_TOGGLES") != NULL;
    const char *d1 = getenv("CROSSPERF_QEMU_D1");  // SETS,WAYS, and others after spaces
    while (d1 && n_first < MOST_FIRST) {
        struct first cache = {0, 0};
        if (sscanf(d1, "%u,%u", &cache.sets, &cache.ways) != 2) break;
        if (cache.sets && cache.ways && cache.sets <= MOST_SETS && cache.ways <= MOST_WAYS) first[n_first++] = cache;
        d1 = strchr(d1, ' ');
        if (d1) d1++;
    }
    switch_counting();
    open_report();
    qemu_plugin_register_vcpu_init_cb(id, on_thread);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_vcpu_syscall_cb(id, on_call);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_return);
    qemu_plugin_register_atexit_cb(id, on_exit_of_program, NULL);
    return 0;
}

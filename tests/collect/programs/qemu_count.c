// A plugin for qemu's user mode: counts executed instructions, and those that qemu's own disassembler spells as
// floating-point arithmetic. A second road to what callgrind and our sorting count, with nothing in common but the
// program. Only the few functions of the plugin interface (version 1) that are used are declared, since Debian
// ships qemu without its header.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct block;
struct instruction;
typedef void (*on_new_block)(uint64_t plugin, struct block *block);
typedef void (*on_block)(unsigned cpu, void *data);
typedef void (*on_end)(uint64_t plugin, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t plugin, on_new_block call);
void qemu_plugin_register_vcpu_tb_exec_cb(struct block *block, on_block call, int flags, void *data);
void qemu_plugin_register_atexit_cb(uint64_t plugin, on_end call, void *data);
size_t qemu_plugin_tb_n_insns(const struct block *block);
struct instruction *qemu_plugin_tb_get_insn(const struct block *block, size_t index);
char *qemu_plugin_insn_disas(const struct instruction *instruction);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

struct tally {
    uint64_t instructions, floats;
};
static struct tally total;

static int is_float(const char *text) {
    static const char *const stems[] = {"add", "sub", "mul", "div", "sqrt", "min", "max", "ucomi", "comi", "cmp", "round"};
    char name[32];
    if (sscanf(text, "%31s", name) != 1) return 0;
    const char *stem = name[0] == 'v' ? name + 1 : name;
    if (strncmp(stem, "cvt", 3) == 0) return 1;
    size_t length = strlen(stem);
    if (length < 4) return 0;
    const char *kind = stem + length - 2;
    if (strcmp(kind, "sd") && strcmp(kind, "ss") && strcmp(kind, "pd") && strcmp(kind, "ps")) return 0;
    if (strncmp(stem, "fm", 2) == 0 || strncmp(stem, "fnm", 3) == 0) return 1;
    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++)
        if (strncmp(stem, stems[i], strlen(stems[i])) == 0) return strstr(text, "mm") != NULL;
    return 0;
}

static void execute(unsigned cpu, void *data) {
    (void)cpu;
    const struct tally *block = data;
    __atomic_fetch_add(&total.instructions, block->instructions, __ATOMIC_RELAXED);
    __atomic_fetch_add(&total.floats, block->floats, __ATOMIC_RELAXED);
}

static void translate(uint64_t plugin, struct block *block) {
    (void)plugin;
    struct tally *tally = calloc(1, sizeof *tally);
    tally->instructions = qemu_plugin_tb_n_insns(block);
    for (size_t i = 0; i < tally->instructions; i++) {
        char *text = qemu_plugin_insn_disas(qemu_plugin_tb_get_insn(block, i));
        tally->floats += is_float(text);
        free(text);
    }
    qemu_plugin_register_vcpu_tb_exec_cb(block, execute, 0, tally);
}

static void finish(uint64_t plugin, void *data) {
    (void)plugin;
    (void)data;
    const char *path = getenv("QEMU_COUNT_FILE");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%lu %lu\n", total.instructions, total.floats);
    fclose(file);
}

int qemu_plugin_install(uint64_t plugin, const void *info, int argc, char **argv) {
    (void)info, (void)argc, (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(plugin, translate);
    qemu_plugin_register_atexit_cb(plugin, finish, NULL);
    return 0;
}

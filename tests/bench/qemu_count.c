/* A plugin of user-mode QEMU that counts the aarch64 instructions a program retires, by class and
 * by function:
 *
 *   qemu-aarch64 -plugin libqemu_count.so -d plugin PROGRAM …
 *
 * prints lines "class COUNT" and "function NAME COUNT" at exit. Debian ships no qemu-plugin.h, so
 * the part of the interface (version 1) that is used is declared here. One thread. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- QEMU's interface ---- */

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t, void (*)(uint64_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, enum qemu_plugin_op, void *,
                                              uint64_t);
void qemu_plugin_register_atexit_cb(uint64_t, void (*)(uint64_t, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
const char *qemu_plugin_insn_symbol(const struct qemu_plugin_insn *);
void qemu_plugin_outs(const char *);

#define EXPORT __attribute__((visibility("default")))
extern EXPORT int qemu_plugin_version;
EXPORT int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv);
int qemu_plugin_version = 1;

/* ---- classes of instructions ---- */

enum class {
    ALL,
    DOT,         /* sdot, udot, usdot */
    MMLA,        /* smmla, ummla, usmmla, bfmmla */
    FMLA,        /* vector fmla, fmls, fmul */
    MLAL,        /* smlal, umlal, smull, umull */
    VECTOR_LOAD, /* into SIMD registers */
    VECTOR_STORE,
    VECTOR_OTHER,
    LOAD,
    STORE,
    BRANCH,
    OTHER,
    CLASSES
};

static const char *const class_name[CLASSES] = {
    "all",          "dot",          "mmla", "fmla",  "mlal",   "vector-load",
    "vector-store", "vector-other", "load", "store", "branch", "other"};

static bool is(uint32_t word, uint32_t mask, uint32_t value)
{
    return (word & mask) == value;
}

static enum class memory_class(uint32_t w) {
    const bool vector = (w >> 26 & 1) != 0; const uint32_t opc = w >> 22 & 3;
    bool load = (opc & 1) != 0; /* most forms: bit 22 */
    if (is(w, 0x3b000000, 0x18000000)){
        load = true; /* literal */
    }
else if (is(w, 0x3a000000, 0x28000000) || is(w, 0xbe000000, 0x0c000000))
{
    load = (w >> 22 & 1) != 0; /* pairs, structures */
}
else if (vector)
{
    load = (opc & 1) != 0; /* 128-bit registers: opc 2 stores, 3 loads */
}
else if (is(w, 0x3a000000, 0x38000000))
{
    load = opc != 0; /* sign-extending loads */
}
return vector ? (load ? VECTOR_LOAD : VECTOR_STORE) : (load ? LOAD : STORE);
}

static enum class vector_class(uint32_t w) {
    if (is(w, 0x9f20fc00, 0x0e009400) || is(w, 0x9f00f400, 0x0f00e000) ||
        is(w, 0xbf20fc00, 0x0e809c00) || is(w, 0xbfc0f400, 0x0f00f000)){return DOT;}
if (is(w, 0xffe0f400, 0x4e80a400) || is(w, 0xffe0fc00, 0x6e80a400) || is(w, 0xffe0fc00, 0x6e40ec00))
{
    return MMLA;
}
if (is(w, 0xbf20fc00, 0x0e20cc00) || is(w, 0xbf80b400, 0x0f801000) ||
    is(w, 0xbfa0fc00, 0x2e20dc00) || is(w, 0xbf80f400, 0x0f809000)) {
    return FMLA;
}
if (is(w, 0x9f20dc00, 0x0e208000) || is(w, 0x9f20fc00, 0x0e20c000) ||
    is(w, 0x9f00f400, 0x0f002000) || is(w, 0x9f00f400, 0x0f00a000)) {
    return MLAL;
}
return VECTOR_OTHER;
}

static enum class class_of(uint32_t word) {
    const uint32_t group = word >> 25 & 15; return (group & 14) == 10 ? BRANCH
                                                   : (group & 5) == 4 ? memory_class(word)
                                                   : (group & 7) == 7 ? vector_class(word)
                                                                      : OTHER;
}

/* ---- counting ---- */

enum { FUNCTIONS = 4096 };

static uint64_t count_of[CLASSES];
static struct {
    const char *name;
    uint64_t count;
} function[FUNCTIONS];

static uint64_t *function_count(const char *name)
{
    name = name ? name : "?";
    size_t i = 0;
    while (i < FUNCTIONS - 1 && function[i].name && strcmp(function[i].name, name) != 0) {
        i++;
    }
    if (!function[i].name) {
        function[i].name = i < FUNCTIONS - 1 ? name : "(others)";
    }
    return &function[i].count;
}

static void translated(uint64_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    uint64_t added[CLASSES] = {0};
    const size_t count = qemu_plugin_tb_n_insns(block);
    for (size_t i = 0; i < count; i++) {
        uint32_t word = 0;
        memcpy(&word, qemu_plugin_insn_data(qemu_plugin_tb_get_insn(block, i)), sizeof(word));
        added[class_of(word)]++;
    }
    added[ALL] = count;
    for (size_t i = 0; i < CLASSES; i++) {
        if (added[i] > 0) {
            qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64,
                                                     &count_of[i], added[i]);
        }
    }
    const char *name = qemu_plugin_insn_symbol(qemu_plugin_tb_get_insn(block, 0));
    qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64,
                                             function_count(name), count);
}

static void print(const char *kind, const char *name, uint64_t count)
{
    char line[256];
    (void)snprintf(line, sizeof(line), "%s%.200s %llu\n", kind, name, (unsigned long long)count);
    qemu_plugin_outs(line);
}

static void ended(uint64_t id, void *context)
{
    (void)id;
    (void)context;
    for (size_t i = 0; i < CLASSES; i++) {
        print("", class_name[i], count_of[i]);
    }
    for (size_t i = 0; i < FUNCTIONS && function[i].name; i++) {
        print("function ", function[i].name, function[i].count);
    }
}

int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv)
{
    (void)info;
    (void)argc;
    (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}

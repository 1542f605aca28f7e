#include "tests/kernels/check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "engine/base/cpu.h"
#include "engine/base/peak.h"

enum {
    GUARD = 128,
    GUARD_BYTE = 0xa5,
    PAGE = 65536 /* at least the system's page */
};

static uint64_t random_state = 0x9e3779b97f4a7c15u;
static int failures;

static uint32_t next_random(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

int check_int(int lo, int hi)
{
    return lo + (int)(next_random() % ((uint32_t)(hi - lo) + 1u));
}

float check_float(float lo, float hi)
{
    return lo + (hi - lo) * ((float)(next_random() >> 8) / 16777216.0f);
}

float check_factor(int32_t multiplier, int32_t shift)
{
    return (float)ldexp((double)multiplier, shift - 31);
}

static void *map_bytes(size_t bytes)
{
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return map;
}

struct check_buffer check_input(size_t bytes)
{
    size_t body = (bytes + 64 + PAGE - 1) / PAGE * PAGE;
    struct check_buffer buffer = {.bytes = bytes, .map_bytes = body + PAGE};
    buffer.map = map_bytes(buffer.map_bytes);
    mprotect((char *)buffer.map + body, PAGE, PROT_NONE);
    buffer.data = (char *)buffer.map + body - 64 - bytes;
    /* not zero: a kernel that lets over-read bytes through fails */
    memset((char *)buffer.data + bytes, 0xff, 64);
    return buffer;
}

struct check_buffer check_output(size_t bytes)
{
    struct check_buffer buffer = {.bytes = bytes, .map_bytes = bytes + 2 * GUARD};
    buffer.map = map_bytes(buffer.map_bytes);
    memset(buffer.map, GUARD_BYTE, buffer.map_bytes);
    buffer.data = (char *)buffer.map + GUARD;
    return buffer;
}

bool check_guards(const struct check_buffer *buffer)
{
    const unsigned char *before = buffer->map;
    const unsigned char *after = (const unsigned char *)buffer->data + buffer->bytes;
    for (size_t i = 0; i < GUARD; i++) {
        if (before[i] != GUARD_BYTE || after[i] != GUARD_BYTE) {
            return false;
        }
    }
    return true;
}

void check_free(struct check_buffer *buffer)
{
    munmap(buffer->map, buffer->map_bytes);
    *buffer = (struct check_buffer){0};
}

void check_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (failures++ < 20) {
        vprintf(format, args);
        printf("\n");
    }
    va_end(args);
}

/* ---- tables ---- */

#define FAMILY(name)                                                                               \
    {                                                                                              \
#name, offsetof(struct ifd_kernels, name), sizeof(((struct ifd_kernels *)NULL)->name), 0   \
    }

static struct {
    const char *name;
    size_t offset, bytes;
    uint32_t ran; /* bit i: instruction set i */
} families[] = {
    FAMILY(gemm_q8),  FAMILY(gemm_f32),  FAMILY(gemm_bf16), FAMILY(gemm_f16), FAMILY(dense),
    FAMILY(gemm_s16), FAMILY(dw_q8),     FAMILY(dw_f32),    FAMILY(wino),     FAMILY(wino_q8),
    FAMILY(eltwise),  FAMILY(quant),     FAMILY(reduce),    FAMILY(pool),     FAMILY(move),
    FAMILY(extreme),  FAMILY(dw_groups),
};
#undef FAMILY

static size_t family_by_name(const char *name, size_t length)
{
    for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
        if (strlen(families[f].name) == length && memcmp(families[f].name, name, length) == 0) {
            return f;
        }
    }
    fprintf(stderr, "no family %s\n", name);
    exit(1);
}

#if defined(__x86_64__)
extern const struct ifd_kern_gemm_q8 check_tiles_gemm_q8_amx;
extern const struct ifd_kern_gemm_f32 check_tiles_gemm_bf16_amxbf16;

/* AMX's tables over tiles in plain C (tiles.h). */
static bool emulated_isa(size_t i, struct ifd_kernels_isa *ret_isa)
{
    const uint32_t avx512 = IFD_CPU_AVX2 | IFD_CPU_AVX512;
    *ret_isa = (struct ifd_kernels_isa){.name = NULL};
    if (i == 0) {
        ret_isa->name = "amx-emulated";
        ret_isa->cpu_flags = avx512 | IFD_CPU_AVX512_VNNI;
        ret_isa->kernels.gemm_q8 = check_tiles_gemm_q8_amx;
    } else if (i == 1) {
        ret_isa->name = "amxbf16-emulated";
        ret_isa->cpu_flags = avx512 | IFD_CPU_AVX512_BF16;
        ret_isa->kernels.gemm_bf16 = check_tiles_gemm_bf16_amxbf16;
    }
    return ret_isa->name != NULL;
}
#else
static bool emulated_isa(size_t i, struct ifd_kernels_isa *ret_isa)
{
    (void)i;
    (void)ret_isa;
    return false;
}
#endif

/* The instruction sets that programs choose from, then the emulated ones. False: no more. */
static bool isa_at(size_t i, struct ifd_kernels_isa *ret_isa)
{
    size_t count = 0;
    if (ifd_kernels_isa(i, ret_isa)) {
        return true;
    }
    while (ifd_kernels_isa(count, ret_isa)) {
        count++;
    }
    return emulated_isa(i - count, ret_isa);
}

static bool has_table(const struct ifd_kernels_isa *isa, size_t family)
{
    const unsigned char *table = (const unsigned char *)&isa->kernels + families[family].offset;
    for (size_t i = 0; i < families[family].bytes; i++) {
        if (table[i] != 0) {
            return true;
        }
    }
    return false;
}

bool check_next(const char *family, size_t *at, struct ifd_kernels_isa *ret_isa)
{
    const size_t f = family_by_name(family, strlen(family));
    while (isa_at(*at, ret_isa)) {
        const uint32_t bit = UINT32_C(1) << (*at)++;
        if ((check_cpu() & ret_isa->cpu_flags) == ret_isa->cpu_flags && has_table(ret_isa, f)) {
            families[f].ran |= bit;
            return true;
        }
    }
    return false;
}

/* Flags of this CPU as the compiler's library detects them; 0 on Arm. Without AMX, which needs a
 * permission. */
static uint32_t cpu_otherwise(void)
{
    uint32_t flags = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2")) {
        flags |= IFD_CPU_AVX2;
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd")) {
        flags |= IFD_CPU_AVX512;
        flags |= __builtin_cpu_supports("avx512vnni") ? (uint32_t)IFD_CPU_AVX512_VNNI : 0;
        flags |= __builtin_cpu_supports("avx512vbmi") ? (uint32_t)IFD_CPU_AVX512_VBMI : 0;
        flags |= __builtin_cpu_supports("avx512bf16") ? (uint32_t)IFD_CPU_AVX512_BF16 : 0;
    }
#endif
    return flags;
}

static void print_tables(size_t family)
{
    const uint32_t cpu = check_cpu() | cpu_otherwise();
    struct ifd_kernels_isa isa;
    printf("ISA tables run: %s:", families[family].name);
    for (size_t i = 0; isa_at(i, &isa); i++) {
        printf("%s%s", families[family].ran >> i & 1 ? " " : "",
               families[family].ran >> i & 1 ? isa.name : "");
    }
    bool all = true;
    printf("; not run:");
    for (size_t i = 0; isa_at(i, &isa); i++) {
        if (has_table(&isa, family) && !(families[family].ran >> i & 1)) {
            const bool can_run = (cpu & isa.cpu_flags) == isa.cpu_flags;
            printf(" %s%s", isa.name, can_run ? " (which this CPU can run)" : "");
            failures += can_run;
            all = false;
        }
    }
    printf("%s\n", all ? " none" : "");
}

int check_end(const char *names)
{
    for (const char *name = names; *name; name += *name == ' ') {
        const size_t length = strcspn(name, " ");
        print_tables(family_by_name(name, length));
        name += length;
    }
    printf("%s: %d failures\n", names, failures);
    return failures != 0;
}

uint32_t check_cpu(void)
{
    static struct ifd_cpu cpu;
    if (cpu.cores == 0) {
        ifd_cpu_detect(&cpu);
    }
    return cpu.flags;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double check_time(void (*call)(void *), void *arg)
{
    double start = now();
    call(arg);
    double once = now() - start;
    int repeat = once > 0.0 ? (int)(0.001 / once) + 1 : 1000;
    double best = 1e9;
    for (int round = 0; round < 15; round++) {
        start = now();
        for (int i = 0; i < repeat; i++) {
            call(arg);
        }
        double each = (now() - start) / repeat;
        best = each < best ? each : best;
    }
    return best;
}

double check_peak_f32(void)
{
    return ifd_peak_f32(check_cpu());
}

double check_peak_q8(void)
{
    return ifd_peak_q8(check_cpu());
}

/* Instruction-set features and caches. The only file with architecture branches outside the
 * kernels. */
#include "engine/base/cpu.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/platform/x86.h>
#include <sys/syscall.h>
#elif defined(__aarch64__) || defined(__arm__)
#include <sys/auxv.h>
#endif

static const struct {
    uint32_t flag;
    const char *name;
} flag_names[] = {
    {IFD_CPU_AVX2, "avx2"},
    {IFD_CPU_AVX512, "avx512"},
    {IFD_CPU_AVX512_VNNI, "avx512_vnni"},
    {IFD_CPU_AVX512_VBMI, "avx512_vbmi"},
    {IFD_CPU_AVX512_BF16, "avx512_bf16"},
    {IFD_CPU_AVX_VNNI, "avx_vnni"},
    {IFD_CPU_AMX_INT8, "amx_int8"},
    {IFD_CPU_AMX_BF16, "amx_bf16"},
    {IFD_CPU_AVX512_HALVES, "avx512_halves"},
    {IFD_CPU_NEON, "neon"},
    {IFD_CPU_DOTPROD, "dotprod"},
    {IFD_CPU_FP16, "fp16"},
    {IFD_CPU_I8MM, "i8mm"},
    {IFD_CPU_BF16, "bf16"},
};

#define FLAG_COUNT (sizeof(flag_names) / sizeof(flag_names[0]))

#if defined(__x86_64__)

/* A CPUID register, without the bits that the operating system does not enable. The C library
 * read it at start: CPUID costs a virtual machine up to 30 µs. */
static uint32_t active(unsigned leaf, unsigned index)
{
    return __x86_get_cpuid_feature_leaf(leaf)->active_array[index];
}

/* Linux grants AMX tile registers only on request; a second request is harmless. */
static bool may_use_tiles(void)
{
    enum {
        REQUEST_PERMISSION = 0x1023, /* ARCH_REQ_XCOMP_PERM */
        TILE_DATA = 18
    };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

/* AMD's processors report the width of their data path (leaf 0x8000001a); Intel's do not have
 * this leaf. */
static bool computes_in_halves(void)
{
    enum { LEAF = 0x1a, WIDTH_256 = 1 << 2, WIDTH_512 = 1 << 3 };
    uint32_t a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000000 | LEAF, &a, &b, &c, &d) &&
           (a & (WIDTH_256 | WIDTH_512)) == WIDTH_256;
}

static uint32_t detect_flags(void)
{
    const uint32_t c1 = active(CPUID_INDEX_1, cpuid_register_index_ecx);
    const uint32_t b = active(CPUID_INDEX_7, cpuid_register_index_ebx);
    const uint32_t c = active(CPUID_INDEX_7, cpuid_register_index_ecx);
    const uint32_t d = active(CPUID_INDEX_7, cpuid_register_index_edx);
    const uint32_t a71 = active(CPUID_INDEX_7_ECX_1, cpuid_register_index_eax);
    uint32_t flags = 0;
    const bool fma = (c1 & bit_FMA) && (c1 & bit_F16C) && (c1 & bit_AVX);
    if (fma && (b & bit_AVX2) && (b & bit_BMI2)) {
        flags |= IFD_CPU_AVX2;
    }
    const uint32_t v4 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL | bit_AVX512CD;
    if ((flags & IFD_CPU_AVX2) && (b & v4) == v4) {
        flags |= IFD_CPU_AVX512;
        flags |= (c & bit_AVX512VNNI) ? (uint32_t)IFD_CPU_AVX512_VNNI : 0;
        flags |= (c & bit_AVX512VBMI) ? (uint32_t)IFD_CPU_AVX512_VBMI : 0;
        if (a71 & (1u << 5)) {
            flags |= IFD_CPU_AVX512_BF16;
        }
        flags |= computes_in_halves() ? (uint32_t)IFD_CPU_AVX512_HALVES : 0;
    }
    if ((flags & IFD_CPU_AVX2) && (a71 & (1u << 4))) {
        flags |= IFD_CPU_AVX_VNNI;
    }
    const uint32_t amx_int8 = 1u << 25, amx_bf16 = 1u << 22;
    if ((flags & IFD_CPU_AVX512) && (d & (amx_int8 | amx_bf16)) && may_use_tiles()) {
        flags |= (d & amx_int8) ? (uint32_t)IFD_CPU_AMX_INT8 : 0;
        flags |= (d & amx_bf16) ? (uint32_t)IFD_CPU_AMX_BF16 : 0;
    }
    return flags;
}

#elif defined(__aarch64__)

static uint32_t detect_flags(void)
{
    unsigned long caps = getauxval(AT_HWCAP);
    unsigned long caps2 = getauxval(AT_HWCAP2);
    uint32_t flags = IFD_CPU_NEON;
    flags |= (caps & (1ul << 20)) ? (uint32_t)IFD_CPU_DOTPROD : 0;
    flags |= (caps & (1ul << 10)) ? (uint32_t)IFD_CPU_FP16 : 0;
    flags |= (caps2 & (1ul << 13)) ? (uint32_t)IFD_CPU_I8MM : 0;
    flags |= (caps2 & (1ul << 14)) ? (uint32_t)IFD_CPU_BF16 : 0;
    return flags;
}

#elif defined(__arm__)

static uint32_t detect_flags(void)
{
    return (getauxval(AT_HWCAP) & (1ul << 12)) ? IFD_CPU_NEON : 0;
}

#else

static uint32_t detect_flags(void)
{
    return 0;
}

#endif

/* Reads the start of a small file in a cache's folder; false if there is none. */
static bool read_word(const char *folder, unsigned index, const char *file, char text[16])
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/index%u/%s", folder, index, file);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd >= 0 ? read(fd, text, 15) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

/* From "512K". */
static size_t bytes_of(const char *text)
{
    char *end = NULL;
    const unsigned long number = strtoul(text, &end, 10);
    const size_t unit = *end == 'K' ? 1 << 10 : *end == 'M' ? 1 << 20 : 1;
    return number <= ((size_t)1 << 30) / unit ? number * unit : 0;
}

size_t ifd_cpu_cache_bytes(const char *folder, unsigned level)
{
    char text[16], type[16];
    for (unsigned i = 0; read_word(folder, i, "level", text); i++) {
        if (strtoul(text, NULL, 10) == level && read_word(folder, i, "type", type) &&
            strncmp(type, "Instruction", 11) != 0 && read_word(folder, i, "size", text)) {
            return bytes_of(text);
        }
    }
    return 0;
}

/* Of the set's first core. Where cores differ, small ones mostly come first, and what fits their
 * caches fits all. */
static size_t cache_bytes(const cpu_set_t *set, int name, unsigned level)
{
    char folder[64];
    size_t core = 0;
    while (core < CPU_SETSIZE - 1 && !CPU_ISSET(core, set)) {
        core++;
    }
    const long bytes = sysconf(name);
    (void)snprintf(folder, sizeof(folder), "/sys/devices/system/cpu/cpu%zu/cache", core);
    return bytes > 0 ? (size_t)bytes : ifd_cpu_cache_bytes(folder, level);
}

void ifd_cpu_detect(struct ifd_cpu *ret)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    int cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    *ret = (struct ifd_cpu){
        .flags = detect_flags(),
        .cores = cores > 0 ? (uint32_t)cores : 1,
        .l1d_bytes = cache_bytes(&set, _SC_LEVEL1_DCACHE_SIZE, 1),
        .l2_bytes = cache_bytes(&set, _SC_LEVEL2_CACHE_SIZE, 2),
        .l3_bytes = cache_bytes(&set, _SC_LEVEL3_CACHE_SIZE, 3),
    };
}

void ifd_cpu_text(uint32_t flags, char *text, size_t size)
{
    size_t used = 0;
    (void)snprintf(text, size, "none");
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        if ((flags & flag_names[i].flag) && used < size) {
            int length =
                snprintf(text + used, size - used, "%s%s", used ? " " : "", flag_names[i].name);
            used += length > 0 ? (size_t)length : 0;
        }
    }
}

uint32_t ifd_cpu_flag_by_name(const char *name, size_t size)
{
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        if (strlen(flag_names[i].name) == size && memcmp(flag_names[i].name, name, size) == 0) {
            return flag_names[i].flag;
        }
    }
    return 0;
}

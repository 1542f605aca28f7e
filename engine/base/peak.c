/* Loops of twelve independent instructions: enough to hide their latency on any core. */
#include "engine/base/peak.h"

#include "engine/base/clock.h"
#include "inferd/machine.h"

#include <stddef.h>

#if defined(__x86_64__) || defined(__aarch64__)

#define LOOPS  10000
#define ROUNDS 15

typedef void (*loop_fn)(long count);

/* The best of several rounds: disturbances only make a round slower. */
static double rate(loop_fn loop, double macs)
{
    double best = 0.0;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t start = ifd_monotonic_ns();
        loop(LOOPS);
        const uint64_t ns = ifd_monotonic_ns() - start;
        const double now = ns > 0 ? macs * LOOPS / (double)ns : 0.0;
        best = now > best ? now : best;
    }
    return best;
}

#endif

#if defined(__x86_64__)

#define TWELVE(op, s, a, b)                                                                        \
    op " %%" s a ",%%" s b ",%%" s "0\n" op " %%" s a ",%%" s b ",%%" s "1\n" op " %%" s a         \
       ",%%" s b ",%%" s "2\n" op " %%" s a ",%%" s b ",%%" s "3\n" op " %%" s a ",%%" s b ",%%" s \
       "4\n" op " %%" s a ",%%" s b ",%%" s "5\n" op " %%" s a ",%%" s b ",%%" s "6\n" op          \
       " %%" s a ",%%" s b ",%%" s "7\n" op " %%" s a ",%%" s b ",%%" s "8\n" op " %%" s a         \
       ",%%" s b ",%%" s "9\n" op " %%" s a ",%%" s b ",%%" s "10\n" op " %%" s a ",%%" s b        \
       ",%%" s "11\n"
/* Zeroes first: denormal leftovers would slow the multiplications down. */
#define LOOP(clear, op, s, a, b)                                                                   \
    __asm__ volatile("vzeroall\n" clear "1:\n" TWELVE(op, s, a, b) "dec %0\njnz 1b\nvzeroupper\n"  \
                     : "+r"(count)::"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",        \
                       "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",        \
                       "xmm15")
#define CLEAR_512 "vmovaps %%zmm0,%%zmm30\nvmovaps %%zmm0,%%zmm31\n"

static void fma_512(long count)
{
    LOOP(CLEAR_512, "vfmadd231ps", "zmm", "30", "31");
}

static void fma_256(long count)
{
    LOOP("", "vfmadd231ps", "ymm", "14", "15");
}

static void dot_512(long count)
{
    LOOP(CLEAR_512, "vpdpbusd", "zmm", "30", "31");
}

static void madd_256(long count)
{
    LOOP("", "vpmaddwd", "ymm", "14", "15");
}

/* Six products of tiles, each of 16 rows of 64 bytes. */
static void dot_tiles(long count)
{
    struct {
        uint8_t palette, start, zero[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.row_bytes[i] = 64;
        config.rows[i] = 16;
    }
    __asm__ volatile("ldtilecfg (%1)\n"
                     "tilezero %%tmm0\ntilezero %%tmm1\ntilezero %%tmm2\ntilezero %%tmm3\n"
                     "tilezero %%tmm4\ntilezero %%tmm5\ntilezero %%tmm6\ntilezero %%tmm7\n"
                     "1:\n"
                     "tdpbusd %%tmm7,%%tmm6,%%tmm0\ntdpbusd %%tmm7,%%tmm6,%%tmm1\n"
                     "tdpbusd %%tmm7,%%tmm6,%%tmm2\ntdpbusd %%tmm7,%%tmm6,%%tmm3\n"
                     "tdpbusd %%tmm7,%%tmm6,%%tmm4\ntdpbusd %%tmm7,%%tmm6,%%tmm5\n"
                     "dec %0\njnz 1b\ntilerelease\n"
                     : "+r"(count)
                     : "r"(&config)
                     : "memory");
}

double ifd_peak_f32(uint32_t cpu_flags)
{
    return cpu_flags & IFD_CPU_AVX512 ? rate(fma_512, 12.0 * 16.0)
           : cpu_flags & IFD_CPU_AVX2 ? rate(fma_256, 12.0 * 8.0)
                                      : 0.0;
}

double ifd_peak_q8(uint32_t cpu_flags)
{
    return cpu_flags & IFD_CPU_AMX_INT8      ? rate(dot_tiles, 6.0 * 16.0 * 16.0 * 64.0)
           : cpu_flags & IFD_CPU_AVX512_VNNI ? rate(dot_512, 12.0 * 64.0)
           : cpu_flags & IFD_CPU_AVX2        ? rate(madd_256, 12.0 * 16.0)
                                             : 0.0;
}

#elif defined(__aarch64__)

#define TWELVE(op, to, from)                                                                       \
    op " v0." to ",v30." from ",v31." from "\n" op " v1." to ",v30." from ",v31." from "\n" op     \
       " v2." to ",v30." from ",v31." from "\n" op " v3." to ",v30." from ",v31." from "\n" op     \
       " v4." to ",v30." from ",v31." from "\n" op " v5." to ",v30." from ",v31." from "\n" op     \
       " v6." to ",v30." from ",v31." from "\n" op " v7." to ",v30." from ",v31." from "\n" op     \
       " v16." to ",v30." from ",v31." from "\n" op " v17." to ",v30." from ",v31." from "\n" op   \
       " v18." to ",v30." from ",v31." from "\n" op " v19." to ",v30." from ",v31." from "\n"
#define CLEAR                                                                                      \
    "movi v0.4s,#0\nmovi v1.4s,#0\nmovi v2.4s,#0\nmovi v3.4s,#0\nmovi v4.4s,#0\nmovi v5.4s,#0\n"   \
    "movi v6.4s,#0\nmovi v7.4s,#0\nmovi v16.4s,#0\nmovi v17.4s,#0\nmovi v18.4s,#0\n"               \
    "movi v19.4s,#0\nmovi v30.4s,#0\nmovi v31.4s,#0\n"
#define LOOP(arch, op, to, from)                                                                   \
    __asm__ volatile(arch CLEAR "1:\n" TWELVE(op, to, from) "subs %0,%0,#1\nb.ne 1b\n"             \
                     : "+r"(count)::"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17",  \
                       "v18", "v19", "v30", "v31", "cc")

static void fma_128(long count)
{
    LOOP("", "fmla", "4s", "4s");
}

static void dot_128(long count)
{
    LOOP(".arch armv8.2-a+dotprod\n", "sdot", "4s", "16b");
}

static void matrix_128(long count)
{
    LOOP(".arch armv8.2-a+i8mm\n", "smmla", "4s", "16b");
}

double ifd_peak_f32(uint32_t cpu_flags)
{
    return cpu_flags & IFD_CPU_NEON ? rate(fma_128, 12.0 * 4.0) : 0.0;
}

double ifd_peak_q8(uint32_t cpu_flags)
{
    return cpu_flags & IFD_CPU_I8MM      ? rate(matrix_128, 12.0 * 32.0)
           : cpu_flags & IFD_CPU_DOTPROD ? rate(dot_128, 12.0 * 16.0)
                                         : 0.0;
}

#else

double ifd_peak_f32(uint32_t cpu_flags)
{
    (void)cpu_flags;
    return 0.0;
}

double ifd_peak_q8(uint32_t cpu_flags)
{
    (void)cpu_flags;
    return 0.0;
}

#endif

#include "tests/kernels/check.h"

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
    /* what may be over-read is not zero: a kernel that lets it through is found out */
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

int check_end(const char *family)
{
    printf("%s on", family);
    struct ifd_kernels_isa isa;
    bool more = true;
    for (size_t i = 0; more; i++) {
        printf("%s%s", check_isa(i, &isa, &more) ? " " : "",
               more && check_isa(i, &isa, &more) ? isa.name : "");
    }
    printf(": %d failures\n", failures);
    return failures != 0;
}

uint32_t check_cpu(void)
{
    struct ifd_cpu cpu;
    ifd_cpu_detect(&cpu);
    return cpu.flags;
}

bool check_isa(size_t i, struct ifd_kernels_isa *ret_isa, bool *ret_more)
{
    *ret_more = ifd_kernels_isa(i, ret_isa) != 0;
    return *ret_more && (check_cpu() & ret_isa->cpu_flags) == ret_isa->cpu_flags;
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

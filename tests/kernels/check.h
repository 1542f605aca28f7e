/* Shared by the kernel tests: random numbers, buffers that detect overruns, the tables that this
 * CPU runs, timing.
 *
 * Every test compares each table of its family with an independent naive loop written in the
 * test. `--bench` prints speeds instead. Thread: one. */
#ifndef INFERD_TESTS_KERNELS_CHECK_H
#define INFERD_TESTS_KERNELS_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "backends/cpuacc/kernels/kernels.h"

/* Uniform in [lo, hi]. Deterministic from one run to the next. */
int check_int(int lo, int hi);
float check_float(float lo, float hi);

/* The factor that struct ifd_requant gives a channel, as IFD_ROUND_EVEN multiplies by it. */
float check_factor(int32_t multiplier, int32_t shift);

/* A buffer of exactly `bytes` bytes, 64-aligned at its start unless at_end. Inputs (at_end) are
 * followed by 64 readable bytes and an unreadable page; outputs lie between guard bytes. */
struct check_buffer {
    void *data;
    size_t bytes;
    void *map;
    size_t map_bytes;
};
struct check_buffer check_input(size_t bytes);
struct check_buffer check_output(size_t bytes);
/* Whether an output's guard bytes are intact. */
bool check_guards(const struct check_buffer *buffer);
void check_free(struct check_buffer *buffer);

/* Counts a failure and prints the first few. */
void check_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints a summary and, for each of the families (names with a blank between), which tables ran and
 * which did not; the exit status of main. A table that this CPU can run and that the test left out
 * is a failure. */
int check_end(const char *families);

/* enum ifd_cpu_flag bits of this CPU. */
uint32_t check_cpu(void);
/* The next instruction set that has a table of the family ("gemm_q8") and that this CPU runs,
 * weakest first; the table counts as run. *at begins at 0. False: no more. */
bool check_next(const char *family, size_t *at, struct ifd_kernels_isa *ret_isa);

/* Fastest of many calls, in seconds. */
double check_time(void (*call)(void *), void *arg);
/* Peak multiply-accumulates a second of this core, in 1e9: f32 and 8-bit; 0 where not measured. */
double check_peak_f32(void);
double check_peak_q8(void);

#endif

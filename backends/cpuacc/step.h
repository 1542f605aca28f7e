/** What a compiled partition is made of: steps, which all threads of the team run in order
 *  (schedule/team.h).
 *
 *  A step is a function and its parameters, immutable after compile. Places say where its tensors
 *  are; each run resolves them against its binding, so one partition serves any number of instances
 *  at once. */
#ifndef INFERD_BACKENDS_CPUACC_STEP_H
#define INFERD_BACKENDS_CPUACC_STEP_H

#include "backends/cpuacc/kernels/kernels.h"
#include "backends/lowering/place.h"

#define IFD_ACC_STEP_INPUTS 4
#define IFD_ACC_STEP_MORE   2 /* outputs behind the first */

/** How a run ends. Only single-threaded steps can fail, and the first thread runs those: nobody
 *  else writes here. Steps after a failed one run on; their results are discarded. */
struct ifd_acc_outcome {
    enum ifd_code code;
    struct ifd_err *err;
};

/** begin ≤ end */
struct ifd_acc_range {
    size_t begin, end;
};

/** One thread's view of a run, and the chunks that one call of a step computes. */
struct ifd_acc_frame {
    const struct ifd_binding *binding;
    const uint8_t *packed; /* the block that holds the step's packed constants */
    uint8_t *scratch;
    uint32_t thread;            /* whose work memory it is */
    uint32_t threads;           /* that share this step */
    size_t chunks;              /* of this step: a multiple of threads */
    struct ifd_acc_range chunk; /* those to compute */
    bool goes_on; /* they follow those of this thread's last call, which was of the same step */
    struct ifd_acc_outcome *outcome;
};

struct ifd_acc_step;
typedef void (*ifd_acc_step_fn)(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame);

/** Lines in a chain's buffer: bytes from line to line, and between two pixels. */
struct ifd_acc_pitch {
    size_t line, gap;
};

/** What one call of a step's lines->run computes: output lines begin … end-1 of one image.
 *  in:   line in_first of the image's input. All lines that the window needs are there, none from
 *        in_end on. If in_round, line y is at in + (y modulo in_round) lines
 *  out:  line begin of the output
 *  line: number of that line, counted over all images: where operands of the output's shape
 *        continue */
struct ifd_acc_strip {
    const uint8_t *in;
    size_t in_first, in_end, in_round;
    uint8_t *out;
    size_t begin, end, line;
    struct ifd_acc_pitch in_pitch, out_pitch;
};

/** A step that can compute some lines of an image from some lines of its input, so that it can run
 *  together with its neighbours, strip by strip (schedule/strips.c). Line y reads input lines
 *  y*stride - pad … + window - 1, as far as they exist. */
struct ifd_acc_lines {
    size_t batch, in_h, out_h;
    size_t in_line, out_line;   /* bytes from line to line */
    size_t in_pixel, out_pixel; /* bytes of a pixel where there may be gaps between them, else 0 */
    size_t window, stride, pad;
    bool is_q8, is_head; /* of 8 bits; a chain may begin with it, but not go on */
    bool goes_round;     /* run() honours in_round */
    void (*run)(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                const struct ifd_acc_strip *strip);
};

#define IFD_ACC_CHUNKS_MAX 8

struct ifd_acc_chain;

/** run: NULL for the steps of a chain after the first. lines: NULL for steps that cannot run strip
 *  by strip. */
struct ifd_acc_step {
    ifd_acc_step_fn run;
    const struct ifd_acc_lines *lines;
    const struct ifd_acc_chain *chain; /* of the first step of one */
    const void *params;                /* the operator's own, in the partition's arena */
    const struct ifd_kernels *kernels;
    struct ifd_low_place in[IFD_ACC_STEP_INPUTS];
    struct ifd_low_place out, more[IFD_ACC_STEP_MORE];
    /* The step's packed constants: the block that holds them, of this partition or an older one,
     * and their offset in it. */
    const uint8_t *block;
    size_t packed;
    bool is_gemm_f32; /* they begin with the weights of a product of f32, which is what it runs */
    const struct ifd_packed *later; /* weights that the next product of f32 reads; NULL if none */
    size_t work, work_stride;       /* scratch of the step: offset, bytes per thread */
    uint32_t max_threads; /* from its driver: that can share it; then: that pay (threads.c) */
    float rate;           /* multiply-accumulates per ns on a fast core; 0: bytes take the time */
    uint32_t chunks;      /* of a thread's part: from its driver: at most; then: that pay */
    bool joins;           /* threads wait behind it until all of it is done */
    struct ifd_step_info info;
};

const void *ifd_acc_in(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                       uint32_t index);
void *ifd_acc_out(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame);
/** NULL where there is none. */
void *ifd_acc_more_out(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                       uint32_t index);
/** This thread's part of the step's work memory. */
void *ifd_acc_work(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame);

/** The items of count that a call is for, in multiples of unit. The same chunks have the same items
 *  in every run, and mostly the same thread. */
struct ifd_acc_range ifd_acc_share(const struct ifd_acc_frame *frame, size_t count, size_t unit);

#endif

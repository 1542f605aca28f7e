/** Convolutions and fully connected layers: a layer, the algorithms that can compute it, and the
 *  plan of the chosen one.
 *
 *  nodes.c             the drivers: nodes become layers
 *  choose.c            the cheapest algorithm that fits a layer makes its step
 *  algorithm_list.inc  the algorithms, one file each:
 *    direct.c            plain: an output row reads one contiguous input row (1×1, fully connected)
 *                        lines: without dilation kw pixels of a line are contiguous, so a tap is
 *                        a line of the window
 *    rows.c              dilation: a table of row pointers; padding points to a row of zero points
 *    narrow.c            plain and lines with operands of 16 bits
 *    strassen.c          large plain gemms of f32
 *    winograd.c          f32 3×3 windows of enough channels
 *    winograd_q8.c       8-bit 3×3 windows, with the same results as the direct way
 *    in_place.c          large fully connected layers, whose weights are not packed
 *    groups.c            f32 windows over groups of channels
 *  run.c, patches.c    shared by the algorithms: threads, the tail
 *  shape.c pack.c q8.c precision.c
 *                      shared by the direct ones: rows of a call, packed weights, 8-bit sums,
 *                      kernels of f32 and narrower operands */
#ifndef INFERD_BACKENDS_CPUACC_CONV_LAYER_H
#define INFERD_BACKENDS_CPUACC_CONV_LAYER_H

#include "backends/cpuacc/ops/dynamic.h"
#include "backends/cpuacc/ops/tail.h"
#include "backends/lowering/window.h"

/** A layer as the node describes it. Immutable once it is lowered; the decisions of an algorithm
 *  are in its plan. */
struct ifd_acc_layer {
    struct ifd_acc_product product;
    struct ifd_low_window window;
    struct ifd_acc_tail tail;    /* applied to every tile while it is in the cache */
    size_t element, out_element; /* bytes: 1, 2 or 4 */
    size_t groups;               /* more than 1: window.in_c and out_c are those of one group */
    size_t out_c;
    size_t in_stride;  /* elements from pixel to pixel: more than in_c in a sub-tensor of a split */
    size_t out_stride; /* more than out_c inside of a concatenation */
    bool is_dense;     /* fully connected */
    bool is_plain;     /* every output row reads one contiguous input row */
    bool is_dilated;
    bool is_subtensor, is_slice;            /* in, out: sub-tensors along the channels */
    bool adds;                              /* a residual of floats */
    bool narrow_in, narrow_out, narrow_add; /* floats of 16 bits (narrow.h) */
    bool has_row_add;                       /* weights with a zero point */
};

struct ifd_acc_conv;
struct ifd_acc_conv_run;

/** The rows that a direct algorithm multiplies.
 *
 *  f32 layers with fewer channels than a vector holds compute a group of neighbouring pixels as one
 *  row (shape.c). */
struct ifd_acc_direct {
    size_t batch, out_h, out_w; /* rows: pixels, or groups of them */
    size_t stride_x;            /* pixels from row to row */
    size_t taps, k;             /* k: inputs of a tap, as packed */
    size_t pixel_k, pixel_step; /* of a group's pixel: inputs of a tap, inputs to the next pixel */
    size_t narrow_c;            /* 16-bit inputs: elements from pixel to pixel; 0: inputs are f32 */
    size_t line;                /* lines: elements of a padded or narrowed line */
    size_t line_rows;           /* rows of an output line; 0: lines do not fall into rows */
    /** Rows of an image if calls stay within one; SIZE_MAX otherwise. */
    size_t image_rows;
    size_t call_rows;  /* rows of one call at most */
    size_t call_lines; /* lines: output lines of one call at most, ≥ 1 */
    size_t together;   /* groups of channels: how many one call of dw_groups has; 1: gemms */
    size_t sums_bytes; /* work memory: row_add and temporary sums; lines or pointers follow, */
    bool has_wide;     /* then floats of a call that its tail changes before they are narrowed, */
    size_t wide_at;    /* so far behind the sums */
    bool is_leaky;     /* the kernel computes the tail: a leaky ReLU, perhaps a sum */
    /** Makes the inputs of count rows (lines) from first on and sets args.a. image: that in
     *  run->in. */
    void (*fetch)(struct ifd_acc_conv_run *run, const uint8_t *image, size_t first, size_t count);
    /** One call of the kernel for rows from first_row on; all of run->args is set. */
    void (*multiply)(struct ifd_acc_conv_run *run, size_t first_row);
};

/** Patches of an image that Winograd's algorithm transforms. */
struct ifd_acc_patches {
    uint32_t size;  /* outputs of a patch along one side, 2 to 4 */
    size_t at_once; /* of one call at most */
};

/** What threads share of a layer, and how (run.c). */
struct ifd_acc_load {
    bool is_heavy;    /* far more weights than values */
    bool is_far;      /* weights fill half of the second-level cache */
    bool is_whole;    /* a thread's part is never cut, columns are never shared */
    bool prepares;    /* each call prepares all of its rows, whichever columns it computes */
    size_t units;     /* that a thread can take alone */
    size_t rows;      /* of the output: pixels, or groups of them */
    size_t least;     /* rows of a chunk */
    bool has_columns; /* threads may share columns */
};

/** What the chosen algorithm decided. */
struct ifd_acc_conv_plan {
    const char *kernel;                   /* for people */
    const struct ifd_kern_gemm_f32 *gemm; /* f32: the kernels of the layer's precision */
    bool is_gemm_f32;   /* packed weights begin with those of a gemm of f32, which is what runs */
    size_t group;       /* pixels a row */
    size_t n;           /* columns of a row: group × out_c */
    size_t a_stride;    /* plain: elements from row to row */
    size_t out_stride;  /* elements from row to row */
    size_t spare_bytes; /* of ifd_acc_lowering.spare_bytes that its weights take */
    struct ifd_acc_load load;
    union {
        struct ifd_acc_direct direct;
        struct ifd_acc_patches patches;
    };
};

/** A way to compute a layer: one row of algorithm_list.inc. All functions but run and pack are
 *  called at compile time only. */
struct ifd_acc_algorithm {
    const char *name;
    const char *label; /* in the step's name: "" or " strassen" */
    /** Can it compute the layer on this CPU, with the precision that was asked for? */
    bool (*fits)(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer);
    /** Cost of a layer that fits, in multiply-accumulates per weight (ifd_acc_direct_cost).
     *  Independent of the batch: partitions for several batch sizes share weights. */
    double (*cost)(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer);
    void (*plan)(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer,
                 struct ifd_acc_conv_plan *ret);
    /** params: struct ifd_acc_conv. NULL: weights stay where they are. */
    ifd_low_pack_fn pack;
    size_t (*packed_bytes)(const struct ifd_acc_conv *conv, const struct ifd_kernels *kernels);
    size_t (*workspace_bytes)(const struct ifd_acc_conv *conv);
    /** Work memory of a thread; NULL: none. */
    size_t (*work_bytes)(const struct ifd_acc_conv *conv, const struct ifd_kernels *kernels);
    /** params: struct ifd_acc_conv. */
    ifd_acc_step_fn run;
    /** How it computes some lines for a chain (step.h). False, or NULL: it cannot. */
    bool (*strip)(const struct ifd_acc_conv *conv, struct ifd_acc_lines *ret);
};

/** A step's parameters. */
struct ifd_acc_conv {
    struct ifd_acc_layer layer;
    const struct ifd_acc_algorithm *algorithm;
    struct ifd_acc_conv_plan plan;
};

#define ALGORITHM(symbol) extern const struct ifd_acc_algorithm ifd_acc_conv_##symbol;
#include "backends/cpuacc/conv/algorithm_list.inc"
#undef ALGORITHM

/** One thread's run of a layer. */
struct ifd_acc_conv_run {
    const struct ifd_acc_step *step;
    const struct ifd_acc_frame *frame;
    const struct ifd_acc_conv *conv;
    const uint8_t *in;
    uint8_t *out;
    const uint8_t *add; /* residual */
    size_t row;         /* of the output, that out and add begin with */
    size_t out_stride;  /* elements: the plan's, or what a chain's lines have */
    size_t in_first;    /* lines: the line of the image that in starts with, */
    size_t in_end;      /* and the one behind the last that is there */
    bool is_strip;      /* of a chain */
    uint8_t *work;
    struct ifd_gemm_args args;
    const struct ifd_acc_quantized *quantized; /* dynamic: of all images, */
    size_t image;                              /* and the one that sums are for, counted from 1 */
};

#endif

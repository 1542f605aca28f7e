/** Products of rows of the input with packed weights: what the files of conv2d and fully_connected share.
 *
 *  conv.c        the drivers: nodes become steps
 *  conv_tiles.c  how many rows a call takes, which pixels are computed as one row
 *  conv_pack.c   weights
 *  conv_run.c    finding the rows and calling the kernels
 *  conv_q8.c     what only sums of 8-bit products need
 *  conv_narrow.c products of 16-bit operands (bf16, fp16)
 *  winograd.c    the other way for f32 3×3 windows
 *  winograd_q8.c the same for 8 bits
 *  strassen.c    the other way for large plain products of f32
 *  conv_in_place.c  large fully connected layers, whose weights are not packed
 *
 *  Three ways to find the rows:
 *    plain   every output row reads one contiguous input row (1×1 stride 1, fully connected)
 *    lines   dilation 1: kw pixels of a line are contiguous, so a tap is a line of the window; lines that reach over the
 *            edge are copied with their padding into work memory first
 *    rows    dilation: a table of row pointers per tile, padding points to a row of zero points
 *  and, unless exact results are asked for, Winograd's algorithm for f32 3×3 windows of enough channels:
 *    tiles   some tiles at a time are transformed to work memory, multiplied matrix by matrix, transformed back
 *  and, with the same results as the direct way, for 8-bit 3×3 windows:
 *    tiles_q8  the kernel does all of that for a few tiles at a time
 *
 *  f32 layers with fewer channels than a vector holds compute a group of neighbouring pixels as one row (plain and lines):
 *  the same convolution with `group` times the channels and the step, whose weights repeat once a pixel, shifted along
 *  the line, with zeros round them. What is not finite times zero would reach the neighbours: such rows are computed again,
 *  pixel by pixel.
 *
 *  Where a model's owner allows bf16 or fp16, f32 layers may use kernels of that kind (gemm). Those that want their inputs
 *  in 16 bits get them in work memory, the rows of one call at a time: there they are read many times. */
#ifndef INFERD_BACKENDS_CPUACC_CONV_LAYER_H
#define INFERD_BACKENDS_CPUACC_CONV_LAYER_H

#include "backends/cpuacc/ops/dynamic.h"
#include "backends/cpuacc/ops/tail.h"
#include "backends/lowering/window.h"

enum ifd_acc_conv_mode {
    IFD_ACC_CONV_PLAIN,
    IFD_ACC_CONV_LINES,
    IFD_ACC_CONV_ROWS,
    IFD_ACC_CONV_TILES,
    IFD_ACC_CONV_TILES_Q8,
    IFD_ACC_CONV_IN_PLACE
};

/** A layer; fixed once it is lowered. */
struct ifd_acc_conv {
    struct ifd_acc_product product; /* for packing */
    struct ifd_low_window window;
    enum ifd_acc_conv_mode mode;
    const struct ifd_kern_gemm_f32 *gemm; /* f32: the kernels of the layer's precision */
    size_t narrow_c; /* 16-bit inputs: elements from pixel to pixel, 0: inputs are f32 */
    bool is_dense;   /* fully connected */
    size_t element, out_element; /* bytes: 1 or 4 */
    size_t out_c;
    size_t taps, k;         /* as packed */
    size_t line;            /* LINES: elements of a padded or narrowed line */
    size_t line_rows;       /* output rows of a line; 0: lines do not fall into rows */
    size_t tile_rows;       /* output rows (pixels) of one call at most */
    size_t tile_lines;      /* LINES: output lines of one call at most, ≥ 1 */
    size_t in_stride;       /* PLAIN: elements from row to row, more than k in a part of a split */
    size_t out_stride;      /* elements: more than out_c apart inside of a concatenation */
    bool is_part, is_slice; /* in, out */
    uint32_t tile_size;     /* TILES, TILES_Q8: outputs of a tile along one side, 2 to 4; else 0 */
    bool is_strassen;       /* PLAIN: seven products of quarters */
    size_t group;           /* pixels a row; what follows is of one of them: */
    size_t pixel_n, pixel_k, pixel_step; /* channels, inputs a tap, inputs to the next pixel */
    struct ifd_acc_tail tail;            /* applied to every tile while it is in the cache */
    bool has_row_add;                    /* weights with a zero point */
    size_t sums_bytes; /* work memory: row_add and temporary sums, then lines or pointers */
};

/** One thread's run of a layer. */
struct ifd_acc_conv_run {
    const struct ifd_acc_step *step;
    const struct ifd_acc_frame *frame;
    const struct ifd_acc_conv *p;
    const uint8_t *in;
    uint8_t *out;
    const uint8_t *add; /* residual, f32 */
    size_t row;         /* of the output, that out and add begin with */
    size_t out_stride;  /* elements: p->out_stride, or what a chain's lines have */
    size_t in_first;    /* LINES: the line of the image that in starts with, */
    size_t in_end;      /* and the one behind the last that is there */
    bool is_strip;      /* of a chain */
    int32_t *sums;      /* p->tile_rows of row_add, then as many temporary ones */
    uint8_t *rest;      /* of the work memory */
    struct ifd_gemm_args args;
    const struct ifd_acc_image *images; /* dynamic: of all images, */
    size_t image;                       /* and the one that sums are for, counted from 1 */
};

/** Elements of padding that each line of work memory begins with, whose pixels have so many: all of it, where the windows see
 *  nothing else. */
static inline size_t ifd_acc_conv_padding(const struct ifd_acc_conv *p, size_t pixel)
{
    const size_t padding = p->window.pad_left * pixel;
    return padding < p->line ? padding : p->line;
}

/* ---- conv_tiles.c ---- */

/** The number of pixels to compute as one row: a power of two by which lines (or, where lines do not matter, all pixels of
 *  a sample) can be divided. */
size_t ifd_acc_conv_choose_group(const struct ifd_acc_conv *p);
/** Rewrites the layer as one of fewer pixels with more channels. */
void ifd_acc_conv_group_pixels(struct ifd_acc_conv *p, size_t group);
/** How many rows a call takes: their inputs should stay in the second-level cache while the weights go by block by block. */
void ifd_acc_conv_choose_tiles(struct ifd_acc_conv *p, const struct ifd_host *host);

/* ---- conv_pack.c ---- */

/** What makes floats of the sums of a dynamic layer, behind its weights: per channel the scale, the sum of the weights and
 *  the bias. */
struct ifd_acc_conv_channels {
    float *scale;
    int32_t *sum;
    float *bias;
};

/** n values, up to where the next array of them may begin. */
static inline size_t ifd_acc_conv_padded(size_t n)
{
    return (n + 15) / 16 * 16;
}

/** Packs the weights (not those of TILES), and the bytes of that and of its temporary memory. */
void ifd_acc_conv_pack(const struct ifd_kernels *kernels, const void *context, uint8_t *workspace,
                       uint8_t *packed);
size_t ifd_acc_conv_pack_bytes(const struct ifd_acc_conv *p, const struct ifd_kernels *kernels);
size_t ifd_acc_conv_pack_workspace(const struct ifd_acc_conv *p);
/** Where the weights of one pixel begin that lie behind those of a group. */
size_t ifd_acc_conv_grouped_bytes(const struct ifd_acc_conv *p);
struct ifd_acc_conv_channels ifd_acc_conv_channels(const struct ifd_acc_conv *p, uint8_t *packed);

/* ---- conv_run.c ---- */

void ifd_acc_conv_begin(struct ifd_acc_conv_run *run, const struct ifd_acc_step *step,
                        const struct ifd_acc_frame *frame);
/** Into how many pieces a thread's part may be cut: not at all where rows are grouped by it (Strassen's algorithm), where each
 *  call prepares all rows for some columns, or reads weights that fill the cache; into its calls of Winograd's tiles. */
uint32_t ifd_acc_conv_pieces(const struct ifd_acc_lowering *lowering, const struct ifd_acc_conv *p);
/** Splits items over the team in multiples of unit, or columns where there are too few items for all, or far more weights
 *  than values: then each thread reads its part of the weights only, at the price of values that other cores have made. */
struct ifd_acc_range ifd_acc_conv_share(struct ifd_acc_conv_run *run,
                                        const struct ifd_acc_frame *frame, size_t items,
                                        size_t unit);
/** Applies the layer's tail to the columns of args in rows that are made. */
void ifd_acc_conv_tail(const struct ifd_acc_conv_run *run, size_t first_row, size_t rows);

/** PLAIN, LINES and ROWS as steps, and as parts of a chain (step.h). */
void ifd_acc_conv_run_plain(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame);
void ifd_acc_conv_run_lines(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame);
void ifd_acc_conv_run_rows(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame);
void ifd_acc_conv_strip_plain(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                              const struct ifd_acc_strip *strip);
void ifd_acc_conv_strip_lines(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                              const struct ifd_acc_strip *strip);

/* ---- conv_q8.c ---- */

/** Turns to another image of a dynamic layer: its offsets and scales go to the work memory. */
void ifd_acc_conv_begin_image(struct ifd_acc_conv_run *run, size_t image);
/** Rows of one call from row on, before end: tiles of dynamic layers stay within an image. */
size_t ifd_acc_conv_begin_rows(struct ifd_acc_conv_run *run, size_t row, size_t end);
/** Zero, as the input stores it. Floats are 0 in all bytes. */
int ifd_acc_conv_zero_byte(const struct ifd_acc_conv_run *run);
/** One call of the kernel for rows from first_row on; all of args is set. */
void ifd_acc_conv_call_q8(struct ifd_acc_conv_run *run, size_t first_row);

/* ---- conv_narrow.c ---- */

/** Takes the kernels of the precision that the model's owner allows where the layer's shape suits them, else those of f32. */
void ifd_acc_conv_choose_precision(const struct ifd_acc_lowering *lowering, struct ifd_acc_conv *p);
/** From here on the layer is as chosen: its weights and lines get the shape that the kernels want. */
void ifd_acc_conv_settle_precision(struct ifd_acc_lowering *lowering, struct ifd_acc_conv *p);
/** Makes the inputs of rows (PLAIN) or of output lines (LINES) of one image narrow, in work memory. */
void ifd_acc_conv_narrow_rows(const struct ifd_acc_conv_run *run, size_t row, size_t count);
void ifd_acc_conv_narrow_lines(const struct ifd_acc_conv_run *run, const uint8_t *image, size_t y,
                               size_t count);
/** Weights of pixels as narrow lines have them: with zeros for what pads them. */
const float *ifd_acc_conv_narrow_weights(const struct ifd_acc_conv *p, uint8_t *workspace);
size_t ifd_acc_conv_narrow_workspace(const struct ifd_acc_conv *p);

/* ---- conv_in_place.c ---- */

/** Are the weights of a layer better left where they are? */
bool ifd_acc_conv_stays_in_place(const struct ifd_acc_conv *p, const struct ifd_kernels *kernels,
                                 const struct ifd_host *host);
void ifd_acc_conv_run_in_place(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame);

/* ---- winograd.c ---- */

/** Outputs of a tile along one side, 2 to 4. It pays where products outweigh transforms (channels), tiles are rows enough
 *  for the matrix product and few of their outputs lie outside; 0 where it does not. Takes spare bytes of the lowering for
 *  larger tiles than weights in memory would be worth. */
uint32_t ifd_acc_winograd_size(struct ifd_acc_lowering *lowering, const struct ifd_acc_conv *p);
/** How many tiles of this size so many pixels of a line, or of a column, take. */
static inline size_t ifd_acc_winograd_tiles(size_t pixels, size_t size)
{
    return (pixels + size - 1) / size;
}

/** The layer's tail for tiles begin … begin+count-1 of an image: pixel line by pixel line of each line of tiles. */
void ifd_acc_winograd_tail(const struct ifd_acc_conv_run *run, size_t image, size_t begin,
                           size_t count);
/** TILES: matrices of weights. */
size_t ifd_acc_winograd_matrices(const struct ifd_acc_conv *p);
void ifd_acc_winograd_pack(const struct ifd_kernels *kernels, const void *context,
                           uint8_t *workspace, uint8_t *packed);
size_t ifd_acc_winograd_pack_bytes(const struct ifd_acc_conv *p, const struct ifd_kernels *kernels);
size_t ifd_acc_winograd_pack_workspace(const struct ifd_acc_conv *p);
/** How many tiles a call takes at most: lines of them, or equal parts of a line. */
size_t ifd_acc_winograd_choose_tiles(const struct ifd_acc_conv *p, const struct ifd_host *host);
/** Work memory of a thread. */
size_t ifd_acc_winograd_work_bytes(const struct ifd_acc_conv *p);
void ifd_acc_winograd_run(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame);

/* ---- winograd_q8.c ---- */

/** Does it pay for a layer of this shape? Does not depend on the batch. */
bool ifd_acc_winograd_q8_pays(const struct ifd_acc_lowering *lowering,
                              const struct ifd_acc_conv *p);
/** TILES_Q8: tile_rows is how many tiles a call takes at most. */
void ifd_acc_winograd_q8_choose_tiles(const struct ifd_kernels *kernels,
                                      const struct ifd_host *host, struct ifd_acc_conv *p);
void ifd_acc_winograd_q8_pack(const struct ifd_kernels *kernels, const void *context,
                              uint8_t *workspace, uint8_t *packed);
void ifd_acc_winograd_q8_run(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame);

/* ---- strassen.c ---- */

/** Does it pay for a layer of this shape, to which a residual is added or not? Does not depend on the batch. */
bool ifd_acc_strassen_pays(const struct ifd_acc_lowering *lowering, const struct ifd_acc_conv *p,
                           bool adds);
/** How many rows a call takes at most. */
size_t ifd_acc_strassen_rows(const struct ifd_acc_conv *p, const struct ifd_host *host);
void ifd_acc_strassen_pack(const struct ifd_kernels *kernels, const void *context,
                           uint8_t *workspace, uint8_t *packed);
size_t ifd_acc_strassen_pack_bytes(const struct ifd_acc_conv *p, const struct ifd_kernels *kernels);
size_t ifd_acc_strassen_pack_workspace(const struct ifd_acc_conv *p);
/** Work memory of a thread. adds: the layer has a residual. */
size_t ifd_acc_strassen_work_bytes(const struct ifd_acc_conv *p, bool adds);
/** What the kernel's run() would do with run->args, for all columns and at most tile_rows rows of one image. */
void ifd_acc_strassen_run(const struct ifd_acc_conv_run *run);

#endif

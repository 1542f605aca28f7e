/* Packing shared by the kernel tables: one description of a layout, one function that writes it.
 * Compiled once with the baseline flags, so tables of every instruction set may call it. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_PACK_H
#define INFERD_BACKENDS_CPUACC_KERNELS_PACK_H

#include "backends/cpuacc/kernels/kernels.h"

/* Layout of a table's packed weights. A block holds nv vectors of `lanes` columns, for each tap
 * and each group of kr inputs one after the other: [tap][k / kr][vector][lane][kr].
 *
 *   lanes    columns a vector (32-bit sums a register).
 *   quad     columns that stay together when the instruction set packs 32 bits to 8: vector j,
 *            lane l holds column (l / quad)*quad*nv + j*quad + l % quad of the block, so that
 *            in-register packing yields natural order. quad == lanes is the natural order
 *            itself.
 *   kr       inputs a lane; k is padded with zero weights to a multiple of it.
 *   k_tile   0, or the inputs a tile register takes: k is padded until it falls into equal steps
 *            of at most k_tile inputs, a multiple of kr each (ifd_pack_step).
 *   bytes    1: s8 weights; 2: s8 widened to 16 bits, or 16-bit floats, according to format; 4:
 *            float.
 *   format   conversion of floats.
 *   max_nv   widest block, in vectors; 1..4.
 *   mr       rows a tile by width: mr[nv - 1].
 *   even     floats only: narrower tiles are as fast as the widest, so blocks may be of about
 *            equal width; a unit is a vector of columns then, not a block. */
enum ifd_pack_format { IFD_PACK_AS_IS, IFD_PACK_BF16, IFD_PACK_F16 };

struct ifd_pack_layout {
    uint8_t lanes, quad, kr, bytes, format, max_nv, k_tile, even;
    uint8_t mr[4];
};

/* Ways to finish the sums of a q8 block, from cheapest to dearest. EXACT rounds
 *   (floor(sum * multiplier / 2^30) + plus) >> right
 * where plus depends on the sign (EXACT_SIGN) or not (EXACT). */
enum ifd_finish {
    IFD_FINISH_FAST,
    IFD_FINISH_EXACT,
    IFD_FINISH_EXACT_SIGN,
    IFD_FINISH_EVEN, /* where it is not FAST: Arm */
    IFD_FINISH_NONE  /* sums are stored as they are; columns lie in natural order */
};

/* Meaning of ifd_packed.private_. */
enum ifd_packed_private {
    IFD_PACKED_FINISH,   /* enum ifd_finish */
    IFD_PACKED_OUT_ZERO, /* native */
    IFD_PACKED_OUT_MIN,
    IFD_PACKED_OUT_MAX,
    IFD_PACKED_IN_ZERO,
    IFD_PACKED_TAIL_OFFSET, /* from a block's start to its tail, of full blocks */
    IFD_PACKED_KH,          /* depthwise: the window */
    IFD_PACKED_KW,
    IFD_PACKED_DEPTH = IFD_PACKED_KH /* products: padded inputs a tap */
};

/* The tail of a q8 block: ROWS arrays of nr values in the order of the block's lanes. */
enum ifd_tail {
    IFD_TAIL_BIAS,       /* int32: bias with the zero points folded in */
    IFD_TAIL_SCALE,      /* float: the factor */
    IFD_TAIL_MULTIPLIER, /* int32 */
    IFD_TAIL_LEFT,       /* int32: shift before the high multiply, which yields product >> 32 */
    IFD_TAIL_RIGHT,      /* int32: shift after it */
    IFD_TAIL_PLUS,       /* int32: added before that shift */
    IFD_TAIL_PLUS_NEG,   /* int32: the same where the product is negative */
    IFD_TAIL_ROWS
};

/* First block, right after the header. */
#define IFD_PACKED_HEADER 64

/* Inputs of one step, and of one tap in all steps, padding included. */
size_t ifd_pack_step(const struct ifd_pack_layout *layout, size_t k);
size_t ifd_pack_depth(const struct ifd_pack_layout *layout, size_t k);
/* Columns of a full block for n columns. */
size_t ifd_pack_width(const struct ifd_pack_layout *layout, size_t n);
size_t ifd_pack_gemm_bytes(const struct ifd_pack_layout *layout, size_t n, size_t k, size_t taps,
                           size_t tail_rows);
void ifd_pack_gemm_q8(const struct ifd_pack_layout *layout, const struct ifd_gemm_weights *weights,
                      const struct ifd_requant *requant, void *dst);
void ifd_pack_gemm_f32(const struct ifd_pack_layout *layout, const struct ifd_gemm_weights *weights,
                       const float *bias, void *dst);
void ifd_pack_gemm_f32_part(const struct ifd_pack_layout *layout,
                            const struct ifd_gemm_weights *part, size_t n0, size_t k0, void *dst);

/* Column of a block of nv vectors that vector j, lane l holds. */
size_t ifd_pack_column(const struct ifd_pack_layout *layout, size_t nv, size_t j, size_t l);

/* Writes column `slot` of a tail of `width` columns: channel c of requant, with its folded bias.
 * c >= n writes zeros, which finish without effect. */
void ifd_pack_tail(const struct ifd_requant *requant, size_t c, size_t n, int32_t folded_bias,
                   size_t width, size_t slot, int32_t *tail);
/* Header fields that come from requant. */
void ifd_pack_header(const struct ifd_requant *requant, struct ifd_packed *header);

#endif

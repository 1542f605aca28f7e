/** Operators that only move elements, as strided copies.
 *
 *  out[out_offset + Σ i_d * out_stride[d]] = in[in_offset + Σ i_d * in_stride[d]] for all i_d <
 *  dim[d], in bytes. Values are row-major. The backend checks whether a copy needs a step
 *  (ifd_low_is_there). */
#ifndef INFERD_BACKENDS_LOWERING_MOVES_H
#define INFERD_BACKENDS_LOWERING_MOVES_H

#include "backends/lowering/values.h"

struct ifd_low_copy {
    uint32_t rank;
    size_t element; /* bytes */
    int64_t dim[IFD_MAX_RANK];
    int64_t in_stride[IFD_MAX_RANK], out_stride[IFD_MAX_RANK];
    int64_t in_offset, out_offset;
    bool fills; /* the output of out_bytes is filled with an element's pattern first */
    uint8_t fill[8];
    size_t out_bytes;
};

/** A copy from one value of a node to another. */
struct ifd_low_move {
    uint32_t in, out; /* which input and output of the node */
    bool converts;    /* elements to the quantization of the output */
    int64_t at;       /* along the axis: internal, from one move of a node to the next */
    struct ifd_low_copy copy;
};

/** Does the node only move elements, with known parameters? If not, says why in reason (may be
 *  NULL). */
bool ifd_low_moves(const struct ifd_node_view *node, struct ifd_err *reason);
/** The i-th copy of a node that ifd_low_moves() accepts; false after the last one. ret: as the call
 *  for i-1 left it. */
bool ifd_low_move(const struct ifd_node_view *node, uint32_t i, struct ifd_low_move *ret);
/** Does it copy whole rows of an input, so that gaps between them do not matter? */
bool ifd_low_moves_rows(const struct ifd_node_view *node, uint32_t input);

/** tile: can it be one copy? */
bool ifd_low_tiles(const struct ifd_node_view *node, struct ifd_err *reason);
struct ifd_low_copy ifd_low_tile_copy(const struct ifd_node_view *node);
/** pad: the copy; its fill pattern is not set. */
struct ifd_low_copy ifd_low_pad_copy(const struct ifd_node_view *node);
/** space_to_batch and batch_to_space: one copy, or two through a value of *ret_between bytes where
 *  there is padding. Returns how many. The fill pattern is not set. */
uint32_t ifd_low_space_copies(const struct ifd_node_view *node, struct ifd_low_copy ret[2],
                              size_t *ret_between);

/** False, with a reason, if parameters are inputs: the parser makes attributes of constant ones. */
bool ifd_low_has_one_input(const struct ifd_node_view *node, struct ifd_err *reason);
/** Are both of one type and, if 8-bit, of one scale and zero point? */
bool ifd_low_same_quant(const struct ifd_desc *a, const struct ifd_desc *b);

/** Row-major strides of a shape, in bytes. */
void ifd_low_byte_strides(const struct ifd_desc *desc, int64_t ret_strides[IFD_MAX_RANK]);
/** Bytes of a tensor. */
size_t ifd_low_desc_bytes(const struct ifd_desc *desc);

/** Drops dimensions of 1 and joins neighbours that are contiguous on both sides. */
void ifd_low_merge(struct ifd_low_copy *copy);
/** Turns in_stride, which is that of rows without gaps, into that of the value's rows. */
void ifd_low_spread_rows(const struct ifd_low_value *in, struct ifd_low_copy *copy);

/** Is the data in place already, because one value is a sub-tensor of the other? */
bool ifd_low_is_there(const struct ifd_lowering *lowering, const struct ifd_low_copy *copy,
                      uint32_t in, uint32_t out);

#endif

/** Strided copies: every operator that only moves elements is one or more of these.
 *
 *  out[out_offset + Σ i_d * out_stride[d]] = in[in_offset + Σ i_d * in_stride[d]] for all i_d < dim[d], in bytes. */
#ifndef INFERD_BACKENDS_CPUACC_OPS_COPY_H
#define INFERD_BACKENDS_CPUACC_OPS_COPY_H

#include "backends/cpuacc/compile.h"

struct ifd_acc_copy {
    uint32_t rank;
    size_t element; /* bytes */
    int64_t dim[IFD_MAX_RANK];
    int64_t in_stride[IFD_MAX_RANK], out_stride[IFD_MAX_RANK];
    int64_t in_offset, out_offset;
    /* pad: the output is filled with this byte pattern first, by the thread that owns the part */
    bool fills;
    uint8_t fill[8];
    size_t out_bytes;
};

/** A copy from one value of a node to another. */
struct ifd_acc_move {
    uint32_t in, out; /* which input and output of the node */
    bool converts;    /* elements to the quantization of the output */
    int64_t at;       /* along the axis: the driver's own, from one move of a node to the next */
    struct ifd_acc_copy copy;
};

/** False, with a reason, where parameters come as inputs: the parser made attributes of them wherever they are constant. */
bool ifd_acc_has_one_input(const struct ifd_node_view *node, struct ifd_err *reason);

/** Row-major strides of a shape, in bytes. */
void ifd_acc_byte_strides(const struct ifd_desc *desc, int64_t ret_strides[IFD_MAX_RANK]);

/** Drops dimensions of 1 and joins neighbours that are contiguous on both sides. */
void ifd_acc_copy_merge(struct ifd_acc_copy *copy);

/** Is what would be copied there already, because one value is a part of the other? */
bool ifd_acc_is_there(const struct ifd_acc_lowering *lowering, const struct ifd_acc_copy *copy,
                      uint32_t in, uint32_t out);

/** Adds the copy as a step: merges dimensions first. *copy is taken over into the arena. in_stride is that of rows without gaps,
 *  wherever they lie. */
IFD_NODISCARD enum ifd_code ifd_acc_add_copy(struct ifd_acc_lowering *lowering,
                                             const struct ifd_acc_copy *copy, uint32_t in,
                                             uint32_t out, const char *name, struct ifd_err *err);

#endif

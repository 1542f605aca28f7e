/** Strided copies: every operator that only moves elements is one or more of these.
 *
 *  out[out_offset + Σ i_d * out_stride[d]] = in[in_offset + Σ i_d * in_stride[d]] for all i_d < dim[d], in bytes. */
#ifndef INFERD_BACKENDS_CPUACC_OPS_COPY_H
#define INFERD_BACKENDS_CPUACC_OPS_COPY_H

#include "backends/cpuacc/lower.h"

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

/** False, with a reason, where parameters come as inputs: the parser made attributes of them wherever they are constant. */
bool ifd_acc_has_one_input(const struct ifd_node_view *node, struct ifd_err *reason);

/** Row-major strides of a shape, in bytes. */
void ifd_acc_byte_strides(const struct ifd_desc *desc, int64_t ret_strides[IFD_MAX_RANK]);

/** Adds the copy as a step: merges dimensions first. *copy is taken over into the arena. */
IFD_NODISCARD enum ifd_code ifd_acc_add_copy(struct ifd_acc_lowering *lowering,
                                             const struct ifd_acc_copy *copy, uint32_t in,
                                             uint32_t out, const char *name, struct ifd_err *err);

#endif

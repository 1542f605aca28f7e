/* reverse, mirror_pad, space_to_depth and depth_to_space: strided copies, some of which run
 * backwards. */
#include "backends/cpuacc/ops/copy.h"

#include "inferd/op_attrs.h"

#include <string.h>

/* A copy between both tensors' rows, of the shape of one of them. */
static struct ifd_low_copy copy_of(const struct ifd_node_view *node, const struct ifd_shape *shape)
{
    struct ifd_low_copy copy = {.rank = shape->rank,
                                .element = ifd_dtype_bytes(node->output[0].dtype)};
    memcpy(copy.dim, shape->dim, sizeof(copy.dim));
    ifd_low_byte_strides(node->input[0].desc, copy.in_stride);
    ifd_low_byte_strides(&node->output[0], copy.out_stride);
    return copy;
}

static enum ifd_code add(struct ifd_acc_lowering *lowering, const struct ifd_partition_node *node,
                         const struct ifd_low_copy *copy, struct ifd_err *err)
{
    return ifd_acc_add_copy(lowering, copy, node->input_value[0], node->output_value[0],
                            ifd_op_def(node->view.op)->name, err);
}

/* ---- reverse ---- */

static bool reverse_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    return ifd_low_has_one_input(node, reason);
}

static enum ifd_code reverse_lower(struct ifd_acc_lowering *lowering,
                                   const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_reverse_attrs *attrs = node->view.attrs;
    struct ifd_low_copy copy = copy_of(&node->view, &node->view.output[0].shape);
    for (uint32_t i = 0; i < attrs->axes.count; i++) {
        const int64_t given = attrs->axes.value[i];
        const int64_t axis = given < 0 ? given + (int64_t)copy.rank : given;
        copy.in_offset += (copy.dim[axis] - 1) * copy.in_stride[axis];
        copy.in_stride[axis] = -copy.in_stride[axis];
    }
    return add(lowering, node, &copy, err);
}

const struct ifd_acc_driver ifd_acc_reverse = {.takes = reverse_takes, .lower = reverse_lower};

/* ---- mirror_pad: the middle and what is before and behind it, in each dimension ---- */

enum { BEFORE, MIDDLE, BEHIND, PLACES };

/* Dimensions with a border, each of which makes three times as many copies. */
#define BORDERS_MAX 3

static bool has_border(const struct ifd_mirror_pad_attrs *attrs, uint32_t d)
{
    return attrs->before.value[d] > 0 || attrs->after.value[d] > 0;
}

static bool mirror_pad_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_mirror_pad_attrs *attrs = node->attrs;
    uint32_t borders = 0;
    for (uint32_t d = 0; d < node->output[0].shape.rank; d++) {
        borders += has_border(attrs, d);
    }
    if (borders > BORDERS_MAX) {
        ifd_fail(reason, IFD_UNSUPPORTED, "borders of %u dimensions, expected at most %d", borders,
                 BORDERS_MAX);
        return false;
    }
    return ifd_low_has_one_input(node, reason);
}

/* Narrows a copy of the whole input to a place of dimension d; false if it is empty. */
static bool go_to(const struct ifd_mirror_pad_attrs *attrs, uint32_t d, int place,
                  struct ifd_low_copy *copy)
{
    const int64_t n = copy->dim[d], edge = attrs->symmetric ? 1 : 0;
    const int64_t before = attrs->before.value[d], behind = attrs->after.value[d];
    const int64_t count[PLACES] = {before, n, behind}, to[PLACES] = {0, before, before + n};
    const int64_t from[PLACES] = {before - edge, 0, n - 2 + edge};
    copy->dim[d] = count[place];
    copy->in_offset += from[place] * copy->in_stride[d];
    copy->out_offset += to[place] * copy->out_stride[d];
    copy->in_stride[d] *= place == MIDDLE ? 1 : -1;
    return count[place] > 0;
}

static enum ifd_code mirror_pad_lower(struct ifd_acc_lowering *lowering,
                                      const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_mirror_pad_attrs *attrs = node->view.attrs;
    const struct ifd_shape *in = &node->view.input[0].desc->shape;
    uint32_t parts = 1;
    for (uint32_t d = 0; d < in->rank; d++) {
        parts *= has_border(attrs, d) ? PLACES : 1;
    }
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < parts; i++) {
        struct ifd_low_copy copy = copy_of(&node->view, in);
        bool has_elements = true;
        uint32_t rest = i;
        for (uint32_t d = 0; d < in->rank; d++) {
            const bool has = has_border(attrs, d);
            has_elements =
                go_to(attrs, d, has ? (int)(rest % PLACES) : MIDDLE, &copy) && has_elements;
            rest /= has ? PLACES : 1;
        }
        if (has_elements) {
            code = add(lowering, node, &copy, err);
        }
    }
    return code;
}

const struct ifd_acc_driver ifd_acc_mirror_pad = {.takes = mirror_pad_takes,
                                                  .lower = mirror_pad_lower};

/* ---- space_to_depth, depth_to_space: the lines of a block lie one behind the other ---- */

static bool depth_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    return ifd_low_has_one_input(node, reason);
}

static enum ifd_code depth_lower(struct ifd_acc_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_space_depth_attrs *attrs = node->view.attrs;
    const bool to_depth = node->view.op == IFD_OP_SPACE_TO_DEPTH;
    const struct ifd_desc *in = node->view.input[0].desc, *out = &node->view.output[0];
    const struct ifd_shape *fine = to_depth ? &in->shape : &out->shape;
    const struct ifd_shape *coarse = to_depth ? &out->shape : &in->shape;
    const int64_t element = (int64_t)ifd_dtype_bytes(in->dtype), block = attrs->block;
    const int64_t line = fine->dim[2] * fine->dim[3] * element, run = block * fine->dim[3];
    const int64_t pixel = coarse->dim[3] * element;
    struct ifd_low_copy copy = {.rank = 4,
                                .element = (size_t)element,
                                .dim = {fine->dim[0] * coarse->dim[1], block, coarse->dim[2], run}};
    const int64_t of_fine[] = {block * line, line, run * element, element};
    const int64_t of_coarse[] = {coarse->dim[2] * pixel, run * element, pixel, element};
    memcpy(copy.in_stride, to_depth ? of_fine : of_coarse, sizeof(of_fine));
    memcpy(copy.out_stride, to_depth ? of_coarse : of_fine, sizeof(of_fine));
    return add(lowering, node, &copy, err);
}

const struct ifd_acc_driver ifd_acc_depth = {.takes = depth_takes, .lower = depth_lower};

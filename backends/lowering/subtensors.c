/* Values that live inside of others. An operator that only moves elements (a reshape, the outputs
 * of a split or slice, the inputs of a concatenation) needs no step if its sub-tensor can stay in
 * the whole:
 *
 *   contiguous   along the outermost dimension that is not 1: any step can read and write it there
 *   rows apart   along the last dimension: if all readers accept rows that lie apart. The step that
 *                writes a sub-tensor of a concatenation asks for it (ifd_low_take_slice). */
#include "backends/lowering/subtensors.h"

#include "inferd/op_attrs.h"

/* A sub-tensor: where it begins in the whole, and bytes from row to row. */
struct subtensor {
    size_t offset, pitch;
};

/* Does the copy move a whole sub-tensor, row by row, from or to a whole with these strides? */
static bool find_subtensor(const struct ifd_low_copy *copy, const struct ifd_low_value *part,
                           const int64_t *part_stride, const int64_t *whole_stride, int64_t offset,
                           struct subtensor *ret)
{
    const int64_t element = (int64_t)copy->element;
    const uint32_t last = copy->rank - 1;
    *ret = (struct subtensor){.offset = (size_t)offset};
    if (copy->rank == 0) {
        return part->bytes == copy->element;
    }
    const int64_t row = copy->dim[last] * element;
    if (copy->rank > 2 || part_stride[last] != element || whole_stride[last] != element) {
        return false;
    }
    if (copy->rank == 1) {
        return part->bytes == (size_t)row;
    }
    const struct ifd_shape *shape = &part->view->desc.shape;
    ret->pitch = (size_t)whole_stride[0];
    return part_stride[0] == row && part->bytes == (size_t)(row * copy->dim[0]) &&
           row == shape->dim[shape->rank - 1] * element;
}

/* Moves a value that nothing else holds into another. */
static void join(struct ifd_lowering *lowering, uint32_t part, uint32_t whole,
                 const struct subtensor *how)
{
    const uint32_t keep = ifd_low_storage_of(lowering, whole);
    const uint32_t gone = ifd_low_storage_of(lowering, part);
    lowering->value[part].pitch = how->pitch;
    lowering->storage[gone].joined = keep;
    lowering->storage[gone].at = lowering->value[whole].offset + how->offset;
}

static bool can_join(const struct ifd_lowering *lowering, uint32_t part, uint32_t whole)
{
    const uint32_t storage = ifd_low_storage_of(lowering, part);
    return lowering->value[part].view->role == IFD_VALUE_INTERNAL &&
           lowering->value[part].bytes > 0 && ifd_low_is_whole(lowering, part) &&
           lowering->storage[storage].place.where == IFD_LOW_SCRATCH &&
           lowering->value[whole].pitch == 0 && ifd_low_storage_of(lowering, whole) != storage;
}

/* The input becomes a sub-tensor of the output, or the other way round. */
static void join_move(struct ifd_lowering *lowering, uint32_t in, uint32_t out,
                      struct ifd_low_copy *copy)
{
    struct subtensor part;
    ifd_low_merge(copy);
    if (can_join(lowering, in, out) && copy->in_offset == 0 &&
        find_subtensor(copy, &lowering->value[in], copy->in_stride, copy->out_stride,
                       copy->out_offset, &part) &&
        part.pitch == 0) {
        join(lowering, in, out, &part);
    } else if (can_join(lowering, out, in) && copy->out_offset == 0 &&
               find_subtensor(copy, &lowering->value[out], copy->out_stride, copy->in_stride,
                              copy->in_offset, &part) &&
               (part.pitch == 0 || lowering->value[out].is_read_apart)) {
        join(lowering, out, in, &part);
    }
}

/* Asks all readers whether they accept rows that lie apart. */
static void ask_readers(struct ifd_lowering *lowering, const struct ifd_low_accepts *accepts)
{
    for (uint32_t n = 0; n < lowering->view->node_count; n++) {
        const struct ifd_partition_node *node = &lowering->view->node[n];
        for (uint32_t i = 0; i < node->view.input_count; i++) {
            const uint32_t value = node->input_value[i];
            if (value != IFD_NO_VALUE && !accepts->reads_apart(accepts->context, n, i)) {
                lowering->value[value].is_read_apart = false;
            }
        }
    }
}

void ifd_low_join_subtensors(struct ifd_lowering *lowering, const struct ifd_low_accepts *accepts)
{
    ask_readers(lowering, accepts);
    for (uint32_t n = 0; n < lowering->view->node_count; n++) {
        const struct ifd_partition_node *node = &lowering->view->node[n];
        struct ifd_low_move move = {.converts = false};
        if (!accepts->moves(accepts->context, n)) {
            continue;
        }
        for (uint32_t i = 0; ifd_low_move(&node->view, i, &move); i++) {
            if (!move.converts) {
                join_move(lowering, node->input_value[move.in], node->output_value[move.out],
                          &move.copy);
            }
        }
    }
}

bool ifd_low_take_slice(struct ifd_lowering *lowering, uint32_t value,
                        const struct ifd_low_accepts *accepts, size_t *stride)
{
    uint32_t index = 0;
    const struct ifd_partition_node *node = ifd_low_sole_reader(lowering, value, &index);
    if (!node || node->view.op != IFD_OP_CONCAT || !accepts->moves(accepts->context, index)) {
        return false;
    }
    const struct ifd_axis_attrs *attrs = node->view.attrs;
    const struct ifd_desc *out = &node->view.output[0];
    const uint32_t last = out->shape.rank - 1;
    const int32_t axis = attrs->axis < 0 ? attrs->axis + (int32_t)out->shape.rank : attrs->axis;
    struct ifd_low_value *mine = &lowering->value[value];
    /* Not a value that is in place already, or of which a view is read as well; behind a reshape
     * its rows may be others than the step's. */
    if ((uint32_t)axis != last || !ifd_low_same_quant(&mine->view->desc, out) ||
        (size_t)mine->view->desc.shape.dim[last] != *stride || !ifd_low_is_whole(lowering, value) ||
        lowering->storage[mine->storage].readers != 1) {
        return false;
    }
    size_t before = 0;
    for (uint32_t i = 0; node->input_value[i] != value; i++) {
        before += (size_t)node->view.input[i].desc->shape.dim[last];
    }
    *stride = (size_t)out->shape.dim[last];
    mine->storage = ifd_low_storage_of(lowering, node->output_value[0]);
    mine->offset =
        lowering->value[node->output_value[0]].offset + before * ifd_dtype_bytes(out->dtype);
    mine->pitch = *stride * ifd_dtype_bytes(out->dtype);
    lowering->storage[mine->storage].readers++;
    return true;
}

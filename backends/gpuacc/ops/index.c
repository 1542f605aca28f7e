/* Operators about places in a tensor: arg_max, arg_min; gather, gather_nd and scatter_nd with
 * constant indices, since a kernel cannot report one that is out of range. */
#include "backends/gpuacc/lower.h"
#include "inferd/op_attrs.h"

#include <string.h>

static size_t product(const struct ifd_shape *shape, uint32_t begin, uint32_t end)
{
    size_t count = 1;
    for (uint32_t d = begin; d < end; d++) {
        count *= (size_t)shape->dim[d];
    }
    return count;
}

static uint32_t axis_of(int32_t axis, const struct ifd_shape *shape)
{
    return (uint32_t)(axis < 0 ? axis + (int32_t)shape->rank : axis);
}

/* ---- arg_max, arg_min ---- */

static bool arg_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const enum ifd_dtype in = node->input[0].desc->dtype, out = node->output[0].dtype;
    if (!ifd_gpu_number_type(in) || (out != IFD_S32 && out != IFD_S64)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "types %s to %s", ifd_dtype_name(in),
                 ifd_dtype_name(out));
        return false;
    }
    return true;
}

static enum ifd_code arg_lower(struct ifd_gpu_lowering *lowering,
                               const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_arg_attrs *attrs = node->view.attrs;
    const struct ifd_desc *in = node->view.input[0].desc, *out = &node->view.output[0];
    const uint32_t axis = axis_of(attrs->axis, &in->shape);
    const size_t results = ifd_gpu_elements(&out->shape);
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_arg);
    ifd_gpu_define(&call, "#define IN %s\n#define OUT %s\n#define BETTER(a, b) ((a) %s (b))\n",
                   ifd_gpu_number_type(in->dtype), ifd_gpu_number_type(out->dtype),
                   node->view.op == IFD_OP_ARG_MAX ? ">" : "<");
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)results);
    ifd_gpu_int(&call, in->shape.dim[axis]);
    ifd_gpu_int(&call, (int64_t)product(&in->shape, axis + 1, in->shape.rank));
    ifd_gpu_items(&call, results, 1, 1);
    return ifd_gpu_add_step(lowering, &call, ifd_gpu_op_name(node->view.op), 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_arg = {arg_takes, arg_lower};

/* ---- gather ---- */

static int64_t index_at(enum ifd_dtype dtype, const uint8_t *data, size_t i)
{
    int16_t tiny = 0;
    int32_t small = 0;
    int64_t large = 0;
    if (dtype == IFD_S16) {
        memcpy(&tiny, data + i * sizeof(tiny), sizeof(tiny));
        return tiny;
    }
    if (dtype == IFD_S32) {
        memcpy(&small, data + i * sizeof(small), sizeof(small));
        return small;
    }
    memcpy(&large, data + i * sizeof(large), sizeof(large));
    return large;
}

static bool gather_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_gather_attrs *attrs = node->attrs;
    const struct ifd_desc *data = node->input[0].desc;
    const struct ifd_operand *indices = &node->input[1];
    const int64_t choices = data->shape.dim[axis_of(attrs->axis, &data->shape)];
    const size_t count = ifd_gpu_elements(&indices->desc->shape);
    bool fits = indices->data.data != NULL && data->dtype != IFD_STR && choices <= INT32_MAX &&
                ifd_gpu_element_type(ifd_dtype_bytes(data->dtype));
    for (size_t i = 0; fits && i < count; i++) {
        const int64_t index = index_at(indices->desc->dtype, indices->data.data, i);
        fits = index >= -choices && index < choices;
    }
    if (!fits) {
        ifd_fail(reason, IFD_UNSUPPORTED, "indices are not constant, or out of range");
    }
    return fits;
}

/* Equal indices into other tensors are other picks: what is packed belongs to the node alone. */
struct picks {
    const uint8_t *data;
    enum ifd_dtype dtype;
    size_t count;
    int64_t choices;
};

static void pack_picks(const void *params, const void *source, void *packed)
{
    const struct picks *picks = params;
    int32_t *to = packed;
    (void)source;
    for (size_t i = 0; i < picks->count; i++) {
        const int64_t index = index_at(picks->dtype, picks->data, i);
        to[i] = (int32_t)(index < 0 ? index + picks->choices : index);
    }
}

static enum ifd_code gather_lower(struct ifd_gpu_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_gather_attrs *attrs = node->view.attrs;
    const struct ifd_desc *data = node->view.input[0].desc;
    const struct ifd_operand *indices = &node->view.input[1];
    const struct ifd_shape *chosen = &indices->desc->shape;
    const uint32_t axis = axis_of(attrs->axis, &data->shape);
    const uint32_t batch_dims = (uint32_t)attrs->batch_dims;
    const size_t count = ifd_gpu_elements(&node->view.output[0].shape);
    struct picks *picks = ifd_low_params(&lowering->base, 1, sizeof(*picks));
    if (!picks) {
        return ifd_arena_fail(lowering->base.arena, sizeof(*picks), err);
    }
    *picks = (struct picks){.data = indices->data.data,
                            .dtype = indices->desc->dtype,
                            .count = ifd_gpu_elements(chosen),
                            .choices = data->shape.dim[axis]};
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_gather);
    ifd_gpu_define(&call, "#define ELEMENT %s\n",
                   ifd_gpu_element_type(ifd_dtype_bytes(data->dtype)));
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_constant(&call, pack_picks, picks, NULL, picks->count * sizeof(int32_t));
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)count);
    ifd_gpu_int(&call, (int64_t)product(&data->shape, batch_dims, axis));
    ifd_gpu_int(&call, data->shape.dim[axis]);
    ifd_gpu_int(&call, (int64_t)product(chosen, batch_dims, chosen->rank));
    ifd_gpu_int(&call, (int64_t)product(&data->shape, axis + 1, data->shape.rank));
    ifd_gpu_items(&call, count, 1, 1);
    return ifd_gpu_add_step(lowering, &call, "gather", 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_gather = {gather_takes, gather_lower};

/* ---- gather_nd, scatter_nd ---- */

/* Slices of a tensor, named by the last dimension of the indices. */
struct slices {
    const uint8_t *data;        /* the indices; as picks */
    enum ifd_dtype dtype;       /* of them */
    int64_t dim[IFD_MAX_RANK];  /* of the tensor */
    uint32_t depth;             /* how many of them an index names */
    size_t count, slices, size; /* indices, slices of the tensor, elements of a slice */
};

static struct slices slices_of(const struct ifd_shape *tensor, const struct ifd_operand *indices)
{
    const struct ifd_shape *shape = &indices->desc->shape;
    const uint32_t last = shape->rank - 1;
    struct slices s = {.data = indices->data.data,
                       .dtype = indices->desc->dtype,
                       .depth = (uint32_t)shape->dim[last],
                       .count = product(shape, 0, last)};
    memcpy(s.dim, tensor->dim, sizeof(s.dim));
    s.slices = product(tensor, 0, s.depth);
    s.size = product(tensor, s.depth, tensor->rank);
    return s;
}

/* The slice that index number i names; -1: there is none. */
static int64_t slice_at(const struct slices *s, size_t i)
{
    int64_t at = 0;
    for (uint32_t d = 0; d < s->depth; d++) {
        const int64_t index = index_at(s->dtype, s->data, i * s->depth + d);
        if (index < 0 || index >= s->dim[d]) {
            return -1;
        }
        at = at * s->dim[d] + index;
    }
    return at;
}

static bool names_slices(const struct ifd_shape *tensor, const struct ifd_operand *indices,
                         struct ifd_err *reason)
{
    const struct slices s = slices_of(tensor, indices);
    bool fits = s.data != NULL && s.slices <= INT32_MAX && s.count > 0;
    for (size_t i = 0; fits && i < s.count; i++) {
        fits = slice_at(&s, i) >= 0;
    }
    if (!fits) {
        ifd_fail(reason, IFD_UNSUPPORTED, "indices are not constant, or out of range");
    }
    return fits;
}

static bool gather_nd_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_desc *data = node->input[0].desc;
    if (data->dtype == IFD_STR || !ifd_gpu_element_type(ifd_dtype_bytes(data->dtype))) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(data->dtype));
        return false;
    }
    return names_slices(&data->shape, &node->input[1], reason);
}

static void pack_slices(const void *params, const void *source, void *packed)
{
    const struct slices *s = params;
    int32_t *to = packed;
    (void)source;
    for (size_t i = 0; i < s->count; i++) {
        to[i] = (int32_t)slice_at(s, i);
    }
}

/* NULL without memory. */
static struct slices *keep_slices(struct ifd_gpu_lowering *lowering, const struct ifd_shape *tensor,
                                  const struct ifd_operand *indices, struct ifd_err *err)
{
    struct slices *s = ifd_low_params(&lowering->base, 1, sizeof(*s));
    if (s) {
        *s = slices_of(tensor, indices);
    } else {
        (void)ifd_arena_fail(lowering->base.arena, sizeof(*s), err);
    }
    return s;
}

static enum ifd_code gather_nd_lower(struct ifd_gpu_lowering *lowering,
                                     const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_desc *data = node->view.input[0].desc;
    const struct ifd_operand *indices = &node->view.input[1];
    const size_t count = ifd_gpu_elements(&node->view.output[0].shape);
    const struct slices *s = keep_slices(lowering, &data->shape, indices, err);
    if (!s) {
        return IFD_NOMEM;
    }
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_gather);
    ifd_gpu_define(&call, "#define ELEMENT %s\n",
                   ifd_gpu_element_type(ifd_dtype_bytes(data->dtype)));
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_constant(&call, pack_slices, s, NULL, s->count * sizeof(int32_t));
    ifd_gpu_out(&call, node->output_value[0]);
    const int64_t numbers[] = {(int64_t)count, 1, (int64_t)s->slices, (int64_t)s->count,
                               (int64_t)s->size};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ifd_gpu_int(&call, numbers[i]);
    }
    ifd_gpu_items(&call, count, 1, 1);
    return ifd_gpu_add_step(lowering, &call, "gather_nd", 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_gather_nd = {gather_nd_takes, gather_nd_lower};

/* What sums of a type are made of; NULL: kernels do not know it. Integers wrap around. */
static const char *sum_type(enum ifd_dtype dtype)
{
    return dtype == IFD_F32 ? "float" : ifd_gpu_element_type(ifd_dtype_bytes(dtype));
}

static bool scatter_nd_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const enum ifd_dtype dtype = node->output[0].dtype;
    if (!ifd_gpu_number_type(dtype)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(dtype));
        return false;
    }
    return names_slices(&node->output[0].shape, &node->input[0], reason);
}

/* Where the indices of each slice begin in what pack_members makes; one more at the end. */
static void pack_starts(const void *params, const void *source, void *packed)
{
    const struct slices *s = params;
    int32_t *start = packed;
    (void)source;
    memset(start, 0, (s->slices + 1) * sizeof(*start));
    for (size_t i = 0; i < s->count; i++) {
        start[slice_at(s, i) + 1]++;
    }
    for (size_t k = 0; k < s->slices; k++) {
        start[k + 1] += start[k];
    }
}

/* The numbers of the indices, sorted by their slices. A scratch array stands behind them. */
static void pack_members(const void *params, const void *source, void *packed)
{
    const struct slices *s = params;
    int32_t *member = packed, *next = member + s->count;
    pack_starts(params, source, next);
    for (size_t i = 0; i < s->count; i++) {
        member[next[slice_at(s, i)]++] = (int32_t)i;
    }
}

static enum ifd_code scatter_nd_lower(struct ifd_gpu_lowering *lowering,
                                      const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_desc *out = &node->view.output[0];
    const struct ifd_operand *indices = &node->view.input[0];
    const size_t count = ifd_gpu_elements(&out->shape);
    const struct slices *s = keep_slices(lowering, &out->shape, indices, err);
    if (!s) {
        return IFD_NOMEM;
    }
    const size_t starts = (s->slices + 1) * sizeof(int32_t);
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_scatter);
    ifd_gpu_define(&call, "#define T %s\n#define ADD(a, b) ((a) %s (b))\n", sum_type(out->dtype),
                   out->dtype == IFD_BOOL ? "|" : "+");
    ifd_gpu_in(&call, node->input_value[1]);
    ifd_gpu_constant(&call, pack_starts, s, NULL, starts);
    ifd_gpu_constant(&call, pack_members, s, NULL, s->count * sizeof(int32_t) + starts);
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)count);
    ifd_gpu_int(&call, (int64_t)s->size);
    ifd_gpu_items(&call, count, 1, 1);
    return ifd_gpu_add_step(lowering, &call, "scatter_nd", 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_scatter_nd = {scatter_nd_takes, scatter_nd_lower};

/* The semantic check of a TFLite model, before anything is built from it. */
#include <math.h>
#include <string.h>

#include "engine/base/str.h"
#include "engine/ir/shape.h"
#include "engine/parse/tflite/tflite_impl.h"

#define FORMAT_VERSION 3

/* State of a tensor during the walk over the operators. */
enum state { STATE_NOTHING, STATE_CONSTANT, STATE_VARIABLE, STATE_INPUT, STATE_MADE };

struct check {
    const struct ifd_tflite_model *model;
    const struct ifd_tflite_subgraph *g; /* that is being checked */
    struct ifd_bytes file;
    const struct ifd_limits *limits;
    uint8_t *state; /* enum state per tensor */
    struct ifd_err *err;
};

bool ifd_tflite_is_plain(const char *name)
{
    for (const char *p = name; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f) {
            return false;
        }
    }
    return ifd_str_is_utf8(ifd_str(name));
}

bool ifd_tflite_dtype(int32_t type, enum ifd_dtype *ret)
{
    /* By the format's numbers; IFD_DTYPE_COUNT for types that inferd lacks (complex128,
     * resource, variant). Constants of 2-bit and 4-bit numbers are unpacked. */
    static const uint8_t table[] = {
        IFD_F32,         IFD_F16, IFD_S32, IFD_U8,  IFD_S64,         IFD_STR, IFD_BOOL,
        IFD_S16,         IFD_C64, IFD_S8,  IFD_F64, IFD_DTYPE_COUNT, IFD_U64, IFD_DTYPE_COUNT,
        IFD_DTYPE_COUNT, IFD_U32, IFD_U16, IFD_S8,  IFD_BF16,        IFD_S8,  IFD_U8};
    if (type < 0 || (size_t)type >= sizeof(table) || table[type] == IFD_DTYPE_COUNT) {
        return false;
    }
    *ret = (enum ifd_dtype)table[type];
    return true;
}

uint32_t ifd_tflite_narrow_bits(int32_t type)
{
    enum { INT4 = 17, INT2 = 19, UINT4 = 20 };
    return type == INT2 ? 2 : type == INT4 || type == UINT4 ? 4 : 0;
}

bool ifd_tflite_shape(const struct ifd_tflite_ints *ints, struct ifd_shape *ret)
{
    if (ints->count > IFD_MAX_RANK) {
        return false;
    }
    struct ifd_shape shape = {.rank = ints->count};
    for (uint32_t i = 0; i < ints->count; i++) {
        shape.dim[i] = ints->value[i];
    }
    *ret = shape;
    return true;
}

struct ifd_shape ifd_tflite_declared(const struct ifd_tflite_tensor *tensor,
                                     const struct ifd_shape *shape)
{
    struct ifd_shape declared = *shape;
    for (uint32_t d = 0; d < shape->rank && tensor->signature.count == shape->rank; d++) {
        declared.dim[d] = tensor->signature.value[d] == -1 ? IFD_DIM_ANY : shape->dim[d];
    }
    return declared;
}

bool ifd_tflite_content(const struct ifd_tflite_buffer *buffer, struct ifd_bytes file,
                        struct ifd_bytes *ret)
{
    if (buffer->offset <= 1) {
        *ret = buffer->data;
        return true;
    }
    if (buffer->data.size > 0 || buffer->offset > file.size ||
        buffer->size > file.size - buffer->offset) {
        return false;
    }
    *ret = (struct ifd_bytes){.data = file.data + buffer->offset, .size = (size_t)buffer->size};
    return true;
}

static enum ifd_code check_buffers(const struct check *c)
{
    for (uint32_t i = 0; i < c->model->buffer_count; i++) {
        const struct ifd_tflite_buffer *buffer = &c->model->buffer[i];
        struct ifd_bytes content;
        if (!ifd_tflite_content(buffer, c->file, &content)) {
            return ifd_fail(
                c->err, IFD_CORRUPT, "buffer %u: %llu bytes at %llu of a file of %zu bytes", i,
                (unsigned long long)buffer->size, (unsigned long long)buffer->offset, c->file.size);
        }
    }
    return IFD_OK;
}

static enum ifd_code check_opcodes(const struct check *c)
{
    for (uint32_t i = 0; i < c->model->opcode_count; i++) {
        const struct ifd_tflite_opcode *opcode = &c->model->opcode[i];
        if (opcode->builtin < 0 || opcode->version < 1) {
            return ifd_fail(c->err, IFD_CORRUPT, "operator code %u: operator %d, version %d", i,
                            opcode->builtin, opcode->version);
        }
        if (!ifd_tflite_is_plain(opcode->custom)) {
            return ifd_fail(c->err, IFD_CORRUPT, "operator code %u: its name is not plain text", i);
        }
    }
    return IFD_OK;
}

/* ---- tensors ---- */

static enum ifd_code check_dims(const struct check *c, uint32_t index)
{
    const struct ifd_tflite_tensor *t = &c->g->tensor[index];
    const struct ifd_tflite_ints *lists[] = {&t->shape, &t->signature};
    for (int k = 0; k < 2; k++) {
        for (uint32_t d = 0; d < lists[k]->count; d++) {
            if (lists[k]->value[d] < -1) {
                return ifd_fail(c->err, IFD_CORRUPT,
                                "tensor %u " NAME_FORMAT ": dimension %u is %d", index, t->name, d,
                                lists[k]->value[d]);
            }
        }
    }
    if (t->signature.count != 0 && t->signature.count != t->shape.count) {
        return ifd_fail(c->err, IFD_CORRUPT,
                        "tensor %u " NAME_FORMAT ": shape has %u dimensions, its signature %u",
                        index, t->name, t->shape.count, t->signature.count);
    }
    return IFD_OK;
}

int64_t ifd_tflite_zero_point(const struct ifd_tflite_tensor *tensor, uint32_t index)
{
    int64_t zero_point = 0;
    memcpy(&zero_point, tensor->zero_point + index * sizeof(zero_point), sizeof(zero_point));
    return zero_point;
}

/* Range of a type's zero points; false for types whose quantization is ignored. */
static bool zero_point_range(int32_t type, int64_t *ret_min, int64_t *ret_max)
{
    enum ifd_dtype dtype = IFD_DTYPE_COUNT;
    if (!ifd_tflite_dtype(type, &dtype)) {
        return false;
    }
    *ret_min = dtype == IFD_U8    ? 0
               : dtype == IFD_S8  ? INT8_MIN
               : dtype == IFD_S16 ? INT16_MIN
                                  : INT32_MIN;
    *ret_max = dtype == IFD_U8    ? UINT8_MAX
               : dtype == IFD_S8  ? INT8_MAX
               : dtype == IFD_S16 ? INT16_MAX
                                  : INT32_MAX;
    return (IFD_TFLITE_QUANTIZED & IFD_BIT(dtype)) != 0;
}

static enum ifd_code check_quantization(const struct check *c, uint32_t index)
{
    const struct ifd_tflite_tensor *t = &c->g->tensor[index];
    int64_t min = 0;
    int64_t max = 0;
    if (t->scale_count == 0 || !zero_point_range(t->type, &min, &max)) {
        return IFD_OK;
    }
    if (t->zero_point_count != t->scale_count) {
        return ifd_fail(c->err, IFD_CORRUPT,
                        "tensor %u " NAME_FORMAT ": %u scales and %u zero points", index, t->name,
                        t->scale_count, t->zero_point_count);
    }
    if (t->scale_count > 1) {
        int32_t axis = t->quantized_dimension;
        if (axis < 0 || (uint32_t)axis >= t->shape.count || t->shape.value[axis] < 0 ||
            (uint32_t)t->shape.value[axis] != t->scale_count) {
            return ifd_fail(c->err, IFD_CORRUPT,
                            "tensor %u " NAME_FORMAT ": %u scales along dimension %d of %u", index,
                            t->name, t->scale_count, axis, t->shape.count);
        }
    }
    for (uint32_t i = 0; i < t->scale_count; i++) {
        /* a bias' scale is that of its products, which a float may not hold; nobody uses it */
        const bool is_bias = max == INT32_MAX;
        if (!is_bias && (!isfinite(t->scale[i]) || t->scale[i] < 0)) {
            return ifd_fail(c->err, IFD_CORRUPT,
                            "tensor %u " NAME_FORMAT
                            ": scale %u is %g, expected a finite number from 0",
                            index, t->name, i, (double)t->scale[i]);
        }
        const int64_t zero_point = ifd_tflite_zero_point(t, i);
        if (zero_point < min || zero_point > max) {
            return ifd_fail(c->err, IFD_CORRUPT, "tensor %u " NAME_FORMAT ": zero point %u is %lld",
                            index, t->name, i, (long long)zero_point);
        }
    }
    return IFD_OK;
}

/* A constant's content has the size of its shape and type; a bool is 0 or 1. */
static enum ifd_code check_constant(const struct check *c, uint32_t index, struct ifd_bytes content)
{
    const struct ifd_tflite_tensor *t = &c->g->tensor[index];
    struct ifd_desc desc = {0};
    size_t bytes = 0;
    if (t->sparsity || !ifd_tflite_dtype(t->type, &desc.dtype) || desc.dtype == IFD_STR ||
        !ifd_tflite_shape(&t->shape, &desc.shape)) {
        return IFD_OK; /* refused where it is used */
    }
    const bool is_known = ifd_desc_bytes(&desc, &bytes);
    const uint32_t bits = ifd_tflite_narrow_bits(t->type);
    const size_t per_byte = bits > 0 ? 8 / bits : 1;
    if (!is_known || bytes / per_byte + (bytes % per_byte > 0) != content.size) {
        return ifd_fail(
            c->err, IFD_CORRUPT, "tensor %u " NAME_FORMAT ": %zu bytes of content for %s %s%s",
            index, t->name, content.size, ifd_dtype_name(desc.dtype), ifd_shape_text(&desc.shape).s,
            bits == 2   ? ", four in a byte"
            : bits == 4 ? ", two in a byte"
                        : "");
    }
    if (!ifd_desc_fits(&desc, c->limits->tensor_bytes)) {
        return ifd_fail(c->err, IFD_TOO_LARGE, "tensor %u " NAME_FORMAT ": %s %s, limit %zu bytes",
                        index, t->name, ifd_dtype_name(desc.dtype), ifd_shape_text(&desc.shape).s,
                        c->limits->tensor_bytes);
    }
    for (size_t i = 0; desc.dtype == IFD_BOOL && i < bytes; i++) {
        if (content.data[i] > 1) {
            return ifd_fail(c->err, IFD_CORRUPT, "tensor %u " NAME_FORMAT ": bool %zu is %u", index,
                            t->name, i, content.data[i]);
        }
    }
    return IFD_OK;
}

static enum ifd_code check_tensor(const struct check *c, uint32_t index)
{
    const struct ifd_tflite_tensor *t = &c->g->tensor[index];
    if (!ifd_tflite_is_plain(t->name)) {
        return ifd_fail(c->err, IFD_CORRUPT, "tensor %u: its name is not plain text", index);
    }
    if (t->buffer >= c->model->buffer_count && t->buffer != 0) {
        return ifd_fail(c->err, IFD_CORRUPT, "tensor %u " NAME_FORMAT ": buffer %u of %u", index,
                        t->name, t->buffer, c->model->buffer_count);
    }
    enum ifd_code code = check_dims(c, index);
    if (code == IFD_OK) {
        code = check_quantization(c, index);
    }
    struct ifd_bytes content = {0};
    if (code == IFD_OK && t->buffer < c->model->buffer_count &&
        ifd_tflite_content(&c->model->buffer[t->buffer], c->file, &content) && content.size > 0) {
        c->state[index] = STATE_CONSTANT;
        code = check_constant(c, index, content);
    }
    if (t->is_variable) {
        c->state[index] = STATE_VARIABLE;
    }
    return code;
}

/* A tensor of zero elements without a producer is a constant without content. */
static bool is_empty(const struct ifd_tflite_tensor *t)
{
    for (uint32_t d = 0; d < t->shape.count; d++) {
        if (t->shape.value[d] == 0) {
            return true;
        }
    }
    return false;
}

/* ---- graph ---- */

static enum ifd_code check_graph_inputs(const struct check *c)
{
    const struct ifd_tflite_subgraph *g = c->g;
    for (uint32_t i = 0; i < g->input.count; i++) {
        int32_t index = g->input.value[i];
        if (index < 0 || (uint32_t)index >= g->tensor_count) {
            return ifd_fail(c->err, IFD_CORRUPT, "input %u of the model is tensor %d of %u", i,
                            index, g->tensor_count);
        }
        if (c->state[index] == STATE_INPUT) {
            return ifd_fail(c->err, IFD_CORRUPT,
                            "input %u " NAME_FORMAT " of the model is listed twice", i,
                            g->tensor[index].name);
        }
        c->state[index] = STATE_INPUT;
    }
    return IFD_OK;
}

static enum ifd_code check_operands(const struct check *c, uint32_t node)
{
    const struct ifd_tflite_subgraph *g = c->g;
    const struct ifd_tflite_operator *op = &g->op[node];
    for (uint32_t i = 0; i < op->input.count; i++) {
        int32_t index = op->input.value[i];
        if (index == -1) {
            continue; /* an optional input that is absent */
        }
        if (index < 0 || (uint32_t)index >= g->tensor_count) {
            return ifd_fail(c->err, IFD_CORRUPT, "input %u is tensor %d of %u", i, index,
                            g->tensor_count);
        }
        if (c->state[index] == STATE_NOTHING && !is_empty(&g->tensor[index])) {
            return ifd_fail(c->err, IFD_CORRUPT,
                            "input %u " NAME_FORMAT " is made by no operator before it", i,
                            g->tensor[index].name);
        }
    }
    for (uint32_t i = 0; i < op->output.count; i++) {
        int32_t index = op->output.value[i];
        if (index < 0 || (uint32_t)index >= g->tensor_count) {
            return ifd_fail(c->err, IFD_CORRUPT, "output %u is tensor %d of %u", i, index,
                            g->tensor_count);
        }
        if (c->state[index] != STATE_NOTHING) {
            static const char *const what[] = {"", "a constant", "a variable",
                                               "an input of the model",
                                               "another operator's output"};
            return ifd_fail(c->err, IFD_CORRUPT, "output %u " NAME_FORMAT " is %s", i,
                            g->tensor[index].name, what[c->state[index]]);
        }
        c->state[index] = STATE_MADE;
    }
    for (uint32_t i = 0; i < op->intermediate.count; i++) {
        const int32_t index = op->intermediate.value[i];
        if (index < 0 || (uint32_t)index >= g->tensor_count) {
            return ifd_fail(c->err, IFD_CORRUPT, "intermediate %u is tensor %d of %u", i, index,
                            g->tensor_count);
        }
    }
    return IFD_OK;
}

static enum ifd_code check_operators(const struct check *c)
{
    const struct ifd_tflite_subgraph *g = c->g;
    for (uint32_t i = 0; i < g->op_count; i++) {
        if (g->op[i].opcode_index >= c->model->opcode_count) {
            return ifd_fail(c->err, IFD_CORRUPT, "node %u has operator code %u of %u", i,
                            g->op[i].opcode_index, c->model->opcode_count);
        }
        enum ifd_code code = check_operands(c, i);
        if (code != IFD_OK) {
            const struct ifd_tflite_opcode *opcode = &c->model->opcode[g->op[i].opcode_index];
            ifd_err_prefix(c->err, "node %u (%s)", i, opcode->builtin_name);
            return code;
        }
    }
    return IFD_OK;
}

static enum ifd_code check_graph_outputs(const struct check *c)
{
    const struct ifd_tflite_subgraph *g = c->g;
    for (uint32_t i = 0; i < g->output.count; i++) {
        int32_t index = g->output.value[i];
        if (index < 0 || (uint32_t)index >= g->tensor_count) {
            return ifd_fail(c->err, IFD_CORRUPT, "output %u of the model is tensor %d of %u", i,
                            index, g->tensor_count);
        }
        if (c->state[index] == STATE_NOTHING && !is_empty(&g->tensor[index])) {
            return ifd_fail(c->err, IFD_CORRUPT,
                            "output %u " NAME_FORMAT " of the model is made by no operator", i,
                            g->tensor[index].name);
        }
    }
    return IFD_OK;
}

static enum ifd_code check_maps(const struct check *c, uint32_t signature,
                                const struct ifd_tflite_map *map, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!ifd_tflite_is_plain(map[i].name)) {
            return ifd_fail(c->err, IFD_CORRUPT, "signature %u: name %u is not plain text",
                            signature, i);
        }
        if (map[i].tensor >=
            c->model->subgraph[c->model->signature[signature].subgraph].tensor_count) {
            return ifd_fail(
                c->err, IFD_CORRUPT, "signature %u: " NAME_FORMAT " is tensor %u of %u", signature,
                map[i].name, map[i].tensor,
                c->model->subgraph[c->model->signature[signature].subgraph].tensor_count);
        }
    }
    return IFD_OK;
}

static enum ifd_code check_signatures(const struct check *c)
{
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < c->model->signature_count; i++) {
        const struct ifd_tflite_signature *s = &c->model->signature[i];
        if (!ifd_tflite_is_plain(s->key)) {
            return ifd_fail(c->err, IFD_CORRUPT, "signature %u: its name is not plain text", i);
        }
        if (s->subgraph >= c->model->subgraph_count) {
            return ifd_fail(c->err, IFD_CORRUPT, "signature %u " NAME_FORMAT ": subgraph %u of %u",
                            i, s->key, s->subgraph, c->model->subgraph_count);
        }
        code = check_maps(c, i, s->input, s->input_count);
        if (code == IFD_OK) {
            code = check_maps(c, i, s->output, s->output_count);
        }
    }
    return code;
}

static enum ifd_code check_metadata(const struct check *c)
{
    for (uint32_t i = 0; i < c->model->metadata_count; i++) {
        const struct ifd_tflite_metadata_entry *entry = &c->model->metadata[i];
        if (!ifd_tflite_is_plain(entry->name)) {
            return ifd_fail(c->err, IFD_CORRUPT, "metadata %u: its name is not plain text", i);
        }
        if (entry->buffer >= c->model->buffer_count) {
            return ifd_fail(c->err, IFD_CORRUPT, "metadata " NAME_FORMAT ": buffer %u of %u",
                            entry->name, entry->buffer, c->model->buffer_count);
        }
    }
    return IFD_OK;
}

static enum ifd_code check_subgraph(struct check *c, uint32_t index, struct ifd_arena *scratch)
{
    c->g = &c->model->subgraph[index];
    c->state = ifd_arena_take(scratch, c->g->tensor_count);
    if (!c->state) {
        return ifd_arena_fail(scratch, c->g->tensor_count, c->err);
    }
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < c->g->tensor_count; i++) {
        code = check_tensor(c, i);
    }
    enum ifd_code (*const rest[])(const struct check *) = {check_graph_inputs, check_operators,
                                                           check_graph_outputs};
    for (size_t i = 0; code == IFD_OK && i < sizeof(rest) / sizeof(rest[0]); i++) {
        code = rest[i](c);
    }
    if (code != IFD_OK && index > 0) {
        ifd_err_prefix(c->err, "subgraph %u", index);
    }
    return code;
}

enum ifd_code ifd_tflite_check(const struct ifd_tflite_model *model, struct ifd_bytes file,
                               const struct ifd_limits *limits, struct ifd_arena *scratch,
                               struct ifd_err *err)
{
    if (model->version != FORMAT_VERSION) {
        return ifd_fail(err, IFD_UNSUPPORTED, "TFLite format version %u, expected %d",
                        model->version, FORMAT_VERSION);
    }
    if (model->subgraph_count == 0) {
        return ifd_fail(err, IFD_CORRUPT, "the model has no subgraph");
    }
    struct check c = {.model = model, .file = file, .limits = limits, .err = err};
    enum ifd_code code = check_buffers(&c);
    if (code == IFD_OK) {
        code = check_opcodes(&c);
    }
    for (uint32_t i = 0; code == IFD_OK && i < model->subgraph_count; i++) {
        code = check_subgraph(&c, i, scratch);
    }
    if (code == IFD_OK) {
        code = check_signatures(&c);
    }
    return code == IFD_OK ? check_metadata(&c) : code;
}

/* The tensors of a model config: inputs, outputs, and the samples of its warm-up. */
#include "server/repo/manifest_impl.h"

#include <stddef.h>
#include <string.h>

#include "engine/base/str.h"
#include "server/model/reshape.h"

/* ---- tensors ---- */

enum ifd_code ifd_manifest_read_dtype(struct ifd_fields *c, const struct ifd_text_field *f,
                                      void *at)
{
    static const struct {
        const char *name;
        enum ifd_dtype dtype;
    } table[] = {
        {"TYPE_BOOL", IFD_BOOL},  {"TYPE_UINT8", IFD_U8},   {"TYPE_UINT16", IFD_U16},
        {"TYPE_UINT32", IFD_U32}, {"TYPE_UINT64", IFD_U64}, {"TYPE_INT8", IFD_S8},
        {"TYPE_INT16", IFD_S16},  {"TYPE_INT32", IFD_S32},  {"TYPE_INT64", IFD_S64},
        {"TYPE_FP16", IFD_F16},   {"TYPE_FP32", IFD_F32},   {"TYPE_FP64", IFD_F64},
        {"TYPE_STRING", IFD_STR}, {"TYPE_BF16", IFD_BF16},
    };
    struct ifd_tensor_info *tensor = at;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(f->text, table[i].name) == 0) {
            tensor->dtype = table[i].dtype;
            tensor->has_dtype = true;
            return IFD_OK;
        }
    }
    return ifd_field_fail(c, f, "a data type (TYPE_FP32, TYPE_UINT8, TYPE_INT32, TYPE_STRING …)");
}

static enum ifd_code add_dim(struct ifd_fields *c, const struct ifd_text_field *f,
                             struct ifd_shape *shape)
{
    int64_t dim = 0;
    if (!ifd_str_s64(ifd_str(f->text), &dim) || (dim < 1 && dim != IFD_DIM_ANY)) {
        return ifd_field_fail(c, f, "a dimension (1 or more, or -1)");
    }
    if (shape->rank == IFD_MAX_RANK) {
        return ifd_fail(c->err, IFD_TOO_LARGE, "%s:%u: more than %d dimensions", c->file, f->line,
                        IFD_MAX_RANK);
    }
    shape->dim[shape->rank++] = dim;
    return IFD_OK;
}

enum ifd_code ifd_manifest_read_dim(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_tensor_info *tensor = at;
    tensor->has_shape = true;
    return add_dim(c, f, &tensor->shape);
}

static enum ifd_code read_reshape_dim(struct ifd_fields *c, const struct ifd_text_field *f,
                                      void *at)
{
    return add_dim(c, f, &((struct ifd_tensor_info *)at)->reshape);
}

static const struct ifd_field_row reshape_rows[] = {{"shape", read_reshape_dim, IFD_FIELD_EACH}};

static enum ifd_code read_reshape(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    ((struct ifd_tensor_info *)at)->has_reshape = true;
    return IFD_READ_MESSAGE(c, f, reshape_rows, at);
}

static enum ifd_code read_format(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    static const char *const names[] = {
#define X(id, name) name,
        IFD_TENSOR_FORMATS(X)
#undef X
    };
    for (int i = 0; i < IFD_FORMAT_COUNT; i++) {
        if (strcmp(f->text, names[i]) == 0) {
            *(enum ifd_tensor_format *)at = (enum ifd_tensor_format)i;
            return IFD_OK;
        }
    }
    return ifd_field_fail(c, f, "FORMAT_NONE, FORMAT_NHWC or FORMAT_NCHW");
}

static const struct ifd_field_row tensor_rows[] = {
    {"name", ifd_field_text, offsetof(struct ifd_tensor_info, name)},
    {"data_type", ifd_manifest_read_dtype, 0},
    {"dims", ifd_manifest_read_dim, IFD_FIELD_EACH},
    {"format", read_format, offsetof(struct ifd_tensor_info, format)},
    {"optional", ifd_field_bool, offsetof(struct ifd_tensor_info, optional)},
    {"label_filename", ifd_field_text, offsetof(struct ifd_tensor_info, label_filename)},
    {"reshape", read_reshape, 0},
    {"is_shape_tensor", NULL, 0},
    {"allow_ragged_batch", NULL, 0},
    {"is_non_linear_format_io", NULL, 0},
};

static enum ifd_code read_tensor(struct ifd_fields *c, const struct ifd_text_field *f,
                                 const struct ifd_tensor_info **array, uint32_t *count)
{
    if (*count == IFD_MANIFEST_TENSORS_MAX) {
        return ifd_fail(c->err, IFD_TOO_LARGE, "%s:%u: more than %d tensors", c->file, f->line,
                        IFD_MANIFEST_TENSORS_MAX);
    }
    struct ifd_tensor_info *grown = ifd_field_append(c, *array, count, sizeof(**array));
    if (!grown) {
        return ifd_arena_fail(c->arena, sizeof(**array), c->err);
    }
    *array = grown;
    struct ifd_tensor_info *tensor = &grown[*count - 1];
    *tensor = (struct ifd_tensor_info){.name = "", .label_filename = "", .line = f->line};
    enum ifd_code code = IFD_READ_MESSAGE(c, f, tensor_rows, tensor);
    if (!code && tensor->name[0] == '\0') {
        code = ifd_fail(c->err, IFD_INVALID, "%s:%u: %s has no name", c->file, f->line, f->name);
    }
    if (!code && tensor->has_reshape && !tensor->has_shape) {
        code = ifd_fail(c->err, IFD_INVALID, "%s:%u: reshape of \"%s\" needs dims", c->file,
                        f->line, tensor->name);
    }
    if (!code && tensor->has_reshape && !ifd_reshape_is_possible(tensor)) {
        code = ifd_fail(c->err, IFD_INVALID,
                        "%s:%u: reshape of \"%s\" needs as many elements and open dimensions as "
                        "its dims",
                        c->file, f->line, tensor->name);
    }
    return code;
}

enum ifd_code ifd_manifest_read_input(struct ifd_fields *c, const struct ifd_text_field *f,
                                      void *at)
{
    struct ifd_model_desc *m = at;
    return read_tensor(c, f, &m->input, &m->input_count);
}

enum ifd_code ifd_manifest_read_output(struct ifd_fields *c, const struct ifd_text_field *f,
                                       void *at)
{
    struct ifd_model_desc *m = at;
    return read_tensor(c, f, &m->output, &m->output_count);
}

/* ---- warm-up ---- */

static enum ifd_code read_fill(struct ifd_fields *c, const struct ifd_text_field *f,
                               struct ifd_warm_input_info *input, enum ifd_warm_fill fill)
{
    bool is_so = false;
    enum ifd_code code = ifd_field_bool(c, f, &is_so);
    input->fill = is_so ? fill : input->fill;
    return code;
}

static enum ifd_code read_zeros(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    return read_fill(c, f, at, IFD_WARM_ZEROS);
}

static enum ifd_code read_random(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    return read_fill(c, f, at, IFD_WARM_RANDOM);
}

static enum ifd_code read_data_file(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_warm_input_info *input = at;
    input->fill = IFD_WARM_FILE;
    return ifd_field_text(c, f, &input->file);
}

static const struct ifd_field_row warm_input_rows[] = {
    {"data_type", ifd_manifest_read_dtype, 0},
    {"dims", ifd_manifest_read_dim, IFD_FIELD_EACH},
    {"zero_data", read_zeros, 0},
    {"random_data", read_random, 0},
    {"input_data_file", read_data_file, 0},
};

static enum ifd_code add_warm_input(struct ifd_fields *c, void *at, const char *key,
                                    const struct ifd_text_field *value)
{
    struct ifd_warm_up_info *warm_up = at;
    struct ifd_warm_input_info *grown =
        ifd_field_append(c, warm_up->input, &warm_up->input_count, sizeof(*grown));
    if (!grown) {
        return ifd_arena_fail(c->arena, sizeof(*grown), c->err);
    }
    warm_up->input = grown;
    struct ifd_warm_input_info *input = &grown[warm_up->input_count - 1];
    *input = (struct ifd_warm_input_info){
        .tensor = {.name = key, .label_filename = "", .line = value->line}, .file = ""};
    enum ifd_code code = IFD_READ_MESSAGE(c, value, warm_input_rows, input);
    for (uint32_t d = 0; d < input->tensor.shape.rank && !code; d++) {
        if (input->tensor.shape.dim[d] < 1) {
            code = ifd_field_fail(c, value, "a sample: its dims must be 1 or more");
        }
    }
    return code || input->tensor.has_dtype ? code
                                           : ifd_field_fail(c, value, "a sample: no data_type");
}

static enum ifd_code read_warm_input(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    return ifd_field_entries(c, f, at, add_warm_input);
}

#define WARM_MEMBER(member) offsetof(struct ifd_warm_up_info, member)
static const struct ifd_field_row warm_up_rows[] = {
    {"name", ifd_field_text, WARM_MEMBER(name)},
    {"batch_size", ifd_field_u32, WARM_MEMBER(batch_size)},
    {"count", ifd_field_u32, WARM_MEMBER(count)},
    {"inputs", read_warm_input, IFD_FIELD_EACH},
};
#undef WARM_MEMBER

enum ifd_code ifd_manifest_read_warm_up(struct ifd_fields *c, const struct ifd_text_field *f,
                                        void *at)
{
    struct ifd_model_desc *m = at;
    struct ifd_warm_up_info *grown =
        ifd_field_append(c, m->warm_up, &m->warm_up_count, sizeof(*grown));
    if (!grown) {
        return ifd_arena_fail(c->arena, sizeof(*grown), c->err);
    }
    m->warm_up = grown;
    struct ifd_warm_up_info *warm_up = &grown[m->warm_up_count - 1];
    *warm_up = (struct ifd_warm_up_info){.name = "", .batch_size = 1, .count = 1};
    enum ifd_code code = IFD_READ_MESSAGE(c, f, warm_up_rows, warm_up);
    if (!code && (warm_up->count > 100000 || warm_up->batch_size == 0)) {
        code = ifd_fail(c->err, IFD_INVALID,
                        "%s:%u: model_warmup: batch_size is 1 or more, count at most 100000",
                        c->file, f->line);
    }
    return code;
}

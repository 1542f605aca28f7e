/* Reads "inputs" of a request: matches them with the model and takes their data from the JSON or
 * from behind it. */
#include "api/http/infer_json.h"

#include "api/core/shape.h"
#include "api/http/tensor_binary.h"
#include "api/json/tensor_json.h"
#include "engine/base/str.h"

#include <stdio.h>

/* An input as the request's JSON has it. */
struct given {
    struct ifd_str name, datatype, region;
    struct ifd_shape shape;
    uint64_t binary_bytes;
    const char *data_at; /* start of "data" if it came before name, datatype and shape */
    bool has_name, has_datatype, has_shape, has_data, has_parameters, has_binary, has_region;
    bool is_bound;
    int index;    /* of the model's input */
    size_t count; /* elements */
};

/* "[-1,16]"; batched: with the batch dimension in front. */
static const char *dims_text(const struct ifd_shape *shape, bool batched, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, batched ? "[-1" : "[");
    for (uint32_t i = 0; i < shape->rank && at < size; i++) {
        at += (size_t)snprintf(text + at, size - at, "%s%lld", i > 0 || batched ? "," : "",
                               (long long)shape->dim[i]);
    }
    if (at < size) {
        (void)snprintf(text + at, size - at, "]");
    }
    return text;
}

static int find_input(const struct ifd_model_desc *desc, struct ifd_str name)
{
    for (uint32_t i = 0; i < desc->input_count; i++) {
        if (!desc->input[i].is_hidden && ifd_str_equal(name, desc->input[i].name)) {
            return (int)i;
        }
    }
    return -1;
}

static bool find_dtype(struct ifd_str name, enum ifd_dtype *ret)
{
    for (int i = 0; i < IFD_DTYPE_COUNT; i++) {
        if (ifd_str_equal(name, ifd_dtype_wire_name((enum ifd_dtype)i))) {
            *ret = (enum ifd_dtype)i;
            return true;
        }
    }
    return false;
}

/* Whether the shape fits the model's; batch sizes are compared later, when all inputs are known. */
static bool shape_fits(const struct ifd_model_desc *desc, const struct ifd_shape *want,
                       const struct ifd_shape *got)
{
    uint32_t lead = desc->max_batch_size > 0 ? 1 : 0;
    if (got->rank != want->rank + lead) {
        return false;
    }
    for (uint32_t i = 0; i < want->rank; i++) {
        if (want->dim[i] != IFD_DIM_ANY && want->dim[i] != got->dim[i + lead]) {
            return false;
        }
    }
    return true;
}

static bool fail_shape(struct ifd_infer_parser *parser, const struct given *given)
{
    char want[200], got[200];
    const struct ifd_tensor_info *input = &parser->desc->input[given->index];
    bool batched = parser->desc->max_batch_size > 0;
    dims_text(&input->shape, batched, want, sizeof(want));
    dims_text(&given->shape, false, got, sizeof(got));
    return ifd_json_fail(&parser->in, IFD_INVALID,
                         "unexpected shape for input '%s' for model '%s'. Expected %s, got %s%s",
                         input->name, parser->desc->name, want, got,
                         batched && given->shape.rank == input->shape.rank
                             ? ". NOTE: the first dimension is the batch (max_batch_size > 0)"
                             : "");
}

/* Matches an input of the request with the model: name, data type, shape, number of elements. */
static bool bind(struct ifd_infer_parser *parser, struct given *given)
{
    struct ifd_json_in *in = &parser->in;
    const struct ifd_model_desc *desc = parser->desc;
    enum ifd_dtype dtype = IFD_F32;
    if (given->is_bound) {
        return true;
    }
    int index = find_input(desc, given->name);
    if (index < 0) {
        char names[100];
        ifd_infer_list_names(desc->input, desc->input_count, names, sizeof(names));
        return ifd_json_fail(in, IFD_INVALID,
                             "unexpected inference input '%.*s' for model '%s', whose input(s) are "
                             "[%s]",
                             ifd_json_shown(given->name), given->name.data, desc->name, names);
    }
    const struct ifd_tensor_info *input = &desc->input[index];
    if (parser->infer->core.has_input[index]) {
        return ifd_json_fail(in, IFD_INVALID, "input '%s' already exists in request", input->name);
    }
    if (!find_dtype(given->datatype, &dtype)) {
        return ifd_json_fail(in, IFD_INVALID, "invalid datatype for input %s: '%.*s'", input->name,
                             ifd_json_shown(given->datatype), given->datatype.data);
    }
    bool is_picture = dtype == IFD_STR && ifd_input_takes_pictures(input);
    if (dtype != input->dtype && !is_picture) {
        return ifd_json_fail(
            in, IFD_INVALID, "inference input '%s' data-type is '%s', but model '%s' expects '%s'",
            input->name, ifd_dtype_wire_name(dtype), desc->name, ifd_dtype_wire_name(input->dtype));
    }
    given->index = index;
    if (!ifd_shape_count(&given->shape, &given->count) ||
        given->count > SIZE_MAX / sizeof(struct ifd_str)) {
        return ifd_json_fail(in, IFD_INVALID,
                             "shape of input '%s' causes total element count to exceed maximum "
                             "size",
                             input->name);
    }
    if (!is_picture && !shape_fits(desc, &input->shape, &given->shape)) {
        return fail_shape(parser, given);
    }
    parser->infer->core.request.input[index] =
        (struct ifd_tensor){.dtype = dtype, .shape = given->shape};
    parser->infer->core.has_input[index] = true;
    given->is_bound = true;
    return true;
}

/* "data" is next in the reader. */
static bool read_data(struct ifd_infer_parser *parser, struct given *given)
{
    struct ifd_json_in *in = &parser->in;
    if (!bind(parser, given)) {
        return false;
    }
    struct ifd_tensor *tensor = &parser->infer->core.request.input[given->index];
    const char *name = parser->desc->input[given->index].name;
    if (!ifd_tensor_json_can(tensor->dtype)) {
        return ifd_json_fail(in, IFD_INVALID,
                             "receiving %s data via JSON is not supported. Please use the binary "
                             "data format for input %s",
                             ifd_dtype_wire_name(tensor->dtype), name);
    }
    if (ifd_tensor_json_least(given->count) > (size_t)(in->end - in->at) + 1) {
        return ifd_json_fail(in, IFD_INVALID,
                             "input '%s': 'data' is too short for the %zu elements of its shape",
                             name, given->count);
    }
    size_t bytes = given->count * ifd_dtype_bytes(tensor->dtype);
    tensor->data = ifd_arena_take_room(parser->arena, bytes);
    if (!tensor->data) {
        in->failed = true;
        in->code = ifd_arena_fail(parser->arena, bytes, in->err);
        return false;
    }
    tensor->bytes = bytes;
    tensor->capacity = bytes + IFD_TENSOR_PAD;
    return ifd_tensor_json_read(in, name, tensor->dtype, given->count, tensor->data);
}

/* name may be empty: members come in any order. */
static bool read_shape(struct ifd_json_in *in, struct ifd_str name, struct ifd_shape *ret)
{
    struct ifd_shape shape = {0};
    if (!ifd_json_open(in, '[')) {
        return false;
    }
    while (ifd_json_item(in)) {
        uint64_t dim = 0;
        if (shape.rank == IFD_MAX_RANK) {
            return ifd_json_fail(in, IFD_INVALID, "'shape' has more than %d dimensions",
                                 IFD_MAX_RANK);
        }
        if (!ifd_json_u64(in, &dim)) {
            ifd_err_prefix(in->err, "'shape' of input '%.*s'", ifd_json_shown(name),
                           name.data ? name.data : "");
            return false;
        }
        if (dim > INT64_MAX) {
            return ifd_json_fail(in, IFD_INVALID, "'shape' has a dimension above 2^63-1");
        }
        shape.dim[shape.rank++] = (int64_t)dim;
    }
    *ret = shape;
    return !in->failed;
}

static bool read_input_parameters(struct ifd_json_in *in, struct given *given)
{
    struct ifd_str key;
    if (!ifd_json_open(in, '{')) {
        return false;
    }
    while (ifd_json_member(in, &key)) {
        if (ifd_str_equal(key, "binary_data_size")) {
            ifd_json_once(in, &given->has_binary, "binary_data_size");
            ifd_json_u64(in, &given->binary_bytes);
        } else if (ifd_str_equal(key, "shared_memory_region")) {
            ifd_json_once(in, &given->has_region, "shared_memory_region");
            ifd_json_text(in, &given->region);
        } else {
            ifd_json_skip(in);
        }
    }
    return !in->failed;
}

static bool read_input_member(struct ifd_infer_parser *parser, struct ifd_str key,
                              struct given *given)
{
    struct ifd_json_in *in = &parser->in;
    if (ifd_str_equal(key, "name")) {
        return ifd_json_once(in, &given->has_name, "name") && ifd_json_text(in, &given->name);
    }
    if (ifd_str_equal(key, "datatype")) {
        return ifd_json_once(in, &given->has_datatype, "datatype") &&
               ifd_json_text(in, &given->datatype);
    }
    if (ifd_str_equal(key, "shape")) {
        return ifd_json_once(in, &given->has_shape, "shape") &&
               read_shape(in, given->name, &given->shape);
    }
    if (ifd_str_equal(key, "parameters")) {
        return ifd_json_once(in, &given->has_parameters, "parameters") &&
               read_input_parameters(in, given);
    }
    if (ifd_str_equal(key, "data")) {
        if (!ifd_json_once(in, &given->has_data, "data")) {
            return false;
        }
        if (given->has_name && given->has_datatype && given->has_shape) {
            return read_data(parser, given);
        }
        given->data_at = in->at;
    }
    return ifd_json_skip(in);
}

/* Reads "data" that came before name, datatype or shape: moves the reader back for it. */
static bool read_early_data(struct ifd_infer_parser *parser, struct given *given)
{
    const struct ifd_json_in after = parser->in;
    parser->in.at = given->data_at;
    if (!read_data(parser, given)) {
        return false;
    }
    parser->in.at = after.at;
    return true;
}

static bool require_members(struct ifd_json_in *in, const struct given *given)
{
    const char *missing = !given->has_name       ? "name"
                          : !given->has_shape    ? "shape"
                          : !given->has_datatype ? "datatype"
                                                 : NULL;
    if (missing) {
        return ifd_json_fail(in, IFD_INVALID,
                             "Unable to parse '%s': input%s%.*s has no such member", missing,
                             given->has_name ? " " : "", ifd_json_shown(given->name),
                             given->name.data ? given->name.data : "");
    }
    int ways = given->has_data + given->has_binary + given->has_region;
    if (ways != 1) {
        return ifd_json_fail(in, IFD_INVALID,
                             "Input must set only one of the following fields: 'data', "
                             "'binary_data_size' in 'parameters', 'shared_memory_region' in "
                             "'parameters'. But %s set for input '%.*s'",
                             ways == 0 ? "no field is" : "several are", ifd_json_shown(given->name),
                             given->name.data);
    }
    if (given->has_region) {
        return ifd_infer_fail_region(in, given->region);
    }
    return true;
}

bool ifd_infer_read_input(struct ifd_infer_parser *parser)
{
    struct ifd_json_in *in = &parser->in;
    struct given given = {0};
    struct ifd_str key;
    if (!ifd_json_open(in, '{')) {
        return false;
    }
    while (ifd_json_given(in, &key)) {
        if (!read_input_member(parser, key, &given)) {
            return false;
        }
    }
    if (in->failed || !require_members(in, &given) || !bind(parser, &given)) {
        return false;
    }
    if (given.data_at && !read_early_data(parser, &given)) {
        return false;
    }
    struct ifd_http_infer *infer = parser->infer;
    const struct ifd_tensor *tensor = &infer->core.request.input[given.index];
    const bool has_base64 =
        !given.has_binary && tensor->dtype != parser->desc->input[given.index].dtype;
    if (given.has_binary || has_base64) {
        parser->pending[parser->pending_count++] =
            (struct ifd_infer_pending){.index = given.index,
                                       .has_base64 = has_base64,
                                       .bytes = given.binary_bytes,
                                       .count = given.count};
    }
    return !in->failed;
}

enum ifd_code ifd_infer_take_pending(struct ifd_infer_parser *parser, struct ifd_err *err)
{
    struct ifd_http_infer *infer = parser->infer;
    const struct ifd_model_desc *desc = parser->desc;
    size_t at = 0;
    for (size_t i = 0; i < parser->pending_count; i++) {
        const struct ifd_infer_pending *pending = &parser->pending[i];
        const char *name = desc->input[pending->index].name;
        struct ifd_tensor *tensor = &infer->core.request.input[pending->index];
        if (pending->has_base64) {
            enum ifd_code code = ifd_infer_add_base64_pictures(infer, pending->index, tensor->data,
                                                               pending->count, err);
            if (code != IFD_OK) {
                return code;
            }
            continue;
        }
        size_t left = parser->tail.size - at;
        if (pending->bytes > left) {
            return ifd_fail(err, IFD_INVALID,
                            "unexpected size for input '%s', expecting %llu additional bytes for "
                            "model '%s'",
                            name, (unsigned long long)(pending->bytes - left), desc->name);
        }
        struct ifd_bytes raw = {.data = parser->tail.data + at, .size = (size_t)pending->bytes};
        at += raw.size;
        enum ifd_code code =
            ifd_tensor_binary_read(raw, left - raw.size + IFD_TENSOR_PAD, name, desc->name,
                                   pending->count, parser->arena, tensor, err);
        if (code == IFD_OK && tensor->dtype != desc->input[pending->index].dtype) {
            code = ifd_infer_add_text_pictures(infer, pending->index, tensor->data, pending->count,
                                               err);
        }
        if (code != IFD_OK) {
            return code;
        }
    }
    if (at != parser->tail.size) {
        return ifd_fail(err, IFD_INVALID,
                        "unexpected additional input data for model '%s': %zu bytes behind the "
                        "last input",
                        desc->name, parser->tail.size - at);
    }
    return IFD_OK;
}

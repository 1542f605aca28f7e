/* The body of an inference request: JSON, JSON with binary tensors, or one raw tensor. */
#include "api/infer_impl.h"

#include "api/json_read.h"
#include "api/tensor_binary.h"
#include "api/tensor_json.h"
#include "engine/base/str.h"

#include <stdio.h>
#include <string.h>

/* An input as the request's JSON has it. */
struct given {
    struct ifd_str name, datatype, region;
    struct ifd_shape shape;
    uint64_t binary_bytes;
    const char *data_at; /* where "data" begins, if it came before what it takes to read it */
    bool has_name, has_datatype, has_shape, has_data, has_binary, has_region;
    bool is_bound;
    int index;    /* of the model's input */
    size_t count; /* elements */
};

/* A binary input waits for the JSON's end, where the tensors begin. */
struct pending {
    int index;
    uint64_t bytes;
    size_t count;
};

struct parser {
    struct ifd_infer *infer;
    const struct ifd_model_desc *desc;
    struct ifd_arena *arena;
    struct ifd_json_in in;
    struct pending *pending; /* as many as the model has inputs */
    size_t pending_count;
    struct ifd_bytes tail; /* behind the JSON */
};

const char *ifd_dims_text(const struct ifd_shape *shape, bool batched, char *text, size_t size)
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

int ifd_infer_find_input(const struct ifd_model_desc *desc, struct ifd_str name)
{
    for (uint32_t i = 0; i < desc->input_count; i++) {
        if (ifd_str_equal(name, desc->input[i].name)) {
            return (int)i;
        }
    }
    return -1;
}

/* A name from the request for a message: not too long, whole characters are not worth the trouble since the writer of JSON
 * replaces what is cut. */
static int shown(struct ifd_str text)
{
    return text.size > 64 ? 64 : (int)text.size;
}

static bool find_dtype(struct ifd_str name, enum ifd_dtype *ret)
{
    for (int i = 0; i < IFD_DTYPE_COUNT; i++) {
        if (i != IFD_C64 && ifd_str_equal(name, ifd_dtype_wire_name((enum ifd_dtype)i))) {
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

static bool fail_shape(struct parser *parser, const struct given *given)
{
    char want[200], got[200];
    const struct ifd_tensor_info *input = &parser->desc->input[given->index];
    bool batched = parser->desc->max_batch_size > 0;
    ifd_dims_text(&input->shape, batched, want, sizeof(want));
    ifd_dims_text(&given->shape, false, got, sizeof(got));
    return ifd_json_fail(&parser->in, IFD_INVALID,
                         "unexpected shape for input '%s' for model '%s'. Expected %s, got %s%s",
                         input->name, parser->desc->name, want, got,
                         batched && given->shape.rank == input->shape.rank
                             ? ". NOTE: the first dimension is the batch (max_batch_size > 0)"
                             : "");
}

/* Matches what the request says of an input with the model: name, data type, shape, number of elements. */
static bool bind(struct parser *parser, struct given *given)
{
    struct ifd_json_in *in = &parser->in;
    const struct ifd_model_desc *desc = parser->desc;
    enum ifd_dtype dtype = IFD_F32;
    if (given->is_bound) {
        return true;
    }
    int index = ifd_infer_find_input(desc, given->name);
    if (index < 0) {
        return ifd_json_fail(in, IFD_INVALID, "unexpected inference input '%.*s' for model '%s'",
                             shown(given->name), given->name.data, desc->name);
    }
    const struct ifd_tensor_info *input = &desc->input[index];
    if (parser->infer->has_input[index]) {
        return ifd_json_fail(in, IFD_INVALID, "input '%s' already exists in request", input->name);
    }
    if (!find_dtype(given->datatype, &dtype)) {
        return ifd_json_fail(in, IFD_INVALID, "invalid datatype for input %s: '%.*s'", input->name,
                             shown(given->datatype), given->datatype.data);
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
    parser->infer->request.input[index] =
        (struct ifd_tensor){.dtype = dtype, .shape = given->shape};
    parser->infer->has_input[index] = true;
    given->is_bound = true;
    return true;
}

/* "data" is next in the reader. */
static bool read_data(struct parser *parser, struct given *given)
{
    struct ifd_json_in *in = &parser->in;
    if (!bind(parser, given)) {
        return false;
    }
    struct ifd_tensor *tensor = &parser->infer->request.input[given->index];
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
            ifd_err_prefix(in->err, "'shape' of input '%.*s'", shown(name),
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
            given->has_binary = ifd_json_u64(in, &given->binary_bytes);
        } else if (ifd_str_equal(key, "shared_memory_region")) {
            given->has_region = ifd_json_text(in, &given->region);
        } else {
            ifd_json_skip(in);
        }
    }
    return !in->failed;
}

/* A member that may come once. */
static bool once(struct ifd_json_in *in, bool *has, const char *name)
{
    if (*has) {
        return ifd_json_fail(in, IFD_INVALID, "member '%s' comes twice", name);
    }
    *has = true;
    return true;
}

static bool read_input_member(struct parser *parser, struct ifd_str key, struct given *given)
{
    struct ifd_json_in *in = &parser->in;
    if (ifd_str_equal(key, "name")) {
        return once(in, &given->has_name, "name") && ifd_json_text(in, &given->name);
    }
    if (ifd_str_equal(key, "datatype")) {
        return once(in, &given->has_datatype, "datatype") && ifd_json_text(in, &given->datatype);
    }
    if (ifd_str_equal(key, "shape")) {
        return once(in, &given->has_shape, "shape") && read_shape(in, given->name, &given->shape);
    }
    if (ifd_str_equal(key, "parameters")) {
        return read_input_parameters(in, given);
    }
    if (ifd_str_equal(key, "data")) {
        if (!once(in, &given->has_data, "data")) {
            return false;
        }
        if (given->has_name && given->has_datatype && given->has_shape) {
            return read_data(parser, given);
        }
        given->data_at = in->at;
    }
    return ifd_json_skip(in);
}

/* "data" that came too early is read now, by a reader that looks back. */
static bool read_early_data(struct parser *parser, struct given *given)
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
                             given->has_name ? " " : "", shown(given->name),
                             given->name.data ? given->name.data : "");
    }
    int ways = given->has_data + given->has_binary + given->has_region;
    if (ways != 1) {
        return ifd_json_fail(in, IFD_INVALID,
                             "Input must set only one of the following fields: 'data', "
                             "'binary_data_size' in 'parameters', 'shared_memory_region' in "
                             "'parameters'. But %s set for input '%.*s'",
                             ways == 0 ? "no field is" : "several are", shown(given->name),
                             given->name.data);
    }
    if (given->has_region) {
        return ifd_json_fail(in, IFD_NOT_FOUND,
                             "Unable to find shared memory region: '%.*s' (this server has none)",
                             shown(given->region), given->region.data);
    }
    return true;
}

static bool read_input(struct parser *parser)
{
    struct ifd_json_in *in = &parser->in;
    struct given given = {0};
    struct ifd_str key;
    if (!ifd_json_open(in, '{')) {
        return false;
    }
    while (ifd_json_member(in, &key)) {
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
    struct ifd_infer *infer = parser->infer;
    const struct ifd_tensor *tensor = &infer->request.input[given.index];
    if (given.has_binary) {
        parser->pending[parser->pending_count++] = (struct pending){
            .index = given.index, .bytes = given.binary_bytes, .count = given.count};
    } else if (tensor->dtype != parser->desc->input[given.index].dtype) {
        enum ifd_code code =
            ifd_infer_add_base64_pictures(infer, given.index, tensor->data, given.count, in->err);
        in->failed = code != IFD_OK;
        in->code = code;
    }
    return !in->failed;
}

static bool read_inputs(struct parser *parser)
{
    if (!ifd_json_open(&parser->in, '[')) {
        return false;
    }
    while (ifd_json_item(&parser->in)) {
        if (!read_input(parser)) {
            return false;
        }
    }
    return !parser->in.failed;
}

static bool read_output_parameters(struct ifd_json_in *in, struct ifd_output_choice *choice)
{
    struct ifd_str key, region;
    if (!ifd_json_open(in, '{')) {
        return false;
    }
    while (ifd_json_member(in, &key)) {
        if (ifd_str_equal(key, "binary_data")) {
            choice->has_binary = ifd_json_bool(in, &choice->binary);
        } else if (ifd_str_equal(key, "classification")) {
            ifd_json_u64(in, &choice->top);
        } else if (ifd_str_equal(key, "shared_memory_region")) {
            return ifd_json_text(in, &region) &&
                   ifd_json_fail(in, IFD_NOT_FOUND,
                                 "Unable to find shared memory region: '%.*s' (this server has "
                                 "none)",
                                 shown(region), region.data);
        } else {
            ifd_json_skip(in);
        }
    }
    return !in->failed;
}

static bool choose_output(struct parser *parser, struct ifd_str name,
                          const struct ifd_output_choice *choice)
{
    const struct ifd_model_desc *desc = parser->desc;
    for (uint32_t i = 0; i < desc->output_count; i++) {
        if (!ifd_str_equal(name, desc->output[i].name)) {
            continue;
        }
        if (parser->infer->choice[i].is_wanted) {
            return ifd_json_fail(&parser->in, IFD_INVALID, "output '%s' is requested twice",
                                 desc->output[i].name);
        }
        parser->infer->choice[i] = *choice;
        parser->infer->choice[i].is_wanted = true;
        return true;
    }
    return ifd_json_fail(&parser->in, IFD_INVALID,
                         "unexpected inference output '%.*s' for model '%s'", shown(name),
                         name.data, desc->name);
}

static bool read_output(struct parser *parser)
{
    struct ifd_json_in *in = &parser->in;
    struct ifd_output_choice choice = {0};
    struct ifd_str key, name = {0};
    bool has_name = false;
    if (!ifd_json_open(in, '{')) {
        return false;
    }
    while (ifd_json_member(in, &key)) {
        if (ifd_str_equal(key, "name")) {
            if (!once(in, &has_name, "name") || !ifd_json_text(in, &name)) {
                return false;
            }
        } else if (ifd_str_equal(key, "parameters")) {
            if (!read_output_parameters(in, &choice)) {
                return false;
            }
        } else if (!ifd_json_skip(in)) {
            return false;
        }
    }
    if (in->failed) {
        return false;
    }
    if (!has_name) {
        return ifd_json_fail(in, IFD_INVALID, "Unable to parse 'name': output has no such member");
    }
    return choose_output(parser, name, &choice);
}

static bool read_outputs(struct parser *parser)
{
    if (!ifd_json_open(&parser->in, '[')) {
        return false;
    }
    while (ifd_json_item(&parser->in)) {
        if (!read_output(parser)) {
            return false;
        }
    }
    return !parser->in.failed;
}

/* A request parameter that this server has no use for: any scalar will do. */
static bool skip_parameter(struct ifd_json_in *in, struct ifd_str key)
{
    enum ifd_json_kind kind = ifd_json_peek(in);
    if (ifd_str_starts(key, "triton_")) {
        return ifd_json_fail(in, IFD_INVALID,
                             "parameter keys starting with 'triton_' are reserved and should not "
                             "be specified: '%.*s'",
                             shown(key), key.data);
    }
    if (kind == IFD_JSON_OBJECT || kind == IFD_JSON_ARRAY || kind == IFD_JSON_NULL) {
        return ifd_json_fail(in, IFD_INVALID,
                             "parameter '%.*s' has invalid type. It should be either 'int', "
                             "'bool', 'double' or 'string'",
                             shown(key), key.data);
    }
    return ifd_json_skip(in);
}

static bool read_parameters(struct parser *parser)
{
    struct ifd_json_in *in = &parser->in;
    struct ifd_infer *infer = parser->infer;
    struct ifd_str key;
    if (!ifd_json_open(in, '{')) {
        return false;
    }
    while (ifd_json_member(in, &key)) {
        if (ifd_str_equal(key, "binary_data_output")) {
            ifd_json_bool(in, &infer->binary_default);
        } else if (ifd_str_equal(key, "priority")) {
            ifd_json_u64(in, &infer->request.priority);
        } else if (ifd_str_equal(key, "timeout")) {
            ifd_json_u64(in, &infer->request.timeout_us);
        } else {
            skip_parameter(in, key);
        }
    }
    return !in->failed;
}

static bool read_request(struct parser *parser)
{
    struct ifd_json_in *in = &parser->in;
    bool has_id = false, has_parameters = false, has_inputs = false, has_outputs = false;
    struct ifd_str key;
    if (!ifd_json_open(in, '{')) {
        return false;
    }
    while (ifd_json_member(in, &key)) {
        bool ok = false;
        if (ifd_str_equal(key, "inputs")) {
            ok = once(in, &has_inputs, "inputs") && read_inputs(parser);
        } else if (ifd_str_equal(key, "outputs")) {
            ok = once(in, &has_outputs, "outputs") && read_outputs(parser);
        } else if (ifd_str_equal(key, "id")) {
            ok = once(in, &has_id, "id") && ifd_json_text(in, &parser->infer->id);
        } else if (ifd_str_equal(key, "parameters")) {
            ok = once(in, &has_parameters, "parameters") && read_parameters(parser);
        } else {
            ok = ifd_json_skip(in);
        }
        if (!ok) {
            return false;
        }
    }
    if (!in->failed && !has_inputs) {
        return ifd_json_fail(in, IFD_INVALID,
                             "Unable to parse 'inputs': the request has no such member");
    }
    return ifd_json_finish(in);
}

static enum ifd_code copy_id(struct parser *parser, struct ifd_err *err)
{
    struct ifd_infer *infer = parser->infer;
    if (infer->id.size > 0) {
        char *id = ifd_arena_text(parser->arena, infer->id.data, infer->id.size);
        if (!id) {
            return ifd_arena_fail(parser->arena, infer->id.size, err);
        }
        infer->request.id = id;
    }
    return IFD_OK;
}

/* Gives the bytes behind the JSON to the inputs that asked for them, in the request's order. */
static enum ifd_code take_binary(struct parser *parser, struct ifd_err *err)
{
    struct ifd_infer *infer = parser->infer;
    const struct ifd_model_desc *desc = parser->desc;
    size_t at = 0;
    for (size_t i = 0; i < parser->pending_count; i++) {
        const struct pending *pending = &parser->pending[i];
        const char *name = desc->input[pending->index].name;
        struct ifd_tensor *tensor = &infer->request.input[pending->index];
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
            code = ifd_infer_add_pictures(infer, pending->index, tensor->data, pending->count, err);
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

static enum ifd_code parse_json(struct ifd_infer *infer, size_t json_bytes, struct ifd_err *err)
{
    struct ifd_bytes body = infer->call->body;
    struct parser parser = {
        .infer = infer,
        .desc = infer->desc,
        .arena = infer->call->exchange->arena,
        .tail = {.data = body.data + json_bytes, .size = body.size - json_bytes}};
    parser.pending =
        ifd_arena_take_array(parser.arena, infer->desc->input_count, sizeof(*parser.pending));
    if (!parser.pending) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the request");
    }
    struct ifd_str text = {.data = (const char *)body.data, .size = json_bytes};
    ifd_json_in_init(&parser.in, text, parser.arena, err);
    if (ifd_json_peek(&parser.in) != IFD_JSON_OBJECT) {
        return ifd_fail(err, IFD_INVALID, "failed to parse the request JSON buffer: %s",
                        json_bytes == 0 ? "the document is empty" : "it is no object");
    }
    if (!read_request(&parser)) {
        return parser.in.code;
    }
    enum ifd_code code = copy_id(&parser, err);
    if (code == IFD_OK) {
        code = take_binary(&parser, err);
    }
    return code == IFD_OK ? ifd_infer_check(infer, err) : code;
}

/* ---- one raw tensor ---- */

/* The shape of a raw body: batch 1, at most one dimension to find. */
static enum ifd_code raw_shape(const struct ifd_model_desc *desc,
                               const struct ifd_tensor_info *input, size_t bytes,
                               struct ifd_shape *ret, struct ifd_err *err)
{
    struct ifd_shape shape = {0};
    size_t known = ifd_dtype_bytes(input->dtype);
    int64_t *unknown = NULL;
    if (desc->max_batch_size > 0) {
        shape.dim[shape.rank++] = 1;
    }
    for (uint32_t i = 0; i < input->shape.rank; i++) {
        int64_t dim = input->shape.dim[i];
        int64_t *at = &shape.dim[shape.rank++];
        *at = dim;
        if (dim == IFD_DIM_ANY && unknown) {
            return ifd_fail(err, IFD_INVALID,
                            "raw body: shape of input '%s' cannot be deduced, it has several "
                            "variable dimensions",
                            input->name);
        }
        if (dim == IFD_DIM_ANY) {
            unknown = at;
        } else if (!ifd_size_mul(known, (size_t)dim, &known)) {
            return ifd_fail(err, IFD_TOO_LARGE, "raw body: input '%s' has too many elements",
                            input->name);
        }
    }
    if (unknown && input->dtype == IFD_STR) {
        *unknown = 1;
    } else if (unknown) {
        if (known == 0 || bytes % known != 0) {
            return ifd_fail(err, IFD_INVALID,
                            "input byte size mismatch for input '%s' for model '%s'. Expected a "
                            "multiple of %zu, got %zu",
                            input->name, desc->name, known, bytes);
        }
        *unknown = (int64_t)(bytes / known);
    }
    *ret = shape;
    return IFD_OK;
}

static enum ifd_code parse_raw(struct ifd_infer *infer, struct ifd_err *err)
{
    const struct ifd_model_desc *desc = infer->desc;
    struct ifd_bytes body = infer->call->body;
    struct ifd_arena *arena = infer->call->exchange->arena;
    if (desc->input_count != 1) {
        return ifd_fail(err, IFD_INVALID,
                        "Raw request must only have 1 input (found 1) to be deduced but got %u "
                        "inputs in '%s' model configuration",
                        desc->input_count, desc->name);
    }
    const struct ifd_tensor_info *input = &desc->input[0];
    struct ifd_tensor *tensor = &infer->request.input[0];
    tensor->dtype = input->dtype;
    enum ifd_code code = raw_shape(desc, input, body.size, &tensor->shape, err);
    size_t count = 0;
    if (code != IFD_OK) {
        return code;
    }
    if (!ifd_shape_count(&tensor->shape, &count)) {
        return ifd_fail(err, IFD_TOO_LARGE, "raw body: input '%s' has too many elements",
                        input->name);
    }
    infer->binary_default = true;
    infer->has_input[0] = true;
    if (input->dtype != IFD_STR) {
        code = ifd_tensor_binary_read(body, IFD_TENSOR_PAD, input->name, desc->name, count, arena,
                                      tensor, err);
        return code == IFD_OK ? ifd_infer_check(infer, err) : code;
    }
    struct ifd_str *text = ifd_arena_take(arena, sizeof(*text));
    if (count != 1 || !text) {
        return count != 1 ? ifd_fail(err, IFD_INVALID,
                                     "raw body: BYTES input '%s' must have one element, it has %zu",
                                     input->name, count)
                          : ifd_arena_fail(arena, sizeof(*text), err);
    }
    *text = (struct ifd_str){.data = (const char *)body.data, .size = body.size};
    tensor->data = text;
    tensor->bytes = tensor->capacity = sizeof(*text);
    return ifd_infer_check(infer, err);
}

/* ---- all kinds ---- */

/* Adds "'A','B'" of the inputs that are given (or required and not given). */
static void list_inputs(const struct ifd_infer *infer, bool given, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < infer->desc->input_count && at < size; i++) {
        const struct ifd_tensor_info *input = &infer->desc->input[i];
        if (given ? infer->has_input[i] : !infer->has_input[i] && !input->optional) {
            at += (size_t)snprintf(text + at, size - at, "%s'%s'", at > 0 ? "," : "", input->name);
        }
    }
}

static enum ifd_code check_required(const struct ifd_infer *infer, struct ifd_err *err)
{
    const struct ifd_model_desc *desc = infer->desc;
    uint32_t given = 0, missing = 0;
    for (uint32_t i = 0; i < desc->input_count; i++) {
        given += infer->has_input[i];
        missing += !infer->has_input[i] && !desc->input[i].optional;
    }
    if (missing > 0) {
        char got[64], wanted[64];
        list_inputs(infer, true, got, sizeof(got));
        list_inputs(infer, false, wanted, sizeof(wanted));
        return ifd_fail(err, IFD_INVALID,
                        "expected %u inputs but got %u inputs for model '%s'. Got input(s) [%s], "
                        "but missing required input(s) [%s]",
                        given + missing, given, desc->name, got, wanted);
    }
    return IFD_OK;
}

enum ifd_code ifd_infer_check(struct ifd_infer *infer, struct ifd_err *err)
{
    const struct ifd_model_desc *desc = infer->desc;
    enum ifd_code code = check_required(infer, err);
    if (code != IFD_OK || desc->max_batch_size == 0) {
        return code;
    }
    int64_t batch = -1;
    for (uint32_t i = 0; i < desc->input_count; i++) {
        int64_t own = infer->request.input[i].shape.dim[0];
        if (!infer->has_input[i]) {
            continue;
        }
        if (batch >= 0 && own != batch) {
            return ifd_fail(err, IFD_INVALID,
                            "input '%s' batch size does not match other inputs for '%s': %lld "
                            "and %lld",
                            desc->input[i].name, desc->name, (long long)own, (long long)batch);
        }
        batch = own;
    }
    if (batch > desc->max_batch_size) {
        return ifd_fail(err, IFD_INVALID,
                        "inference request batch-size must be <= %d for '%s', got %lld",
                        desc->max_batch_size, desc->name, (long long)batch);
    }
    if (batch == 0) {
        return ifd_fail(err, IFD_INVALID, "inference request batch-size must be >= 1 for '%s'",
                        desc->name);
    }
    infer->request.batch = batch < 0 ? 1 : batch;
    return IFD_OK;
}

/* The length of the JSON in front; *ret_is_raw: there is none, the body is a tensor. */
static enum ifd_code json_length(const struct ifd_infer *infer, size_t *ret_bytes, bool *ret_is_raw,
                                 struct ifd_err *err)
{
    const size_t body_bytes = infer->call->body.size;
    const struct ifd_str text = infer->call->json_length;
    uint64_t length = body_bytes;
    if (text.data && (!ifd_str_u64(ifd_str_trim(text), &length) || length > body_bytes)) {
        return ifd_fail(err, IFD_INVALID,
                        "inference header size should be in range (0, %zu), got: %.*s", body_bytes,
                        shown(text), text.data);
    }
    *ret_bytes = (size_t)length;
    *ret_is_raw = text.data && length == 0;
    return IFD_OK;
}

enum ifd_code ifd_infer_parse(struct ifd_infer *infer, struct ifd_err *err)
{
    size_t bytes = 0;
    bool is_raw = false;
    if (ifd_infer_is_picture(infer)) {
        return ifd_infer_parse_picture(infer, err);
    }
    enum ifd_code code = json_length(infer, &bytes, &is_raw, err);
    if (code != IFD_OK) {
        return code;
    }
    return is_raw ? parse_raw(infer, err) : parse_json(infer, bytes, err);
}

/* Inference: a request becomes JSON and bytes, the answer becomes tensors. */
#include "client_impl.h"

#include <stdlib.h>
#include <string.h>

/* A result. The strings of its tensors live in root, their shapes in dims. */
struct ifd_client_result {
    json_t *root;                      /* owns the strings that the tensors name */
    struct ifd_client_buf body;        /* the answer */
    struct ifd_client_buf decoded;     /* data of the outputs that came as JSON */
    struct ifd_client_tensor *outputs; /* output_count of them */
    int64_t *dims;                     /* the shapes, one after the other */
    size_t output_count;
    char *text; /* of an answer without outputs; else NULL */
};

static size_t element_count(const struct ifd_client_tensor *tensor, bool *ret_ok)
{
    size_t count = 1;
    *ret_ok = true;
    for (size_t i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] < 0 || __builtin_mul_overflow(count, tensor->shape[i], &count)) {
            *ret_ok = false;
            return 0;
        }
    }
    return count;
}

static enum ifd_client_code check_input(const struct ifd_client_tensor *input,
                                        struct ifd_client_err *err)
{
    bool ok = false;
    size_t count = element_count(input, &ok);
    size_t each = ifd_client_datatype_bytes(input->datatype), bytes = 0;
    if (!ok || __builtin_mul_overflow(count, each, &bytes)) {
        return ifd_client_fail(err, IFD_CLIENT_INVALID, "input \"%s\": impossible shape",
                               input->name);
    }
    if (each == 0 && strcmp(input->datatype, "BYTES") != 0) {
        return ifd_client_fail(err, IFD_CLIENT_INVALID, "input \"%s\": unknown datatype \"%s\"",
                               input->name, input->datatype);
    }
    if (each != 0 && bytes != input->data_bytes) {
        return ifd_client_fail(err, IFD_CLIENT_INVALID,
                               "input \"%s\": %zu bytes given, its shape needs %zu", input->name,
                               input->data_bytes, bytes);
    }
    return IFD_CLIENT_OK;
}

static json_t *shape_to_json(const struct ifd_client_tensor *tensor)
{
    json_t *shape = json_array();
    for (size_t i = 0; i < tensor->rank; i++) {
        if (json_array_append_new(shape, json_integer(tensor->shape[i])) != 0) {
            json_decref(shape);
            return NULL;
        }
    }
    return shape;
}

static enum ifd_client_code input_to_json(const struct ifd_client_tensor *input,
                                          enum ifd_client_encoding encoding, json_t **ret_json,
                                          struct ifd_client_err *err)
{
    enum ifd_client_code code = check_input(input, err);
    json_t *data = NULL;
    if (code == IFD_CLIENT_OK && encoding == IFD_CLIENT_JSON) {
        code = ifd_client_data_to_json(input, &data, err);
    }
    if (code != IFD_CLIENT_OK) {
        return code;
    }
    json_t *json = json_pack("{s:s,s:s,s:o}", "name", input->name, "datatype", input->datatype,
                             "shape", shape_to_json(input));
    int failed = data ? json_object_set_new(json, "data", data)
                      : json_object_set_new(
                            json, "parameters",
                            json_pack("{s:I}", "binary_data_size", (json_int_t)input->data_bytes));
    if (failed) {
        json_decref(json);
        return ifd_client_fail(err, IFD_CLIENT_INVALID,
                               "input with a name that is not UTF-8, or out of memory");
    }
    *ret_json = json;
    return IFD_CLIENT_OK;
}

static json_t *wanted_to_json(const struct ifd_client_wanted *wanted,
                              enum ifd_client_encoding encoding)
{
    json_t *parameters = json_object();
    int failed = 0;
    if (wanted->top_count != 0) {
        failed |= json_object_set_new(parameters, "classification",
                                      json_integer((json_int_t)wanted->top_count));
    }
    if (encoding == IFD_CLIENT_BINARY) {
        failed |= json_object_set_new(parameters, "binary_data", json_true());
    }
    if (failed) {
        json_decref(parameters);
        return NULL;
    }
    return json_pack("{s:s,s:o}", "name", wanted->name, "parameters", parameters);
}

static enum ifd_client_code head_to_json(const struct ifd_client_request *request, json_t *root,
                                         struct ifd_client_err *err)
{
    int failed = 0;
    if (request->id) {
        failed |= json_object_set_new(root, "id", json_string(request->id));
    }
    if (request->encoding == IFD_CLIENT_BINARY && request->output_count == 0) {
        failed |=
            json_object_set_new(root, "parameters", json_pack("{s:b}", "binary_data_output", 1));
    }
    json_t *inputs = json_array();
    failed |= json_object_set_new(root, "inputs", inputs);
    for (size_t i = 0; !failed && i < request->input_count; i++) {
        json_t *input = NULL;
        enum ifd_client_code code =
            input_to_json(&request->inputs[i], request->encoding, &input, err);
        if (code != IFD_CLIENT_OK) {
            return code;
        }
        failed |= json_array_append_new(inputs, input);
    }
    if (!failed && request->output_count != 0) {
        json_t *outputs = json_array();
        failed |= json_object_set_new(root, "outputs", outputs);
        for (size_t i = 0; !failed && i < request->output_count; i++) {
            failed |= json_array_append_new(
                outputs, wanted_to_json(&request->outputs[i], request->encoding));
        }
    }
    if (failed) {
        return ifd_client_fail(err, IFD_CLIENT_NOMEM,
                               "out of memory, or an id or name that is not UTF-8");
    }
    return IFD_CLIENT_OK;
}

/* The whole body: the JSON and, in the binary encoding, the tensors behind it. */
static enum ifd_client_code encode(const struct ifd_client_request *request,
                                   struct ifd_client_buf *body, size_t *ret_json_bytes,
                                   struct ifd_client_err *err)
{
    json_t *root = json_object();
    char *text = NULL;
    enum ifd_client_code code = head_to_json(request, root, err);
    if (code != IFD_CLIENT_OK) {
        goto out;
    }
    text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
    bool ok = text && ifd_client_buf_add(body, text, strlen(text));
    *ret_json_bytes = body->size;
    for (size_t i = 0; ok && request->encoding == IFD_CLIENT_BINARY && i < request->input_count;
         i++) {
        ok = ifd_client_buf_add(body, request->inputs[i].data, request->inputs[i].data_bytes);
    }
    if (!ok) {
        code = ifd_client_fail(err, IFD_CLIENT_NOMEM, "out of memory");
    }
out:
    free(text);
    json_decref(root);
    return code;
}

static enum ifd_client_code bad_answer(struct ifd_client_err *err, const char *what)
{
    return ifd_client_fail(err, IFD_CLIENT_PROTOCOL, "the answer is not an inference response: %s",
                           what);
}

/* Total rank of all outputs, or -1 if one is not as the protocol says. */
static long total_rank(json_t *outputs)
{
    size_t index = 0;
    long total = 0;
    json_t *output = NULL;
    json_array_foreach(outputs, index, output)
    {
        json_t *shape = json_object_get(output, "shape");
        if (!json_is_array(shape) || !json_is_string(json_object_get(output, "name")) ||
            !json_is_string(json_object_get(output, "datatype"))) {
            return -1;
        }
        total += (long)json_array_size(shape);
    }
    return total;
}

static enum ifd_client_code check_output(const struct ifd_client_tensor *tensor,
                                         struct ifd_client_err *err)
{
    bool ok = false;
    size_t count = element_count(tensor, &ok), bytes = 0;
    size_t each = ifd_client_datatype_bytes(tensor->datatype);
    if (each == 0) {
        size_t offset = 0, text_bytes = 0, seen = 0;
        const char *text = NULL;
        while (ifd_client_bytes_next(tensor, &offset, &text, &text_bytes)) {
            seen++;
        }
        ok = ok && seen == count && offset == tensor->data_bytes;
    } else {
        ok = ok && !__builtin_mul_overflow(count, each, &bytes) && bytes == tensor->data_bytes;
    }
    if (!ok) {
        return ifd_client_fail(err, IFD_CLIENT_PROTOCOL,
                               "output \"%s\": %zu bytes of data do not fit its shape",
                               tensor->name, tensor->data_bytes);
    }
    return IFD_CLIENT_OK;
}

/* Fills every tensor. Data that came as JSON gets its pointer later: decoded still grows and may
 * move. */
static enum ifd_client_code read_outputs(struct ifd_client_result *result, json_t *outputs,
                                         size_t binary_at, struct ifd_client_err *err)
{
    int64_t *dims = result->dims;
    size_t index = 0, at = binary_at;
    json_t *output = NULL;
    json_array_foreach(outputs, index, output)
    {
        struct ifd_client_tensor *tensor = &result->outputs[index];
        json_t *shape = json_object_get(output, "shape");
        tensor->name = json_string_value(json_object_get(output, "name"));
        tensor->datatype = json_string_value(json_object_get(output, "datatype"));
        tensor->shape = dims;
        tensor->rank = json_array_size(shape);
        for (size_t i = 0; i < tensor->rank; i++) {
            *dims++ = json_integer_value(json_array_get(shape, i));
        }
        json_t *binary = json_object_get(json_object_get(output, "parameters"), "binary_data_size");
        if (json_is_integer(binary)) {
            json_int_t bytes = json_integer_value(binary);
            if (bytes < 0 || (uint64_t)bytes > result->body.size - at) {
                return bad_answer(err, "binary_data_size runs over its end");
            }
            tensor->data = result->body.data + at;
            tensor->data_bytes = (size_t)bytes;
            at += tensor->data_bytes;
            continue;
        }
        size_t before = result->decoded.size;
        enum ifd_client_code code = ifd_client_data_from_json(
            tensor->name, tensor->datatype, json_object_get(output, "data"), &result->decoded, err);
        if (code != IFD_CLIENT_OK) {
            return code;
        }
        tensor->data_bytes = result->decoded.size - before;
    }
    return at == result->body.size ? IFD_CLIENT_OK : bad_answer(err, "bytes left over");
}

static enum ifd_client_code settle_data(struct ifd_client_result *result,
                                        struct ifd_client_err *err)
{
    size_t decoded_at = 0;
    for (size_t i = 0; i < result->output_count; i++) {
        struct ifd_client_tensor *tensor = &result->outputs[i];
        if (!tensor->data) {
            tensor->data = result->decoded.data + decoded_at;
            decoded_at += tensor->data_bytes;
        }
        enum ifd_client_code code = check_output(tensor, err);
        if (code != IFD_CLIENT_OK) {
            return code;
        }
    }
    return IFD_CLIENT_OK;
}

/* Takes ownership of answer->body. */
static enum ifd_client_code decode(struct ifd_client_answer *answer, bool may_lack_outputs,
                                   struct ifd_client_result **ret_result,
                                   struct ifd_client_err *err)
{
    struct ifd_client_result *result = calloc(1, sizeof(*result));
    enum ifd_client_code code = IFD_CLIENT_NOMEM;
    if (!result) {
        return ifd_client_fail(err, code, "out of memory");
    }
    result->body = answer->body;
    answer->body = (struct ifd_client_buf){0};
    result->decoded.limit = SIZE_MAX;
    result->root = json_loadb(result->body.data, answer->json_bytes, 0, NULL);
    json_t *outputs = json_object_get(result->root, "outputs");
    if (!outputs && may_lack_outputs && json_is_object(result->root)) {
        result->text = json_dumps(result->root, JSON_COMPACT);
        code = result->text ? IFD_CLIENT_OK : ifd_client_fail(err, code, "out of memory");
        goto out;
    }
    long rank = json_is_array(outputs) ? total_rank(outputs) : -1;
    if (rank < 0) {
        code = bad_answer(err, "no outputs with name, datatype and shape");
        goto out;
    }
    result->output_count = json_array_size(outputs);
    result->outputs = calloc(result->output_count + 1, sizeof(*result->outputs));
    result->dims = calloc((size_t)rank + 1, sizeof(*result->dims));
    if (!result->outputs || !result->dims || !ifd_client_buf_add(&result->decoded, "", 0)) {
        ifd_client_fail(err, code, "out of memory");
        goto out;
    }
    code = read_outputs(result, outputs, answer->json_bytes, err);
    if (code == IFD_CLIENT_OK) {
        code = settle_data(result, err);
    }
out:
    if (code == IFD_CLIENT_OK) {
        *ret_result = result;
    } else {
        ifd_client_result_destroy(result);
    }
    return code;
}

/* query: behind the path, escaped; "" for none. */
static enum ifd_client_code exchange(struct ifd_client *client, const char *model,
                                     const char *version, const char *query,
                                     struct ifd_client_call *call, bool may_lack_outputs,
                                     struct ifd_client_result **ret_result,
                                     struct ifd_client_err *err)
{
    char *path = NULL;
    struct ifd_client_answer answer = {0};
    enum ifd_client_code code =
        ifd_client_model_path(client, "/v2/models/", model, version, "/infer", query, &path, err);
    if (code == IFD_CLIENT_OK) {
        call->post = true;
        call->path = path;
        code = ifd_client_send(client, call, &answer, err);
    }
    if (code == IFD_CLIENT_OK) {
        code = decode(&answer, may_lack_outputs, ret_result, err);
    }
    ifd_client_buf_finish(&answer.body);
    ifd_client_text_free(path);
    return code;
}

enum ifd_client_code ifd_client_infer(struct ifd_client *client,
                                      const struct ifd_client_request *request,
                                      struct ifd_client_result **ret_result,
                                      struct ifd_client_err *err)
{
    struct ifd_client_buf body = {.limit = SIZE_MAX};
    struct ifd_client_call call = {.content_type = "application/json"};
    size_t json_bytes = 0;
    enum ifd_client_code code = encode(request, &body, &json_bytes, err);
    if (code == IFD_CLIENT_OK) {
        if (request->encoding == IFD_CLIENT_BINARY) {
            call.content_type = "application/octet-stream";
            call.json_bytes = json_bytes;
        }
        call.body = body.data;
        call.body_bytes = body.size;
        code =
            exchange(client, request->model, request->version, "", &call, false, ret_result, err);
    }
    ifd_client_buf_finish(&body);
    return code;
}

enum ifd_client_code ifd_client_infer_image(struct ifd_client *client, const char *model,
                                            const char *version, const char *content_type,
                                            const void *data, size_t data_bytes,
                                            struct ifd_client_result **ret_result,
                                            struct ifd_client_err *err)
{
    struct ifd_client_call call = {
        .content_type = content_type, .body = data, .body_bytes = data_bytes};
    return exchange(client, model, version, "", &call, true, ret_result, err);
}

enum ifd_client_code ifd_client_infer_frame(struct ifd_client *client, const char *model,
                                            const char *version, const char *source,
                                            const char *content_type, const void *data,
                                            size_t data_bytes,
                                            struct ifd_client_result **ret_result,
                                            struct ifd_client_err *err)
{
    struct ifd_client_call call = {
        .content_type = content_type, .body = data, .body_bytes = data_bytes};
    char *query = NULL;
    enum ifd_client_code code = ifd_client_query(client, "source", source, &query, err);
    if (code == IFD_CLIENT_OK) {
        code = exchange(client, model, version, query, &call, true, ret_result, err);
    }
    ifd_client_text_free(query);
    return code;
}

void ifd_client_result_destroy(struct ifd_client_result *result)
{
    if (result) {
        json_decref(result->root);
        free(result->text);
        ifd_client_buf_finish(&result->body);
        ifd_client_buf_finish(&result->decoded);
        free(result->outputs);
        free(result->dims);
        free(result);
    }
}

const char *ifd_client_result_version(const struct ifd_client_result *result)
{
    const char *version = json_string_value(json_object_get(result->root, "model_version"));
    return version ? version : "";
}

const char *ifd_client_result_text(const struct ifd_client_result *result)
{
    return result->text ? result->text : "";
}

size_t ifd_client_result_output_count(const struct ifd_client_result *result)
{
    return result->output_count;
}

const struct ifd_client_tensor *ifd_client_result_output(const struct ifd_client_result *result,
                                                         size_t index)
{
    return &result->outputs[index];
}

/* The JSON of an inference request: the members of its object. */
#include "api/http/infer_json.h"

#include <stdio.h>

#include "engine/base/str.h"

static bool add_field(struct ifd_infer_parser *parser, struct ifd_str key, struct ifd_str value)
{
    struct ifd_json_in *in = &parser->in;
    const struct ifd_query_parameter field = {.name = key, .value = value};
    in->code = ifd_infer_add_field(parser->infer, &field, in->err);
    in->failed = in->code != IFD_OK;
    return !in->failed;
}

/* A scalar. */
static bool add_scalar(struct ifd_infer_parser *parser, struct ifd_str key)
{
    struct ifd_json_in *in = &parser->in;
    const char *begin = in->at;
    struct ifd_str value;
    if (ifd_json_peek(in) == IFD_JSON_TEXT) {
        return ifd_json_text(in, &value) && add_field(parser, key, value);
    }
    return ifd_json_skip(in) &&
           add_field(parser, key, ifd_str_trim((struct ifd_str){begin, (size_t)(in->at - begin)}));
}

/* Reads a request parameter that only pictures use, or nobody. */
static bool read_other(struct ifd_infer_parser *parser, struct ifd_str key)
{
    struct ifd_json_in *in = &parser->in;
    enum ifd_json_kind kind = ifd_json_peek(in);
    if (ifd_str_starts(key, "triton_")) {
        return ifd_json_fail(in, IFD_INVALID,
                             "parameter keys starting with 'triton_' are reserved and should not "
                             "be specified: '%.*s'",
                             ifd_json_shown(key), key.data);
    }
    const bool may_be_several = ifd_str_equal(key, "region");
    if (kind == IFD_JSON_OBJECT || (kind == IFD_JSON_ARRAY && !may_be_several) ||
        kind == IFD_JSON_NULL) {
        return ifd_json_fail(in, IFD_INVALID,
                             "parameter '%.*s' has invalid type. It should be either 'int', "
                             "'bool', 'double' or 'string'",
                             ifd_json_shown(key), key.data);
    }
    if (kind != IFD_JSON_ARRAY) {
        return add_scalar(parser, key);
    }
    if (!ifd_json_open(in, '[')) {
        return false;
    }
    while (ifd_json_item(in)) { /* as several of this name in a query */
        struct ifd_str value;
        if (!ifd_json_text(in, &value) || !add_field(parser, key, value)) {
            return false;
        }
    }
    return !in->failed;
}

/* A number or a text; 0 and "" are none. what: for messages. */
static bool read_id(struct ifd_infer_parser *parser, struct ifd_str *ret, const char *what)
{
    struct ifd_json_in *in = &parser->in;
    uint64_t number = 0;
    if (ifd_json_peek(in) != IFD_JSON_NUMBER) {
        return ifd_json_text(in, ret);
    }
    char text[24];
    if (!ifd_json_u64(in, &number) || number == 0) {
        return !in->failed;
    }
    const int size = snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    ret->data = ifd_arena_text(parser->arena, text, (size_t)size);
    ret->size = ret->data ? (size_t)size : 0;
    return ret->data || ifd_json_fail(in, IFD_NOMEM, "no memory for the name of the %s", what);
}

static bool read_parameters(struct ifd_infer_parser *parser)
{
    struct ifd_json_in *in = &parser->in;
    struct ifd_http_infer *infer = parser->infer;
    bool has_binary = false, has_priority = false, has_timeout = false, has_sequence = false;
    bool has_source = false;
    struct ifd_str key;
    if (!ifd_json_open(in, '{')) {
        return false;
    }
    while (ifd_json_member(in, &key)) {
        if (ifd_str_equal(key, "binary_data_output")) {
            ifd_json_once(in, &has_binary, "binary_data_output");
            ifd_json_bool(in, &infer->binary_default);
        } else if (ifd_str_equal(key, "priority")) {
            ifd_json_once(in, &has_priority, "priority");
            ifd_json_u64(in, &infer->core.request.priority);
        } else if (ifd_str_equal(key, "timeout")) {
            ifd_json_once(in, &has_timeout, "timeout");
            ifd_json_u64(in, &infer->core.request.timeout_us);
        } else if (ifd_str_equal(key, "sequence_id")) {
            ifd_json_once(in, &has_sequence, "sequence_id");
            read_id(parser, &infer->core.request.sequence_id, "sequence");
        } else if (ifd_str_equal(key, "source")) {
            ifd_json_once(in, &has_source, "source");
            read_id(parser, &infer->core.request.source, "source");
        } else if (ifd_str_equal(key, "sequence_start")) {
            ifd_json_bool(in, &infer->core.request.sequence_start);
        } else if (ifd_str_equal(key, "sequence_end")) {
            ifd_json_bool(in, &infer->core.request.sequence_end);
        } else {
            read_other(parser, key);
        }
    }
    return !in->failed;
}

static bool read_each(struct ifd_infer_parser *parser, bool (*read)(struct ifd_infer_parser *))
{
    if (!ifd_json_open(&parser->in, '[')) {
        return false;
    }
    while (ifd_json_item(&parser->in)) {
        if (!read(parser)) {
            return false;
        }
    }
    return !parser->in.failed;
}

static bool read_request(struct ifd_infer_parser *parser)
{
    struct ifd_json_in *in = &parser->in;
    bool has_id = false, has_parameters = false, has_inputs = false, has_outputs = false;
    bool has_image = false;
    struct ifd_str key;
    if (!ifd_json_open(in, '{')) {
        return false;
    }
    while (ifd_json_given(in, &key)) {
        bool ok = false;
        if (ifd_str_equal(key, "inputs")) {
            ok =
                ifd_json_once(in, &has_inputs, "inputs") && read_each(parser, ifd_infer_read_input);
        } else if (ifd_str_equal(key, "outputs")) {
            ok = ifd_json_once(in, &has_outputs, "outputs") &&
                 read_each(parser, ifd_infer_read_output);
        } else if (ifd_str_equal(key, "id")) {
            ok = ifd_json_once(in, &has_id, "id") && ifd_json_text(in, &parser->infer->id);
        } else if (ifd_str_equal(key, "image")) {
            ok = ifd_json_once(in, &has_image, "image") && ifd_json_text(in, &parser->image);
        } else if (ifd_str_equal(key, "parameters")) {
            ok = ifd_json_once(in, &has_parameters, "parameters") && read_parameters(parser);
        } else {
            ok = ifd_json_skip(in);
        }
        if (!ok) {
            return false;
        }
    }
    if (!in->failed && has_image && has_inputs) {
        return ifd_json_fail(in, IFD_INVALID, "the request has both 'inputs' and 'image'");
    }
    if (!in->failed && !has_inputs && !has_image) {
        return ifd_json_fail(in, IFD_INVALID,
                             "Unable to parse 'inputs': the request has no such member");
    }
    return ifd_json_finish(in);
}

static enum ifd_code copy_id(struct ifd_infer_parser *parser, struct ifd_err *err)
{
    struct ifd_http_infer *infer = parser->infer;
    if (infer->id.size > 0) {
        char *id = ifd_arena_text(parser->arena, infer->id.data, infer->id.size);
        if (!id) {
            return ifd_arena_fail(parser->arena, infer->id.size, err);
        }
        infer->core.request.id = id;
    }
    return IFD_OK;
}

uint64_t ifd_infer_expected_timeout_us(struct ifd_str text, struct ifd_arena *arena)
{
    static const char name[] = "\"timeout\"";
    const size_t name_size = sizeof(name) - 1;
    const char *found = memmem(text.data, text.size, name, name_size);
    if (memchr(text.data, '\\', text.size)) {
        return UINT64_MAX; /* an escape may spell the name */
    }
    if (!found) {
        return 0;
    }
    const struct ifd_str rest = {.data = found, .size = text.size - (size_t)(found - text.data)};
    struct ifd_json_in in;
    struct ifd_str key;
    uint64_t timeout_us = 0;
    ifd_json_in_init(&in, rest, arena, NULL);
    const bool is_read = !memmem(found + 1, rest.size - 1, name, name_size) &&
                         ifd_json_member(&in, &key) && ifd_json_u64(&in, &timeout_us);
    return is_read ? timeout_us : UINT64_MAX;
}

enum ifd_code ifd_infer_parse_json(struct ifd_http_infer *infer, size_t json_bytes,
                                   struct ifd_err *err)
{
    struct ifd_bytes body = infer->http->body;
    struct ifd_infer_parser parser = {
        .infer = infer,
        .desc = infer->core.desc,
        .arena = infer->core.call->arena,
        /* NULL + 0 is undefined: there may be no body */
        .tail = {.data = json_bytes > 0 ? body.data + json_bytes : body.data,
                 .size = body.size - json_bytes}};
    parser.pending =
        ifd_arena_take_array(parser.arena, infer->core.desc->input_count, sizeof(*parser.pending));
    if (!parser.pending) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the request");
    }
    struct ifd_str text = {.data = (const char *)body.data, .size = json_bytes};
    ifd_json_in_init(&parser.in, text, parser.arena, err);
    if (ifd_json_peek(&parser.in) != IFD_JSON_OBJECT) {
        return ifd_fail(err, IFD_INVALID, "failed to parse the request JSON buffer: %s",
                        json_bytes == 0 ? "the document is empty"
                                        : "it is not an object, and begins as no known picture or "
                                          "sound");
    }
    enum ifd_code code = read_request(&parser) ? IFD_OK : parser.in.code;
    if (code == IFD_OK) {
        code = copy_id(&parser, err);
    }
    if (code == IFD_OK && parser.image.data) {
        return ifd_infer_parse_base64_picture(infer, parser.image, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_take_pending(&parser, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_check_inputs(&infer->core, err);
    }
    return code == IFD_OK && infer->core.picture_count > 0
               ? ifd_infer_read_objects(infer, false, err)
               : code;
}

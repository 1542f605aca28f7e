/* POST …/infer: the codec of the core's inferences. */
#include "api/http/infer.h"

#include "api/http/encoding.h"
#include "api/http/handlers.h"
#include "api/http/vision.h"
#include "api/json/json_read.h"
#include "api/json/tensor_json.h"
#include "engine/base/str.h"

/* Compressing and decompressing a byte takes as long as reading this many. */
#define CODING_WEIGHT 16
/* Finding objects in so many bytes of outputs takes as long as writing one byte of JSON. */
#define DECODING_SHARE 4

static struct ifd_http_infer *of(struct ifd_infer *core)
{
    return (struct ifd_http_infer *)core; /* its first member */
}

static const struct ifd_http_infer *const_of(const struct ifd_infer *core)
{
    return (const struct ifd_http_infer *)core;
}

/* ---- decode ---- */

/* The length of the JSON in front; *ret_is_raw: there is none, the body is a tensor. */
static enum ifd_code json_length(const struct ifd_http_infer *infer, size_t *ret_bytes,
                                 bool *ret_is_raw, struct ifd_err *err)
{
    const size_t body_bytes = infer->http->body.size;
    const struct ifd_str text = infer->http->json_length;
    uint64_t length = body_bytes;
    if (text.data && (!ifd_str_u64(ifd_str_trim(text), &length) || length > body_bytes)) {
        return ifd_fail(err, IFD_INVALID,
                        "inference header size should be in range (0, %zu), got: %.*s", body_bytes,
                        ifd_json_shown(text), text.data);
    }
    *ret_bytes = (size_t)length;
    *ret_is_raw = text.data && length == 0;
    return IFD_OK;
}

/* A form may bring either. */
static bool is_picture(const struct ifd_http_infer *infer)
{
    return ifd_infer_is_picture(infer) && !ifd_infer_is_sound(infer);
}

static enum ifd_code parse(struct ifd_http_infer *infer, struct ifd_err *err)
{
    size_t bytes = 0;
    bool is_raw = false;
    if (is_picture(infer)) {
        return ifd_infer_parse_picture(infer, err);
    }
    if (ifd_infer_is_vision(infer)) {
        return ifd_fail(err, IFD_INVALID,
                        "no picture: send a multipart form with a file called image, or a picture");
    }
    if (ifd_infer_is_sound(infer)) {
        return ifd_infer_parse_sound(infer, err);
    }
    enum ifd_code code = json_length(infer, &bytes, &is_raw, err);
    if (code != IFD_OK) {
        return code;
    }
    return is_raw ? ifd_infer_parse_raw(infer, err) : ifd_infer_parse_json(infer, bytes, err);
}

/* Settles the form of each output; refuses before the run what JSON cannot carry after it. */
static enum ifd_code settle_forms(struct ifd_http_infer *infer, struct ifd_err *err)
{
    for (uint32_t i = 0; i < infer->core.desc->output_count; i++) {
        const struct ifd_tensor_info *output = &infer->core.desc->output[i];
        struct ifd_output_form *form = &infer->form[i];
        form->binary = form->has_binary ? form->binary : infer->binary_default;
        if (infer->core.wanted[i] && infer->core.top[i] == 0 && !form->binary &&
            !infer->answers_objects && !ifd_tensor_json_can(output->dtype)) {
            return ifd_fail(err, IFD_INVALID,
                            "sending %s data via JSON is not supported. Please use the binary data "
                            "format for output %s",
                            ifd_dtype_wire_name(output->dtype), output->name);
        }
    }
    return IFD_OK;
}

static enum ifd_code decode(struct ifd_infer *core, struct ifd_err *err)
{
    struct ifd_http_infer *infer = of(core);
    enum ifd_code code = ifd_http_read_body(infer->http, err);
    if (code == IFD_OK) {
        code = parse(infer, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_read_source(infer, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_check_outputs(core, err);
    }
    return code == IFD_OK ? settle_forms(infer, err) : code;
}

/* Binary tensors and pictures cost nothing: they are not read, only located. */
static size_t decode_cost(const struct ifd_infer *core)
{
    const struct ifd_http_infer *infer = const_of(core);
    const struct ifd_http_call *call = infer->http;
    uint64_t json_bytes = call->exchange->body_size;
    if (ifd_coding_is_compressed(call->coding)) {
        return (size_t)json_bytes * CODING_WEIGHT;
    }
    const bool is_known = !call->json_length.data || ifd_str_u64(call->json_length, &json_bytes);
    return is_known && !is_picture(infer) ? (size_t)json_bytes : 0;
}

static uint64_t expected_timeout_us(const struct ifd_infer *core)
{
    const struct ifd_http_call *call = const_of(core)->http;
    const struct ifd_http_exchange *exchange = call->exchange;
    uint64_t bytes = exchange->body_size;
    if (ifd_coding_is_compressed(call->coding) ||
        (call->json_length.data && !ifd_str_u64(call->json_length, &bytes)) ||
        bytes > exchange->body_size) {
        return UINT64_MAX;
    }
    const struct ifd_str text = {.data = (const char *)exchange->body, .size = (size_t)bytes};
    return ifd_infer_expected_timeout_us(text, core->call->arena);
}

/* ---- encode ---- */

static enum ifd_code encode(struct ifd_infer *core, struct ifd_err *err)
{
    struct ifd_http_infer *infer = of(core);
    struct ifd_http_exchange *exchange = infer->http->exchange;
    enum ifd_code code = ifd_infer_write_answer(infer, err);
    if (code == IFD_OK && infer->drawing == IFD_DRAWING_NONE) {
        ifd_compress(infer->accept_encoding, exchange->arena, &exchange->response);
    }
    return code;
}

static size_t encode_cost(const struct ifd_infer *core)
{
    const struct ifd_http_infer *infer = const_of(core);
    size_t all = ifd_infer_answer_bytes(infer), outputs = 0;
    for (uint32_t i = 0; i < core->desc->output_count; i++) {
        outputs += core->wanted[i] ? core->request.output[i].bytes : 0;
    }
    if (infer->answers_objects) { /* a mask is drawn and written as a picture */
        return infer->options.mask != IFD_MASK_NONE || infer->drawing != IFD_DRAWING_NONE
                   ? SIZE_MAX
                   : outputs / DECODING_SHARE;
    }
    if (infer->accept_encoding.size == 0) {
        return all;
    }
    return (all + outputs) * CODING_WEIGHT;
}

static enum ifd_code next(struct ifd_infer *core, struct ifd_err *err)
{
    return ifd_infer_next_window(of(core), err);
}

static void finish(struct ifd_infer *core, enum ifd_code code, const struct ifd_err *err)
{
    struct ifd_http_call *call = of(core)->http;
    if (code == IFD_OK) {
        ifd_http_respond(call);
    } else {
        ifd_http_fail(call, code, err);
    }
}

/* ---- the route ---- */

static const struct ifd_codec codec = {.decode = decode,
                                       .encode = encode,
                                       .decode_cost = decode_cost,
                                       .expected_timeout_us = expected_timeout_us,
                                       .encode_cost = encode_cost,
                                       .next = next,
                                       .finish = finish};

static enum ifd_code create(struct ifd_http_call *call, struct ifd_http_infer **ret,
                            struct ifd_err *err)
{
    const struct ifd_http_exchange *exchange = call->exchange;
    struct ifd_http_infer *infer = ifd_arena_take(exchange->arena, sizeof(*infer));
    if (!infer) {
        return ifd_arena_fail(exchange->arena, sizeof(*infer), err);
    }
    enum ifd_code code = ifd_infer_init(&infer->core, &codec, &call->core, err);
    if (code != IFD_OK) {
        return code;
    }
    infer->http = call;
    infer->content_type = exchange->header(exchange, "Content-Type");
    infer->accept_encoding = exchange->header(exchange, "Accept-Encoding");
    infer->form =
        ifd_arena_take_array(exchange->arena, infer->core.desc->output_count, sizeof(*infer->form));
    if (!infer->form) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the request");
    }
    *ret = infer;
    return IFD_OK;
}

void ifd_handle_infer(struct ifd_http_call *call)
{
    struct ifd_http_infer *infer = NULL;
    struct ifd_err err = {0};
    enum ifd_code code = create(call, &infer, &err);
    if (code != IFD_OK) {
        ifd_http_fail(call, code, &err);
        return;
    }
    call->infer = infer;
    ifd_infer_run(&infer->core);
}

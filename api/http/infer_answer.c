/* Writes the outputs into the body of the answer. */
#include "api/http/infer.h"

#include "api/json/number.h"
#include "api/http/tensor_binary.h"
#include "api/http/vision.h"
#include "api/json/tensor_json.h"

#include <string.h>

/* Some dozens of objects. */
#define OBJECTS_BYTES 4096

/* The binary tensors behind the JSON, in order. */
struct tails {
    struct ifd_bytes *part;
    size_t count, bytes;
};

static void write_shape(struct ifd_json_out *out, const struct ifd_shape *shape)
{
    ifd_json_key(out, "shape");
    ifd_json_begin(out, '[');
    for (uint32_t i = 0; i < shape->rank; i++) {
        ifd_json_put_s64(out, shape->dim[i]);
    }
    ifd_json_end(out, ']');
}

static enum ifd_code add_tail(struct ifd_http_infer *infer, const struct ifd_tensor *tensor,
                              struct tails *tails, size_t *ret_bytes, struct ifd_err *err)
{
    struct ifd_bytes raw = {.data = tensor->data, .size = tensor->bytes};
    if (tensor->dtype == IFD_STR) {
        enum ifd_code code =
            ifd_tensor_binary_join(tensor->data, tensor->bytes / sizeof(struct ifd_str),
                                   infer->core.call->arena, &raw, err);
        if (code != IFD_OK) {
            return code;
        }
    }
    *ret_bytes = raw.size;
    if (raw.size > 0) {
        tails->part[tails->count++] = raw;
        tails->bytes += raw.size;
    }
    return IFD_OK;
}

static enum ifd_code write_output(struct ifd_http_infer *infer, uint32_t index,
                                  struct ifd_json_out *out, struct tails *tails,
                                  struct ifd_err *err)
{
    const struct ifd_tensor_info *info = &infer->core.desc->output[index];
    struct ifd_tensor tensor;
    enum ifd_code code = ifd_infer_take_output(&infer->core, index, &tensor, err);
    if (code != IFD_OK) {
        return code;
    }
    ifd_json_begin(out, '{');
    ifd_json_member_text(out, "name", info->name);
    ifd_json_member_text(out, "datatype", ifd_dtype_wire_name(tensor.dtype));
    write_shape(out, &tensor.shape);
    if (infer->form[index].binary) {
        size_t bytes = 0;
        code = add_tail(infer, &tensor, tails, &bytes, err);
        if (code != IFD_OK) {
            return code;
        }
        ifd_json_key(out, "parameters");
        ifd_json_begin(out, '{');
        ifd_json_member_u64(out, "binary_data_size", bytes);
        ifd_json_end(out, '}');
    } else {
        ifd_json_key(out, "data");
        ifd_tensor_json_write(out, tensor.dtype, tensor.data,
                              tensor.bytes / ifd_dtype_bytes(tensor.dtype));
    }
    ifd_json_end(out, '}');
    return IFD_OK;
}

size_t ifd_infer_answer_bytes(const struct ifd_http_infer *infer)
{
    size_t total = 1024; /* names and shapes */
    if (infer->answers_objects) {
        return OBJECTS_BYTES;
    }
    for (uint32_t i = 0; i < infer->core.desc->output_count; i++) {
        const struct ifd_tensor *tensor = &infer->core.request.output[i];
        if (infer->core.wanted[i] && !infer->form[i].binary && infer->core.top[i] == 0) {
            total += ifd_tensor_json_usual(tensor->dtype,
                                           tensor->bytes / ifd_dtype_bytes(tensor->dtype));
        }
    }
    return total;
}

static enum ifd_code write_json(struct ifd_http_infer *infer, struct ifd_json_out *out,
                                struct tails *tails, struct ifd_err *err)
{
    ifd_json_begin(out, '{');
    if (infer->id.size > 0) {
        ifd_json_key(out, "id");
        ifd_json_put_str(out, infer->id);
    }
    ifd_json_member_text(out, "model_name", infer->core.desc->name);
    ifd_json_member_text(out, "model_version", infer->core.desc->version_text);
    ifd_json_key(out, "outputs");
    ifd_json_begin(out, '[');
    for (uint32_t i = 0; i < infer->core.desc->output_count; i++) {
        if (infer->core.wanted[i]) {
            enum ifd_code code = write_output(infer, i, out, tails, err);
            if (code != IFD_OK) {
                return code;
            }
        }
    }
    ifd_json_end(out, ']');
    ifd_json_end(out, '}');
    return IFD_OK;
}

/* Appends the binary tensors: in place, or joined if the answer has too few pieces left. */
static enum ifd_code append_tails(struct ifd_http_infer *infer, const struct tails *tails,
                                  struct ifd_http_response *response, struct ifd_err *err)
{
    struct ifd_arena *arena = infer->core.call->arena;
    if (tails->count <= IFD_HTTP_PIECES_MAX - response->piece_count) {
        for (size_t i = 0; i < tails->count; i++) {
            response->piece[response->piece_count++] =
                (struct ifd_http_piece){.data = tails->part[i].data, .size = tails->part[i].size};
        }
        return IFD_OK;
    }
    uint8_t *all = ifd_arena_take(arena, tails->bytes);
    if (!all) {
        return ifd_arena_fail(arena, tails->bytes, err);
    }
    response->piece[response->piece_count++] =
        (struct ifd_http_piece){.data = all, .size = tails->bytes};
    for (size_t i = 0; i < tails->count; i++) {
        memcpy(all, tails->part[i].data, tails->part[i].size);
        all += tails->part[i].size;
    }
    return IFD_OK;
}

enum ifd_code ifd_infer_write_answer(struct ifd_http_infer *infer, struct ifd_err *err)
{
    struct ifd_arena *arena = infer->core.call->arena;
    struct ifd_http_response *response = &infer->http->exchange->response;
    struct tails tails = {0};
    struct ifd_json_out out;
    if (infer->answers_objects && infer->drawing != IFD_DRAWING_NONE) {
        return ifd_infer_draw_objects(infer, err);
    }
    char *length = ifd_arena_take(arena, IFD_NUMBER_TEXT_BYTES + 1);
    tails.part = ifd_arena_take_array(arena, infer->core.desc->output_count, sizeof(*tails.part));
    if (!tails.part || !length) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the answer");
    }
    ifd_json_out_init(&out, arena);
    ifd_json_out_expect(&out, ifd_infer_answer_bytes(infer));
    enum ifd_code code = ifd_infer_is_vision(infer) ? ifd_vision_write(infer, &out, err)
                         : infer->answers_objects   ? ifd_infer_write_objects(infer, &out, err)
                                                    : write_json(infer, &out, &tails, err);
    if (code != IFD_OK) {
        return code;
    }
    ifd_http_response_begin(response, 200);
    if (!ifd_answer_add(response, &out)) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the answer");
    }
    if (tails.count == 0) {
        ifd_answer_header(response, "Content-Type", "application/json");
        return IFD_OK;
    }
    length[ifd_print_u64(length, ifd_json_out_size(&out))] = '\0';
    ifd_answer_header(response, "Content-Type", "application/octet-stream");
    ifd_answer_header(response, "Inference-Header-Content-Length", length);
    return append_tails(infer, &tails, response, err);
}

/* POST …/infer: parse, decode pictures, submit, encode. */
#include "api/infer_impl.h"

#include "api/encoding.h"
#include "api/tensor_json.h"
#include "engine/base/clock.h"

static void fail(struct ifd_infer *infer, enum ifd_code code, const struct ifd_err *err)
{
    ifd_call_fail(infer->call, code, err);
}

static void on_done(struct ifd_infer_request *request, enum ifd_code code,
                    const struct ifd_err *err)
{
    struct ifd_infer *infer = request->owner;
    struct ifd_http_exchange *exchange = infer->call->exchange;
    struct ifd_err own = {0};
    infer->is_submitted = false;
    infer->call->end.done_ns = ifd_monotonic_ns();
    if (code == IFD_OK) {
        infer->has_outputs = true;
        code = infer->call->is_abandoned ? IFD_CANCELLED : ifd_infer_encode(infer, &own);
        err = &own;
    }
    if (code != IFD_OK) {
        fail(infer, code, err);
        return;
    }
    ifd_compress(exchange->header(exchange, "Accept-Encoding"), exchange->arena,
                 &exchange->response);
    infer->call->end.encoded_ns = ifd_monotonic_ns();
    infer->call->is_waiting = false;
    exchange->respond(exchange);
}

static void submit(struct ifd_infer *infer)
{
    struct ifd_call *call = infer->call;
    struct ifd_err err = {0};
    infer->is_submitted = true;
    call->end.decoded_ns = ifd_monotonic_ns();
    enum ifd_code code = ifd_call_ops(call)->submit(ifd_call_service(call), &infer->request, &err);
    if (code != IFD_OK) {
        infer->is_submitted = false;
        fail(infer, code, &err);
    }
}

static void after_pictures(struct ifd_infer *infer)
{
    infer->call->is_waiting = false;
    if (infer->call->is_abandoned) {
        fail(infer, IFD_CANCELLED, NULL);
    } else if (infer->decode_code != IFD_OK) {
        fail(infer, infer->decode_code, &infer->decode_err);
    } else {
        submit(infer);
    }
}

static void on_picture(void *arg, enum ifd_code code, const struct ifd_err *err)
{
    struct ifd_infer *infer = arg;
    if (code != IFD_OK && infer->decode_code == IFD_OK) {
        infer->decode_code = code;
        infer->decode_err = err ? *err : (struct ifd_err){.code = code};
    }
    if (--infer->decoding_count == 0) {
        after_pictures(infer);
    }
}

static void decode_pictures(struct ifd_infer *infer)
{
    struct ifd_call *call = infer->call;
    infer->decoding_count = 1; /* until all are started, since each may call back at once */
    call->is_waiting = true;
    for (size_t i = 0; i < infer->picture_count; i++) {
        struct ifd_picture *picture = &infer->picture[i];
        infer->decoding_count++;
        ifd_call_ops(call)->decode_image(ifd_call_service(call), picture->image, picture->input,
                                         &picture->sample, on_picture, infer);
    }
    on_picture(infer, IFD_OK, NULL);
}

static enum ifd_code create(struct ifd_call *call, struct ifd_infer **ret, struct ifd_err *err)
{
    struct ifd_arena *arena = call->exchange->arena;
    const struct ifd_model_desc *desc = ifd_call_ops(call)->describe(call->ref);
    struct ifd_infer *infer = ifd_arena_take(arena, sizeof(*infer));
    if (!infer) {
        return ifd_arena_fail(arena, sizeof(*infer), err);
    }
    struct ifd_infer_request *request = &infer->request;
    infer->call = call;
    infer->desc = desc;
    infer->has_input = ifd_arena_take_array(arena, desc->input_count, sizeof(bool));
    infer->choice = ifd_arena_take_array(arena, desc->output_count, sizeof(*infer->choice));
    request->input = ifd_arena_take_array(arena, desc->input_count, sizeof(*request->input));
    request->output = ifd_arena_take_array(arena, desc->output_count, sizeof(*request->output));
    bool *wanted = ifd_arena_take_array(arena, desc->output_count, sizeof(*wanted));
    if (!infer->has_input || !infer->choice || !request->input || !request->output || !wanted) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the request");
    }
    request->wanted = wanted;
    request->model = call->ref;
    request->arena = arena;
    request->batch = 1;
    request->id = "";
    request->received_ns = call->exchange->received_ns;
    request->done = on_done;
    request->owner = infer;
    *ret = infer;
    return IFD_OK;
}

/* Outputs as chosen; refuses before running what could not be answered after it. */
static enum ifd_code settle_outputs(struct ifd_infer *infer, struct ifd_err *err)
{
    bool *wanted = (bool *)(uintptr_t)infer->request.wanted;
    bool any = false;
    for (uint32_t i = 0; i < infer->desc->output_count; i++) {
        any |= infer->choice[i].is_wanted;
    }
    for (uint32_t i = 0; i < infer->desc->output_count; i++) {
        const struct ifd_tensor_info *output = &infer->desc->output[i];
        struct ifd_output_choice *choice = &infer->choice[i];
        choice->is_wanted |= !any;
        choice->binary = choice->has_binary ? choice->binary : infer->binary_default;
        wanted[i] = choice->is_wanted;
        const char *type = ifd_dtype_wire_name(output->dtype);
        if (wanted[i] && choice->top > 0 && output->dtype == IFD_STR) {
            return ifd_fail(err, IFD_INVALID, "output '%s' of %s cannot be classified",
                            output->name, type);
        }
        if (wanted[i] && choice->top == 0 && !choice->binary &&
            !ifd_tensor_json_can(output->dtype)) {
            return ifd_fail(err, IFD_INVALID,
                            "sending %s data via JSON is not supported. Please use the binary data "
                            "format for output %s",
                            type, output->name);
        }
    }
    return IFD_OK;
}

void ifd_handle_infer(struct ifd_call *call)
{
    struct ifd_infer *infer = NULL;
    struct ifd_err err = {0};
    enum ifd_code code = create(call, &infer, &err);
    if (code == IFD_OK) {
        call->infer = infer;
        code = ifd_infer_parse(infer, &err);
    }
    if (code == IFD_OK) {
        code = settle_outputs(infer, &err);
    }
    if (code != IFD_OK) {
        ifd_call_fail(call, code, &err);
    } else if (infer->picture_count > 0) {
        decode_pictures(infer);
    } else {
        submit(infer);
    }
}

bool ifd_infer_abandon(struct ifd_call *call)
{
    struct ifd_infer *infer = call->infer;
    if (infer->is_submitted &&
        ifd_call_ops(call)->cancel(ifd_call_service(call), &infer->request)) {
        infer->is_submitted = false;
    }
    return !infer->is_submitted && !call->is_waiting;
}

void ifd_infer_close(struct ifd_call *call)
{
    struct ifd_infer *infer = call->infer;
    if (infer->has_outputs) {
        ifd_call_ops(call)->release_outputs(ifd_call_service(call), &infer->request);
        infer->has_outputs = false;
    }
}

/* POST …/infer: parse, decode pictures, submit, encode. */
#include "api/core/infer_impl.h"

#include "api/http/encoding.h"
#include "api/json/tensor_json.h"
#include "engine/base/clock.h"
#include "engine/base/str.h"

static void fail(struct ifd_infer *infer, enum ifd_code code, const struct ifd_err *err)
{
    ifd_call_fail(infer->call, code, err);
}

/* ---- work ---- */

/* JSON from this size on is read and written beside the loop while other requests are open: half a megabyte takes a quarter of
 * a millisecond and more. A request that is alone would only lose the 0.1 ms that it takes to wake a thread, and the loop by
 * it, until its JSON is so large that who comes next would notice. */
#define LARGE_BYTES ((size_t)256 << 10)
#define HUGE_BYTES  ((size_t)2 << 20)
/* Packing and unpacking a byte takes as long as reading so many. */
#define CODING_WEIGHT 16

static bool is_better_offloaded(const struct ifd_call *call, size_t cost_bytes)
{
    return ifd_call_ops(call)->offload &&
           cost_bytes >= (call->api->inferences > 1 ? LARGE_BYTES : HUGE_BYTES);
}

/* Where the work is done; done follows on the loop. */
static void run(struct ifd_infer *infer, size_t cost_bytes, void (*work)(void *arg),
                void (*done)(void *arg))
{
    struct ifd_call *call = infer->call;
    call->is_waiting = true;
    if (!is_better_offloaded(call, cost_bytes) ||
        !ifd_call_ops(call)->offload(ifd_call_service(call), work, done, infer)) {
        work(infer);
        done(infer);
    }
}

static void encode(void *arg)
{
    struct ifd_infer *infer = arg;
    struct ifd_http_exchange *exchange = infer->call->exchange;
    infer->work_code = ifd_infer_encode(infer, &infer->work_err);
    if (infer->work_code == IFD_OK) {
        ifd_compress(infer->accept_encoding, exchange->arena, &exchange->response);
    }
}

static void after_encode(void *arg)
{
    struct ifd_infer *infer = arg;
    struct ifd_call *call = infer->call;
    call->is_waiting = false;
    if (infer->work_code != IFD_OK || call->is_abandoned) {
        fail(infer, call->is_abandoned ? IFD_CANCELLED : infer->work_code, &infer->work_err);
        return;
    }
    call->end.encoded_ns = ifd_monotonic_ns();
    call->exchange->respond(call->exchange);
}

static size_t encode_cost(const struct ifd_infer *infer)
{
    size_t all = ifd_infer_answer_bytes(infer);
    if (infer->accept_encoding.size == 0) {
        return all;
    }
    for (uint32_t i = 0; i < infer->desc->output_count; i++) {
        all += infer->choice[i].is_wanted ? infer->request.output[i].bytes : 0;
    }
    return all * CODING_WEIGHT;
}

static void on_done(struct ifd_infer_request *request, enum ifd_code code,
                    const struct ifd_err *err)
{
    struct ifd_infer *infer = request->owner;
    infer->is_submitted = false;
    infer->call->end.done_ns = ifd_monotonic_ns();
    infer->has_outputs = code == IFD_OK;
    if (code == IFD_OK && infer->call->is_abandoned) {
        code = IFD_CANCELLED;
        err = NULL;
    }
    if (code != IFD_OK) {
        fail(infer, code, err);
        return;
    }
    run(infer, encode_cost(infer), encode, after_encode);
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
    } else if (infer->work_code != IFD_OK) {
        fail(infer, infer->work_code, &infer->work_err);
    } else {
        submit(infer);
    }
}

static void on_picture(void *arg, enum ifd_code code, const struct ifd_err *err)
{
    struct ifd_infer *infer = arg;
    if (code != IFD_OK && infer->work_code == IFD_OK) {
        infer->work_code = code;
        infer->work_err = err ? *err : (struct ifd_err){.code = code};
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
    infer->content_type = call->exchange->header(call->exchange, "Content-Type");
    infer->accept_encoding = call->exchange->header(call->exchange, "Accept-Encoding");
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

static void decode(void *arg)
{
    struct ifd_infer *infer = arg;
    struct ifd_err *err = &infer->work_err;
    enum ifd_code code = ifd_call_read_body(infer->call, err);
    if (code == IFD_OK) {
        code = ifd_infer_parse(infer, err);
    }
    infer->work_code = code == IFD_OK ? settle_outputs(infer, err) : code;
}

static void after_decode(void *arg)
{
    struct ifd_infer *infer = arg;
    struct ifd_call *call = infer->call;
    call->is_waiting = false;
    if (infer->work_code != IFD_OK || call->is_abandoned) {
        fail(infer, call->is_abandoned ? IFD_CANCELLED : infer->work_code, &infer->work_err);
    } else if (infer->picture_count > 0) {
        decode_pictures(infer);
    } else {
        submit(infer);
    }
}

/* Binary tensors and pictures are not read here, only told apart. */
static size_t decode_cost(const struct ifd_infer *infer)
{
    const struct ifd_call *call = infer->call;
    uint64_t json_bytes = call->exchange->body_size;
    if (ifd_coding_is_compressed(call->coding)) {
        return (size_t)json_bytes * CODING_WEIGHT;
    }
    const bool is_known = !call->json_length.data || ifd_str_u64(call->json_length, &json_bytes);
    return is_known && !ifd_infer_is_picture(infer) ? (size_t)json_bytes : 0;
}

void ifd_handle_infer(struct ifd_call *call)
{
    struct ifd_infer *infer = NULL;
    struct ifd_err err = {0};
    enum ifd_code code = create(call, &infer, &err);
    if (code != IFD_OK) {
        ifd_call_fail(call, code, &err);
        return;
    }
    call->infer = infer;
    run(infer, decode_cost(infer), decode, after_decode);
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

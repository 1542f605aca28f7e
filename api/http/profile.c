/* POST …/profile: an inference on zeros whose answer is the plan and the time of each step. It
 * waits its turn, as others do. */
#include "api/http/infer.h"

#include "api/http/encoding.h"
#include "api/http/handlers.h"

/* Nodes and values of a step as JSON, about. */
#define STEP_BYTES 1500

static enum ifd_code decode(struct ifd_infer *core, struct ifd_err *err)
{
    const struct ifd_service_ops *ops = ifd_call_ops(core->call);
    const enum ifd_code code =
        ops->prepare_profile(ifd_call_service(core->call), &core->request, err);
    return code == IFD_OK ? ifd_infer_check_outputs(core, err) : code;
}

static size_t decode_cost(const struct ifd_infer *core)
{
    (void)core;
    return 0;
}

static void put_raw(void *context, const char *text, size_t size)
{
    ifd_json_raw(context, text, size);
}

static enum ifd_code encode(struct ifd_infer *core, struct ifd_err *err)
{
    const struct ifd_http_infer *infer = (struct ifd_http_infer *)core; /* its first member */
    struct ifd_http_exchange *exchange = infer->http->exchange;
    struct ifd_json_out out;
    ifd_json_out_init(&out, exchange->arena);
    ifd_json_begin(&out, '{');
    ifd_json_member_text(&out, "model_name", core->desc->name);
    ifd_json_member_text(&out, "model_version", core->desc->version_text);
    ifd_json_member_u64(&out, "run_ns", core->call->end.done_ns - core->request.started_ns);
    ifd_json_key(&out, "step_ns");
    ifd_json_begin(&out, '[');
    for (uint32_t i = 0; i < core->request.step_count; i++) {
        ifd_json_put_u64(&out, core->request.step_ns[i]);
    }
    ifd_json_end(&out, ']');
    ifd_json_key(&out, "plan");
    const enum ifd_code code =
        ifd_call_ops(core->call)->write_plan(core->request.model, put_raw, &out, err);
    if (code != IFD_OK) {
        return code;
    }
    ifd_json_end(&out, '}');
    ifd_http_response_begin(&exchange->response, 200);
    if (!ifd_answer_add(&exchange->response, &out)) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the answer");
    }
    ifd_answer_header(&exchange->response, "Content-Type", "application/json");
    ifd_compress(infer->accept_encoding, exchange->arena, &exchange->response);
    return IFD_OK;
}

static size_t encode_cost(const struct ifd_infer *core)
{
    return (size_t)core->request.step_count * STEP_BYTES;
}

static void finish(struct ifd_infer *core, enum ifd_code code, const struct ifd_err *err)
{
    struct ifd_http_call *call = ((struct ifd_http_infer *)core)->http;
    if (code == IFD_OK) {
        ifd_http_respond(call);
    } else {
        ifd_http_fail(call, code, err);
    }
}

static const struct ifd_codec codec = {.decode = decode,
                                       .encode = encode,
                                       .decode_cost = decode_cost,
                                       .encode_cost = encode_cost,
                                       .finish = finish};

void ifd_handle_profile(struct ifd_http_call *call)
{
    struct ifd_err err = {0};
    struct ifd_http_infer *infer = ifd_arena_take(call->exchange->arena, sizeof(*infer));
    enum ifd_code code = IFD_OK;
    if (!infer) {
        code = ifd_arena_fail(call->exchange->arena, sizeof(*infer), &err);
    } else if (!ifd_http_ops(call)->prepare_profile) {
        code = ifd_fail(&err, IFD_UNSUPPORTED, "this server measures no steps");
    } else {
        code = ifd_infer_init(&infer->core, &codec, &call->core, &err);
    }
    if (code != IFD_OK) {
        ifd_http_fail(call, code, &err);
        return;
    }
    infer->http = call;
    infer->accept_encoding = call->exchange->header(call->exchange, "Accept-Encoding");
    call->infer = infer;
    ifd_infer_run(&infer->core);
}

/* The course of an inference, whatever protocol it came in. */
#include "api/core/infer.h"

#include "api/core/classify.h"
#include "engine/base/clock.h"

/* ---- work of the codec ---- */

/* From this cost the codec works beside the loop: half a megabyte takes at least 0.25 ms. LARGE
 * holds while other requests are open. A request that is alone would only lose the 0.1 ms for
 * waking a thread, so it stays on the loop up to HUGE. */
#define LARGE_BYTES ((size_t)256 << 10)
#define HUGE_BYTES  ((size_t)2 << 20)

static bool is_better_offloaded(const struct ifd_call *call, size_t cost_bytes)
{
    return ifd_call_ops(call)->offload &&
           cost_bytes >= (call->all->inferences > 1 ? LARGE_BYTES : HUGE_BYTES);
}

/* Runs work here or beside the loop; done follows on the loop. has_deadline: waiting for a thread
 * ends with the request's deadline. */
static void run(struct ifd_infer *infer, bool is_beside, bool has_deadline, void (*work)(void *arg),
                ifd_control_fn done)
{
    struct ifd_call *call = infer->call;
    call->is_waiting = true;
    if (!is_beside || !ifd_call_ops(call)->offload(ifd_call_service(call), &infer->request,
                                                   has_deadline, work, done, infer)) {
        work(infer);
        done(infer, IFD_OK, NULL);
    }
}

static void leave_line(struct ifd_infer *infer)
{
    struct ifd_call *call = infer->call;
    if (infer->is_lined_up) {
        infer->is_lined_up = false;
        ifd_call_ops(call)->leave_line(ifd_call_service(call), &infer->request);
    }
}

static void finish(struct ifd_infer *infer, enum ifd_code code, const struct ifd_err *err)
{
    leave_line(infer);
    infer->codec->finish(infer, code, err);
}

/* After work of the codec or the pictures: true if the inference goes on; otherwise it is
 * finished. */
static bool goes_on(struct ifd_infer *infer)
{
    struct ifd_call *call = infer->call;
    call->is_waiting = false;
    if (call->is_abandoned) {
        finish(infer, IFD_CANCELLED, NULL);
        return false;
    }
    if (infer->work_code != IFD_OK) {
        finish(infer, infer->work_code, &infer->work_err);
        return false;
    }
    return true;
}

static void encode(void *arg)
{
    struct ifd_infer *infer = arg;
    infer->work_code = infer->codec->encode(infer, &infer->work_err);
}

/* Keeps the first failure of work or of a picture. */
static void note_failure(struct ifd_infer *infer, enum ifd_code code, const struct ifd_err *err)
{
    if (code != IFD_OK && infer->work_code == IFD_OK) {
        infer->work_code = code;
        infer->work_err = err ? *err : (struct ifd_err){.code = code};
    }
}

static void after_encode(void *arg, enum ifd_code code, const struct ifd_err *err)
{
    struct ifd_infer *infer = arg;
    note_failure(infer, code, err);
    if (goes_on(infer)) {
        infer->call->end.encoded_ns = ifd_monotonic_ns();
        finish(infer, IFD_OK, NULL);
    }
}

static void give_outputs(struct ifd_infer *infer)
{
    struct ifd_call *call = infer->call;
    if (infer->has_outputs) {
        ifd_call_ops(call)->release_outputs(ifd_call_service(call), &infer->request);
        infer->has_outputs = false;
    }
}

/* After a run: true if there is another one to submit, whose inputs are set. */
static bool has_next(struct ifd_infer *infer)
{
    if (infer->work_code == IFD_OK && infer->runs_left > 0) {
        infer->runs_left--;
        infer->work_code = infer->codec->next(infer, &infer->work_err);
        give_outputs(infer);
        if (infer->work_code == IFD_OK) {
            return true;
        }
    }
    if (infer->work_code != IFD_OK) {
        finish(infer, infer->work_code, &infer->work_err);
    } else {
        leave_line(infer);
        run(infer, is_better_offloaded(infer->call, infer->codec->encode_cost(infer)), false,
            encode, after_encode);
    }
    return false;
}

/* A service may answer before submit() returns: then the next run is submitted from here, not from
 * within. */
static void submit(struct ifd_infer *infer)
{
    struct ifd_call *call = infer->call;
    struct ifd_err err = {0};
    call->end.decoded_ns = ifd_monotonic_ns();
    do {
        infer->is_submitted = infer->is_submitting = true;
        infer->is_settled = false;
        const enum ifd_code code =
            ifd_call_ops(call)->submit(ifd_call_service(call), &infer->request, &err);
        infer->is_submitting = false;
        if (code != IFD_OK) {
            infer->is_submitted = false;
            finish(infer, code, &err);
            return;
        }
    } while (infer->is_settled && has_next(infer));
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
    note_failure(infer, code, err);
    infer->is_settled = true;
    if (!infer->is_submitting && has_next(infer)) {
        submit(infer);
    }
}

static void on_picture(void *arg, enum ifd_code code, const struct ifd_err *err)
{
    struct ifd_infer *infer = arg;
    note_failure(infer, code, err);
    if (--infer->decoding_count == 0 && goes_on(infer)) {
        submit(infer);
    }
}

/* How many from the first on are regions of one picture. */
static size_t count_regions(const struct ifd_picture *first, size_t most)
{
    size_t count = 1;
    while (count < most && first[count].input == first->input && first[count].source.has_region &&
           first[count].source.bytes.data == first->source.bytes.data) {
        count++;
    }
    return count;
}

static void decode_pictures(struct ifd_infer *infer)
{
    struct ifd_call *call = infer->call;
    size_t regions = 0;
    infer->decoding_count = 1; /* until all are started, since each may call back at once */
    call->is_waiting = true;
    for (size_t i = 0; i < infer->picture_count; i += regions) {
        regions = count_regions(&infer->picture[i], infer->picture_count - i);
        infer->decoding_count++;
        ifd_call_ops(call)->decode_image(ifd_call_service(call), &infer->request,
                                         &infer->picture[i], regions, on_picture, infer);
    }
    on_picture(infer, IFD_OK, NULL);
}

static void decode(void *arg)
{
    struct ifd_infer *infer = arg;
    infer->request.timeout_us = 0; /* what was expected */
    infer->work_code = infer->codec->decode(infer, &infer->work_err);
}

static void begin(struct ifd_infer *infer)
{
    if (infer->picture_count > 0) {
        decode_pictures(infer);
    } else {
        submit(infer);
    }
}

static void on_turn(void *arg, enum ifd_code code, const struct ifd_err *err)
{
    struct ifd_infer *infer = arg;
    infer->call->end.is_replaced = code == IFD_EXISTS;
    if (code == IFD_OK) {
        infer->call->end.waited_ns = infer->request.turn.waited_ns;
        begin(infer);
    } else {
        finish(infer, code, err);
    }
}

static void after_decode(void *arg, enum ifd_code code, const struct ifd_err *err)
{
    struct ifd_infer *infer = arg;
    struct ifd_call *call = infer->call;
    note_failure(infer, code, err);
    if (!goes_on(infer)) {
        return;
    }
    call->end.is_frame = infer->request.source.size > 0;
    if (call->end.is_frame && ifd_call_ops(call)->line_up) {
        infer->is_lined_up = true;
        ifd_call_ops(call)->line_up(ifd_call_service(call), &infer->request, on_turn, infer);
    } else {
        begin(infer);
    }
}

/* ---- the life of an inference ---- */

enum ifd_code ifd_infer_init(struct ifd_infer *infer, const struct ifd_codec *codec,
                             struct ifd_call *call, struct ifd_err *err)
{
    struct ifd_arena *arena = call->arena;
    const struct ifd_model_desc *desc = ifd_call_ops(call)->describe(call->ref);
    struct ifd_infer_request *request = &infer->request;
    infer->codec = codec;
    infer->call = call;
    infer->desc = desc;
    infer->has_input = ifd_arena_take_array(arena, desc->input_count, sizeof(bool));
    infer->wanted = ifd_arena_take_array(arena, desc->output_count, sizeof(bool));
    infer->top = ifd_arena_take_array(arena, desc->output_count, sizeof(*infer->top));
    request->input = ifd_arena_take_array(arena, desc->input_count, sizeof(*request->input));
    request->output = ifd_arena_take_array(arena, desc->output_count, sizeof(*request->output));
    if (!infer->has_input || !infer->wanted || !infer->top || !request->input || !request->output) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the request");
    }
    request->wanted = infer->wanted;
    request->model = call->ref;
    request->arena = arena;
    request->batch = 1;
    request->id = "";
    request->received_ns = call->received_ns;
    request->handled_ns = call->end.handled_ns;
    request->done = on_done;
    request->owner = infer;
    return IFD_OK;
}

void ifd_infer_run(struct ifd_infer *infer)
{
    const bool is_beside = is_better_offloaded(infer->call, infer->codec->decode_cost(infer));
    if (is_beside) {
        infer->request.timeout_us = infer->codec->expected_timeout_us(infer);
    }
    /* Which level's timeout holds is not known where levels have their own. */
    run(infer, is_beside, infer->desc->priority_levels == 0, decode, after_decode);
}

enum ifd_code ifd_infer_take_output(const struct ifd_infer *infer, uint32_t index,
                                    struct ifd_tensor *ret, struct ifd_err *err)
{
    const struct ifd_tensor *tensor = &infer->request.output[index];
    if (infer->top[index] == 0) {
        *ret = *tensor;
        return IFD_OK;
    }
    return ifd_classify(tensor, &infer->desc->output[index], infer->top[index],
                        infer->desc->max_batch_size > 0, infer->call->arena, ret, err);
}

bool ifd_infer_abandon(struct ifd_infer *infer)
{
    struct ifd_call *call = infer->call;
    if (infer->is_submitted &&
        ifd_call_ops(call)->cancel(ifd_call_service(call), &infer->request)) {
        infer->is_submitted = false;
    }
    if (!infer->is_submitted && !call->is_waiting) {
        leave_line(infer);
    }
    if (call->is_waiting && ifd_call_ops(call)->withdraw) {
        atomic_store(&infer->request.is_abandoned, true);
        ifd_call_ops(call)->withdraw(ifd_call_service(call));
    }
    return !infer->is_submitted && !call->is_waiting;
}

void ifd_infer_close(struct ifd_infer *infer)
{
    leave_line(infer);
    give_outputs(infer);
}

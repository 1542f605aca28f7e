/* The core's inference under a codec that knows neither HTTP nor JSON: what a second protocol would
 * write. */
#include "api/core/infer.h"

#include "tests/support/fake_service.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define ELEMENTS 16

struct exchange {
    struct ifd_infer infer; /* first, as the codec's functions get it */
    struct ifd_service fake;
    struct ifd_calls calls;
    struct ifd_call call;
    struct ifd_arena arena;
    int32_t sent[2][ELEMENTS], got[ELEMENTS];
    size_t cost;           /* of decode */
    enum ifd_code refusal; /* not OK: decode fails with it */
    uint64_t top;
    char classified[64];
    int finish_count;
    enum ifd_code end;
    char text[sizeof(((struct ifd_err *)0)->text)];
};

static enum ifd_code decode(struct ifd_infer *infer, struct ifd_err *err)
{
    struct exchange *exchange = (struct exchange *)infer;
    if (exchange->refusal != IFD_OK) {
        return ifd_fail(err, exchange->refusal, "no such message");
    }
    for (int i = 0; i < 2; i++) {
        infer->request.input[i] = (struct ifd_tensor){.dtype = IFD_S32,
                                                      .shape = {.rank = 2, .dim = {1, ELEMENTS}},
                                                      .data = exchange->sent[i],
                                                      .bytes = sizeof(exchange->sent[i]),
                                                      .capacity = sizeof(exchange->sent[i])};
        infer->has_input[i] = true;
    }
    infer->wanted[0] = true;
    infer->top[0] = exchange->top;
    enum ifd_code code = ifd_infer_check_inputs(infer, err);
    return code == IFD_OK ? ifd_infer_check_outputs(infer, err) : code;
}

static enum ifd_code encode(struct ifd_infer *infer, struct ifd_err *err)
{
    struct exchange *exchange = (struct exchange *)infer;
    struct ifd_tensor output;
    enum ifd_code code = ifd_infer_take_output(infer, 0, &output, err);
    if (code == IFD_OK && output.dtype == IFD_STR) {
        const struct ifd_str *best = output.data;
        memcpy(exchange->classified, best->data, best->size);
    } else if (code == IFD_OK) {
        memcpy(exchange->got, output.data, sizeof(exchange->got));
    }
    return code;
}

static size_t decode_cost(const struct ifd_infer *infer)
{
    return ((const struct exchange *)infer)->cost;
}

static uint64_t expected_timeout_us(const struct ifd_infer *infer)
{
    (void)infer;
    return 7;
}

static size_t encode_cost(const struct ifd_infer *infer)
{
    (void)infer;
    return 0;
}

static void finish(struct ifd_infer *infer, enum ifd_code code, const struct ifd_err *err)
{
    struct exchange *exchange = (struct exchange *)infer;
    exchange->finish_count++;
    exchange->end = code;
    (void)snprintf(exchange->text, sizeof(exchange->text), "%s", err ? err->text : "");
}

static const struct ifd_codec codec = {.decode = decode,
                                       .encode = encode,
                                       .decode_cost = decode_cost,
                                       .expected_timeout_us = expected_timeout_us,
                                       .encode_cost = encode_cost,
                                       .finish = finish};

static void begin(struct exchange *exchange)
{
    struct ifd_err err = {0};
    *exchange = (struct exchange){.finish_count = 0};
    fake_service_init(&exchange->fake, ifd_alloc_system());
    ifd_arena_init(&exchange->arena, ifd_alloc_system(), 0);
    exchange->calls = (struct ifd_calls){.ops = fake_service_ops(), .service = &exchange->fake};
    exchange->call = (struct ifd_call){
        .all = &exchange->calls, .arena = &exchange->arena, .model = {.data = "simple", .size = 6}};
    REQUIRE_OK(ifd_call_begin_inference(&exchange->call, &err), &err);
    REQUIRE_OK(ifd_infer_init(&exchange->infer, &codec, &exchange->call, &err), &err);
    EXPECT_INT(exchange->calls.inferences, 1);
    for (int32_t i = 0; i < ELEMENTS; i++) {
        exchange->sent[0][i] = i;
        exchange->sent[1][i] = 100;
    }
}

static void end(struct exchange *exchange)
{
    ifd_infer_close(&exchange->infer);
    ifd_call_close(&exchange->call);
    EXPECT_INT(exchange->calls.inferences, 0);
    ifd_arena_finish(&exchange->arena);
    fake_service_finish(&exchange->fake);
}

static void another_codec_gets_its_outputs(void)
{
    struct exchange exchange;
    begin(&exchange);
    ifd_infer_run(&exchange.infer);
    EXPECT_INT(exchange.finish_count, 0);
    fake_service_run(&exchange.fake);
    EXPECT_INT(exchange.finish_count, 1);
    EXPECT_INT(exchange.end, IFD_OK);
    for (int32_t i = 0; i < ELEMENTS; i++) {
        EXPECT_INT(exchange.got[i], i + 100);
    }
    end(&exchange);
}

static void another_codec_gets_the_best_elements(void)
{
    struct exchange exchange;
    begin(&exchange);
    exchange.top = 1;
    ifd_infer_run(&exchange.infer);
    fake_service_run(&exchange.fake);
    EXPECT_INT(exchange.end, IFD_OK);
    EXPECT_TEXT(exchange.classified, "115:15");
    end(&exchange);
}

static void what_decode_refuses_is_not_submitted(void)
{
    struct exchange exchange;
    begin(&exchange);
    exchange.refusal = IFD_INVALID;
    ifd_infer_run(&exchange.infer);
    EXPECT_INT(exchange.fake.job_count, 0);
    EXPECT_INT(exchange.finish_count, 1);
    EXPECT_INT(exchange.end, IFD_INVALID);
    EXPECT_TEXT(exchange.text, "no such message");
    end(&exchange);
}

static void what_the_codec_calls_costly_runs_beside_the_loop(void)
{
    struct exchange exchange;
    for (int is_costly = 0; is_costly < 2; is_costly++) {
        begin(&exchange);
        exchange.fake.offloads = true;
        exchange.cost = is_costly ? (size_t)2 << 20 : 1000;
        ifd_infer_run(&exchange.infer);
        EXPECT_INT(exchange.fake.offload_count, is_costly);
        EXPECT_INT(exchange.fake.offload_timeout_us, is_costly ? 7 : 0);
        fake_service_run(&exchange.fake);
        EXPECT_INT(exchange.end, IFD_OK);
        EXPECT_INT(exchange.infer.request.timeout_us, 0); /* the message itself has none */
        end(&exchange);
    }
}

static void what_a_client_abandoned_ends_cancelled(void)
{
    struct exchange exchange;
    begin(&exchange);
    exchange.fake.cancel_waits = true;
    ifd_infer_run(&exchange.infer);
    exchange.call.is_abandoned = true;
    EXPECT(!ifd_infer_abandon(&exchange.infer));
    fake_service_run(&exchange.fake);
    EXPECT_INT(exchange.finish_count, 1);
    EXPECT_INT(exchange.end, IFD_CANCELLED);
    end(&exchange);

    begin(&exchange);
    ifd_infer_run(&exchange.infer);
    exchange.call.is_abandoned = true;
    EXPECT(ifd_infer_abandon(&exchange.infer));
    EXPECT_INT(exchange.finish_count, 0);
    end(&exchange);
}

/* While another thread reads its message. */
static void abandoning_withdraws_what_is_done_beside_the_loop(void)
{
    for (int is_withdrawn = 0; is_withdrawn < 2; is_withdrawn++) {
        struct exchange exchange;
        begin(&exchange);
        exchange.fake.offloads = true;
        exchange.cost = (size_t)2 << 20;
        ifd_infer_run(&exchange.infer);
        exchange.call.is_abandoned = true;
        EXPECT(!ifd_infer_abandon(&exchange.infer));
        EXPECT(atomic_load(&exchange.infer.request.is_abandoned));
        EXPECT_INT(exchange.fake.withdrawals, 1);
        exchange.refusal = IFD_INTERNAL; /* would be told if it was read */
        exchange.fake.job[0].code = is_withdrawn ? IFD_CANCELLED : IFD_OK;
        exchange.fake.job[0].reason = "withdrawn";
        fake_service_run(&exchange.fake);
        EXPECT_INT(exchange.finish_count, 1);
        EXPECT_INT(exchange.end, IFD_CANCELLED);
        EXPECT_INT(exchange.infer.work_code, is_withdrawn ? IFD_CANCELLED : IFD_INTERNAL);
        end(&exchange);
    }
}

static void work_that_was_not_done_is_a_failure(void)
{
    struct exchange exchange;
    begin(&exchange);
    exchange.fake.offloads = true;
    exchange.cost = (size_t)2 << 20;
    ifd_infer_run(&exchange.infer);
    exchange.fake.job[0].code = IFD_UNAVAILABLE;
    exchange.fake.job[0].reason = "stopping";
    fake_service_run(&exchange.fake);
    EXPECT_INT(exchange.end, IFD_UNAVAILABLE);
    EXPECT_TEXT(exchange.text, "stopping");
    end(&exchange);
}

/* A frame of a source: its turn, its run; or no turn. */
static void frames_of_a_source_run_in_their_turn(void)
{
    struct exchange exchange;
    begin(&exchange);
    exchange.infer.request.source = (struct ifd_str){.data = "door", .size = 4};
    ifd_infer_run(&exchange.infer);
    EXPECT_TEXT(exchange.fake.last_camera, "door");
    EXPECT_INT(exchange.fake.held_turns, 1);
    EXPECT(fake_service_step(&exchange.fake)); /* the turn */
    EXPECT_INT(exchange.finish_count, 0);
    EXPECT_INT(exchange.fake.held_turns, 1);
    EXPECT(fake_service_step(&exchange.fake)); /* the run */
    EXPECT_INT(exchange.end, IFD_OK);
    EXPECT_INT(exchange.fake.held_turns, 0);
    EXPECT(exchange.call.end.is_frame && !exchange.call.end.is_replaced);
    end(&exchange);

    begin(&exchange);
    exchange.infer.request.source = (struct ifd_str){.data = "door", .size = 4};
    exchange.fake.refuse_turn = IFD_EXISTS;
    ifd_infer_run(&exchange.infer);
    fake_service_run(&exchange.fake);
    EXPECT_INT(exchange.finish_count, 1);
    EXPECT_INT(exchange.end, IFD_EXISTS);
    EXPECT_TEXT(exchange.text, "a newer frame came");
    EXPECT(exchange.call.end.is_replaced);
    end(&exchange);
}

static void an_abandoned_frame_leaves_the_line(void)
{
    struct exchange exchange;
    for (int steps = 0; steps < 2; steps++) { /* while it waits; while it runs */
        begin(&exchange);
        exchange.infer.request.source = (struct ifd_str){.data = "door", .size = 4};
        ifd_infer_run(&exchange.infer);
        for (int i = 0; i < steps; i++) {
            EXPECT(fake_service_step(&exchange.fake));
        }
        exchange.call.is_abandoned = true;
        EXPECT(ifd_infer_abandon(&exchange.infer));
        EXPECT_INT(exchange.finish_count, 0);
        EXPECT_INT(exchange.fake.held_turns, 0);
        EXPECT_INT(exchange.fake.job_count, 0);
        end(&exchange);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(another_codec_gets_its_outputs),
        T(another_codec_gets_the_best_elements),
        T(what_decode_refuses_is_not_submitted),
        T(what_the_codec_calls_costly_runs_beside_the_loop),
        T(what_a_client_abandoned_ends_cancelled),
        T(abandoning_withdraws_what_is_done_beside_the_loop),
        T(work_that_was_not_done_is_a_failure),
        T(frames_of_a_source_run_in_their_turn),
        T(an_abandoned_frame_leaves_the_line),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

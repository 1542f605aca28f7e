/* Sequences and their states, without a server: a model that adds its input to its state. */
#include "server/serve/sequences.h"

#include "engine/base/str.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

#include <string.h>

#define SECOND ((uint64_t)1000000000)

struct fixture {
    struct fail_alloc fail;
    struct ifd_tensor_info input[2], output[2];
    struct ifd_state_info state;
    struct ifd_model_desc desc;
    struct ifd_sequences *sequences;
    struct ifd_err err;
};

/* A request, from begin to settle. */
struct step {
    struct ifd_arena arena;
    struct ifd_tensor input[2], output[2];
    bool asked[2];
    const bool *wanted;
    float sum;
    struct ifd_infer_request request;
    struct ifd_sequence *sequence;
    enum ifd_code code;
};

static enum ifd_code begin(struct fixture *f, uint32_t max)
{
    const struct ifd_shape one = {.rank = 1, .dim = {1}};
    *f = (struct fixture){.input = {{.name = "x", .dtype = IFD_F32, .shape = one},
                                    {.name = "h", .dtype = IFD_F32, .shape = one}},
                          .output = {{.name = "y", .dtype = IFD_F32, .shape = one},
                                     {.name = "g", .dtype = IFD_F32, .shape = one}}};
    f->state = (struct ifd_state_info){.output_name = "g", .input = 1, .output = 1};
    f->desc = (struct ifd_model_desc){.name = "sum",
                                      .input = f->input,
                                      .output = f->output,
                                      .input_count = 2,
                                      .output_count = 2,
                                      .has_sequences = true,
                                      .max_sequence_idle_us = 1000000,
                                      .max_sequences = max,
                                      .state = &f->state,
                                      .state_count = 1};
    fail_alloc_init(&f->fail, 0);
    return ifd_sequences_create(&f->desc, &f->fail.alloc, &f->sequences, &f->err);
}

static void end(struct fixture *f)
{
    ifd_sequences_destroy(f->sequences);
    fail_alloc_finish(&f->fail);
}

static void start_as(struct fixture *f, struct step *s, const char *id, bool starts, bool ends,
                     uint64_t now_ns)
{
    *s = (struct step){.asked = {true, false}};
    ifd_arena_init(&s->arena, ifd_alloc_system(), 0);
    s->request = (struct ifd_infer_request){.arena = &s->arena,
                                            .input = s->input,
                                            .output = s->output,
                                            .wanted = s->asked,
                                            .batch = 1,
                                            .sequence_id = ifd_str(id),
                                            .sequence_start = starts,
                                            .sequence_end = ends};
    s->code =
        ifd_sequences_begin(f->sequences, &s->request, now_ns, &s->sequence, &s->wanted, &f->err);
}

static void start(struct fixture *f, struct step *s, const char *id, bool starts, uint64_t now_ns)
{
    start_as(f, s, id, starts, false, now_ns);
}

/* Adds x to the state. */
static void settle(struct fixture *f, struct step *s, float x, bool has_run, uint64_t now_ns)
{
    if (s->code == IFD_OK) {
        s->sum = *(const float *)s->input[1].data + x;
        s->output[1] = (struct ifd_tensor){.data = &s->sum, .bytes = sizeof(s->sum)};
        ifd_sequence_settle(f->sequences, s->sequence, &s->request, has_run, now_ns);
    }
    ifd_arena_finish(&s->arena);
}

static enum ifd_code step(struct fixture *f, const char *id, bool starts, float x, uint64_t now_ns,
                          float *ret_sum)
{
    struct step s;
    start(f, &s, id, starts, now_ns);
    settle(f, &s, x, true, now_ns);
    *ret_sum = s.sum;
    return s.code;
}

static void a_request_gets_what_the_one_before_it_left(void)
{
    struct fixture f;
    float sum = 0;
    REQUIRE_OK(begin(&f, 4), &f.err);
    for (int i = 1; i <= 3; i++) {
        REQUIRE_OK(step(&f, "a", i == 1, 2, SECOND, &sum), &f.err);
        EXPECT_CLOSE(sum, 2 * i, 0);
        REQUIRE_OK(step(&f, "b", i == 1, 5, SECOND, &sum), &f.err);
        EXPECT_CLOSE(sum, 5 * i, 0);
    }
    REQUIRE_OK(step(&f, "a", true, 7, SECOND, &sum), &f.err);
    EXPECT_CLOSE(sum, 7, 0);
    end(&f);
}

static void states_are_wanted_whatever_the_client_wants(void)
{
    struct fixture f;
    struct step s;
    REQUIRE_OK(begin(&f, 4), &f.err);
    start(&f, &s, "a", true, SECOND);
    EXPECT(s.wanted[0] && s.wanted[1] && !s.asked[1]);
    settle(&f, &s, 1, true, SECOND);
    end(&f);
}

static void a_request_that_did_not_run_changes_nothing(void)
{
    struct fixture f;
    struct step s;
    float sum = 0;
    REQUIRE_OK(begin(&f, 4), &f.err);
    REQUIRE_OK(step(&f, "a", true, 2, SECOND, &sum), &f.err);
    start(&f, &s, "a", false, SECOND);
    settle(&f, &s, 100, false, SECOND);
    REQUIRE_OK(step(&f, "a", false, 3, SECOND, &sum), &f.err);
    EXPECT_CLOSE(sum, 5, 0);
    end(&f);
}

static void one_request_of_a_sequence_runs_at_a_time(void)
{
    struct fixture f;
    struct step first, second;
    REQUIRE_OK(begin(&f, 4), &f.err);
    start(&f, &first, "a", true, SECOND);
    start(&f, &second, "a", false, 100 * SECOND); /* not idle, however long it runs */
    EXPECT_CODE(second.code, IFD_BUSY, &f.err);
    EXPECT_HAS(f.err.text, "sequence a still runs");
    settle(&f, &second, 0, false, SECOND);
    settle(&f, &first, 1, true, SECOND);
    end(&f);
}

static void sequences_are_bounded_and_idle_ones_are_forgotten(void)
{
    struct fixture f;
    float sum = 0;
    REQUIRE_OK(begin(&f, 2), &f.err);
    REQUIRE_OK(step(&f, "a", true, 1, 10 * SECOND, &sum), &f.err);
    REQUIRE_OK(step(&f, "b", true, 1, 10 * SECOND, &sum), &f.err);
    EXPECT_CODE(step(&f, "c", true, 1, 11 * SECOND, &sum), IFD_BUSY, &f.err);
    REQUIRE_OK(step(&f, "c", true, 1, 11 * SECOND + 1, &sum), &f.err);
    EXPECT_CODE(step(&f, "a", false, 1, 11 * SECOND + 1, &sum), IFD_INVALID, &f.err);
    EXPECT_HAS(f.err.text, "sequence a to model 'sum' must specify the START flag");
    EXPECT_HAS(f.err.text, "forgotten after 1000000 us without a request");
    end(&f);
}

static void an_end_closes_a_sequence(void)
{
    struct fixture f;
    struct step s;
    float sum = 0;
    REQUIRE_OK(begin(&f, 4), &f.err);
    const long live = atomic_load(&f.fail.live);
    REQUIRE_OK(step(&f, "a", true, 1, SECOND, &sum), &f.err);
    start(&f, &s, "a", false, SECOND);
    settle(&f, &s, 1, true, SECOND);
    EXPECT(atomic_load(&f.fail.live) > live);
    start_as(&f, &s, "a", false, true, SECOND);
    settle(&f, &s, 1, true, SECOND);
    EXPECT_INT(atomic_load(&f.fail.live), live);
    end(&f);
}

static void requests_outside_of_sequences_are_refused(void)
{
    struct fixture f;
    struct step s;
    REQUIRE_OK(begin(&f, 4), &f.err);
    start(&f, &s, "", true, SECOND);
    EXPECT_CODE(s.code, IFD_INVALID, &f.err);
    EXPECT_HAS(f.err.text, "correlation ID");
    s.request.sequence_id = ifd_str("a");
    s.request.batch = 2;
    EXPECT_CODE(
        ifd_sequences_begin(f.sequences, &s.request, SECOND, &s.sequence, &s.wanted, &f.err),
        IFD_INVALID, &f.err);
    EXPECT_HAS(f.err.text, "a batch of 2");
    settle(&f, &s, 0, false, SECOND);
    end(&f);
}

static void every_failed_allocation_is_reported(void)
{
    for (long k = 1; k <= 2; k++) {
        struct fixture f;
        float sum = 0;
        REQUIRE_OK(begin(&f, 4), &f.err);
        fail_alloc_arm(&f.fail, k, false);
        EXPECT_CODE(step(&f, "a", true, 1, SECOND, &sum), IFD_NOMEM, &f.err);
        REQUIRE_OK(step(&f, "a", true, 1, SECOND, &sum), &f.err);
        end(&f);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_request_gets_what_the_one_before_it_left),
        T(states_are_wanted_whatever_the_client_wants),
        T(a_request_that_did_not_run_changes_nothing),
        T(one_request_of_a_sequence_runs_at_a_time),
        T(sequences_are_bounded_and_idle_ones_are_forgotten),
        T(an_end_closes_a_sequence),
        T(requests_outside_of_sequences_are_refused),
        T(every_failed_allocation_is_reported),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

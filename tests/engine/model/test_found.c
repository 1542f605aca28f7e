/* Models in which data decides shapes. */
#include "tests/support/graph.h"
#include "tests/support/model_file.h"

#include <string.h>

#define ONNX   IFD_SOURCE_DIR "/tests/fuzz/corpus/onnx/"
#define TFLITE IFD_SOURCE_DIR "/tests/fuzz/corpus/tflite/"

static struct ifd_tensor tensor(enum ifd_dtype dtype, struct ifd_shape shape, const void *data,
                                size_t bytes)
{
    return (struct ifd_tensor){.dtype = dtype,
                               .shape = shape,
                               .data = (void *)(uintptr_t)data,
                               .bytes = bytes,
                               .capacity = bytes};
}

/* Of found: y is twice the elements above a threshold, r the elements as a row. */
static void expect_above(struct model_file *f, const float *x, int64_t rows, float threshold)
{
    const size_t count = (size_t)rows * 4;
    int64_t above = 0;
    f->in[0] = tensor(IFD_F32, SHAPE(rows, 4), x, count * sizeof(*x));
    f->in[1] = tensor(IFD_F32, (struct ifd_shape){0}, &threshold, sizeof(threshold));
    REQUIRE_OK(model_file_run(f), &f->err);
    for (size_t i = 0; i < count; i++) {
        if (x[i] > threshold) {
            REQUIRE(above < f->out[0].shape.dim[0]);
            EXPECT_CLOSE(((const float *)f->out[0].data)[above], 2 * x[i], 0);
            EXPECT_CLOSE(((const float *)f->out[1].data)[above], x[i], 0);
            above++;
        }
    }
    EXPECT(ifd_shape_equal(&f->out[0].shape, &SHAPE(above)));
    EXPECT(ifd_shape_equal(&f->out[1].shape, &SHAPE(1, above)));
    EXPECT_INT(f->out[0].bytes, (size_t)above * sizeof(float));
}

static const float values[12] = {1, 5, -2, 8, 3, 0, 4, 4, -7, 9, 2, 6};

static void expect_found(const char *path)
{
    struct model_file f;
    model_file_begin(&f, path, &(struct model_file_options){.model = {.releases_weights = true}});
    EXPECT(f.info->has_open_dims);
    EXPECT_INT(f.info->output_count, 2);
    EXPECT(ifd_shape_equal(&f.info->output[0].desc.shape, &SHAPE(-1)));
    EXPECT(ifd_shape_equal(&f.info->output[1].desc.shape, &SHAPE(1, -1)));
    expect_above(&f, values, 3, 3.5F);
    expect_above(&f, values, 3, 8.5F);
    expect_above(&f, values, 3, -100); /* all */
    expect_above(&f, values, 3, 100);  /* none */
    expect_above(&f, values, 1, 3.5F);
    expect_above(&f, values, 3, 3.5F);
    model_file_end(&f);
}

static void results_have_the_size_that_data_decides(void)
{
    expect_found(ONNX "found.onnx");
    expect_found(TFLITE "good_found.tflite");
}

/* Of late: each of twelve plans takes 4 MB, and leaves some numbers for the last one. */
static void what_is_read_late_takes_no_more_than_its_own_memory(void)
{
    struct model_file f;
    const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, t = 0;
    model_file_begin(&f, ONNX "late.onnx",
                     &(struct model_file_options){.model = {.shape_bytes = 25000000}});
    f.in[0] = tensor(IFD_F32, SHAPE(8), x, sizeof(x));
    f.in[1] = tensor(IFD_F32, (struct ifd_shape){0}, &t, sizeof(t));
    for (int turn = 0; turn < 2; turn++) {
        REQUIRE_OK(model_file_run(&f), &f.err);
        REQUIRE(ifd_shape_equal(&f.out[0].shape, &SHAPE(1, 19)));
        for (int i = 0; i < 19; i++) { /* 7: the only one above 7 */
            EXPECT_CLOSE(((const float *)f.out[0].data)[i], i < 7 ? i : 7, 0);
        }
    }
    model_file_end(&f);
}

/* A run of zeros finds how many dimensions there are; requests with others are refused. */
static void outputs_that_the_file_does_not_describe_are_served(void)
{
    struct model_file f;
    const int64_t two[2] = {2, 6}, three[3] = {2, 2, 3};
    model_file_begin(&f, ONNX "unsaid.onnx", &(struct model_file_options){0});
    EXPECT_INT(f.info->output_count, 2);
    EXPECT(ifd_shape_equal(&f.info->output[0].desc.shape, &SHAPE(-1)));
    EXPECT(ifd_shape_equal(&f.info->output[1].desc.shape, &SHAPE(-1, -1)));
    EXPECT_INT(f.info->output[0].desc.dtype, IFD_F32);
    f.in[0] = tensor(IFD_F32, SHAPE(3, 4), values, sizeof(values));
    f.in[1] = tensor(IFD_S64, SHAPE(2), two, sizeof(two));
    REQUIRE_OK(model_file_run(&f), &f.err);
    EXPECT(ifd_shape_equal(&f.out[0].shape, &SHAPE(11)));
    EXPECT_CLOSE(((const float *)f.out[0].data)[4], -3, 0);
    EXPECT_CLOSE(((const float *)f.out[0].data)[5], -4, 0); /* the 0 is not there */
    EXPECT(ifd_shape_equal(&f.out[1].shape, &SHAPE(2, 6)));
    f.in[1] = tensor(IFD_S64, SHAPE(3), three, sizeof(three));
    EXPECT_CODE(model_file_run(&f), IFD_INVALID, &f.err);
    EXPECT_TEXT(f.err.text, "the model cannot take these shapes: output \"z\" is f32 of 3 "
                            "dimensions, f32 of 2 were promised");
    model_file_end(&f);
}

static void sizes_beyond_the_limit_are_refused_and_the_next_are_served(void)
{
    struct model_file f;
    static float many[1 << 18];
    for (size_t i = 0; i < 1 << 18; i++) {
        many[i] = 1;
    }
    model_file_begin(&f, ONNX "found.onnx",
                     &(struct model_file_options){.model = {.shape_bytes = 2000000}});
    const float threshold = 0;
    f.in[0] = tensor(IFD_F32, SHAPE(1 << 16, 4), many, sizeof(many));
    f.in[1] = tensor(IFD_F32, (struct ifd_shape){0}, &threshold, sizeof(threshold));
    EXPECT_CODE(model_file_run(&f), IFD_TOO_LARGE, &f.err);
    expect_above(&f, values, 2, 3.5F);
    expect_above(&f, values, 2, 100);
    model_file_end(&f);
}

/* Of range_by_data: y = 0 … a + b - 1. */
static void computed_limits_decide_the_size_of_a_range(void)
{
    struct model_file f;
    model_file_begin(&f, TFLITE "good_range_by_data.tflite", NULL);
    const int32_t b = 2;
    for (int32_t a = 0; a < 4; a++) {
        f.in[0] = tensor(IFD_S32, (struct ifd_shape){0}, &a, sizeof(a));
        f.in[1] = tensor(IFD_S32, (struct ifd_shape){0}, &b, sizeof(b));
        REQUIRE_OK(model_file_run(&f), &f.err);
        EXPECT(ifd_shape_equal(&f.out[0].shape, &SHAPE(a + b)));
        EXPECT_INT(((const int32_t *)f.out[0].data)[a + b - 1], a + b - 1);
    }
    const int32_t many = 1 << 28;
    f.in[0] = tensor(IFD_S32, (struct ifd_shape){0}, &many, sizeof(many));
    EXPECT_CODE(model_file_run(&f), IFD_TOO_LARGE, &f.err);
    model_file_end(&f);
}

/* Of dense_by_data: 5 at 0, 7 at 2, else -1. */
static void an_operator_of_several_nodes_asks_for_its_shape(void)
{
    static const float wanted[4] = {5, -1, 7, -1};
    struct model_file f;
    model_file_begin(&f, TFLITE "good_dense_by_data.tflite", NULL);
    for (int32_t dim = 3; dim < 5; dim++) {
        f.in[0] = tensor(IFD_S32, SHAPE(1), &dim, sizeof(dim));
        REQUIRE_OK(model_file_run(&f), &f.err);
        EXPECT(ifd_shape_equal(&f.out[0].shape, &SHAPE(dim)));
        EXPECT(memcmp(f.out[0].data, wanted, (size_t)dim * sizeof(*wanted)) == 0);
    }
    model_file_end(&f);
}

/* In the order in which they first appear. */
static void different_elements_are_found(void)
{
    static const int32_t x[6] = {4, 1, 4, 7, 1, 1}, y[3] = {4, 1, 7};
    static const int64_t at[6] = {0, 1, 0, 2, 1, 1};
    struct model_file f;
    model_file_begin(&f, TFLITE "good_unique.tflite", NULL);
    f.in[0] = tensor(IFD_S32, SHAPE(6), x, sizeof(x));
    REQUIRE_OK(model_file_run(&f), &f.err);
    EXPECT(ifd_shape_equal(&f.out[0].shape, &SHAPE(3)));
    EXPECT(memcmp(f.out[0].data, y, sizeof(y)) == 0);
    EXPECT_INT(f.out[1].bytes, sizeof(at));
    EXPECT(memcmp(f.out[1].data, at, sizeof(at)) == 0);
    model_file_end(&f);
}

/* Of found_in_branch: either the elements that are not 0, or all of them without signs. */
static void branches_find_as_much_as_the_data_has(void)
{
    static const float x[2] = {0, -3}, all[2] = {0, 3};
    struct model_file f;
    model_file_begin(&f, TFLITE "good_found_in_branch.tflite", NULL);
    for (int turn = 0; turn < 4; turn++) {
        const bool finds = turn % 2 == 0;
        f.in[0] = tensor(IFD_F32, SHAPE(1, 2), x, sizeof(x));
        f.in[1] = tensor(IFD_BOOL, (struct ifd_shape){0}, &finds, sizeof(finds));
        REQUIRE_OK(model_file_run(&f), &f.err);
        EXPECT(ifd_shape_equal(&f.out[0].shape, &SHAPE(finds ? 1 : 2)));
        EXPECT(memcmp(f.out[0].data, finds ? x + 1 : all, f.out[0].bytes) == 0);
    }
    model_file_end(&f);
}

/* Of found_in_loop: the elements that are not 0, if there is a turn. */
static void loops_find_as_much_as_the_data_has(void)
{
    static const float x[3] = {0, -3, 2};
    struct model_file f;
    model_file_begin(&f, TFLITE "good_found_in_loop.tflite", NULL);
    for (int turn = 0; turn < 4; turn++) {
        const bool a = turn % 2 == 1, b = turn / 2 == 1;
        f.in[0] = tensor(IFD_BOOL, (struct ifd_shape){0}, &a, sizeof(a));
        f.in[1] = tensor(IFD_BOOL, (struct ifd_shape){0}, &b, sizeof(b));
        f.in[2] = tensor(IFD_F32, SHAPE(3), x, sizeof(x));
        REQUIRE_OK(model_file_run(&f), &f.err);
        EXPECT(ifd_shape_equal(&f.out[0].shape, &SHAPE(a ? 2 : 3)));
        EXPECT(memcmp(f.out[0].data, a ? x + 1 : x, f.out[0].bytes) == 0);
    }
    model_file_end(&f);
}

/* 50 for element 0, 70 for element 1, unless it is 0. */
static void find_behind_a_cut(const char *path)
{
    static const float x[2] = {0, 1};
    struct model_file f;
    model_file_begin(&f, path, NULL);
    f.in[0] = tensor(IFD_F32, SHAPE(2), x, sizeof(x));
    REQUIRE_OK(model_file_run(&f), &f.err);
    EXPECT(ifd_shape_equal(&f.out[0].shape, &SHAPE(1, 1)));
    EXPECT_INT(((const int64_t *)f.out[0].data)[0], 70);
    model_file_end(&f);
}

static void handles_name_the_same_table_behind_a_cut(void)
{
    find_behind_a_cut(TFLITE "good_hashtables_behind_a_cut.tflite");
    find_behind_a_cut(TFLITE "good_hashtables_of_a_call_behind_a_cut.tflite");
}

/* Of found_once_behind_a_cut. */
static void what_a_call_once_finds_answers_no_later_question(void)
{
    static const float x[2] = {0, 1};
    struct model_file f;
    model_file_begin(&f, TFLITE "good_found_once_behind_a_cut.tflite", NULL);
    f.in[0] = tensor(IFD_F32, SHAPE(2), x, sizeof(x));
    REQUIRE_OK(model_file_run(&f), &f.err);
    EXPECT(ifd_shape_equal(&f.out[0].shape, &SHAPE(1, 1)));
    EXPECT_INT(((const int64_t *)f.out[0].data)[0], 3);
    model_file_end(&f);
}

/* Of hashtable_in_branch: y = 5 if c, else 7. */
static void a_table_holds_what_the_branch_filled_it_with(void)
{
    static const float x[2] = {1, 2};
    struct model_file f;
    model_file_begin(&f, TFLITE "good_hashtable_in_branch.tflite", NULL);
    for (int turn = 0; turn < 4; turn++) {
        const bool c = turn % 2 == 0;
        f.in[0] = tensor(IFD_F32, SHAPE(1, 2), x, sizeof(x));
        f.in[1] = tensor(IFD_BOOL, (struct ifd_shape){0}, &c, sizeof(c));
        REQUIRE_OK(model_file_run(&f), &f.err);
        EXPECT_INT(((const int64_t *)f.out[1].data)[0], c ? 5 : 7);
    }
    model_file_end(&f);
}

/* Of sizes: y = reshape(expand(x, s)[b:k], d), all of which requests hand over. */
static enum ifd_code run_sizes(struct model_file *f, const int64_t s[2], const int64_t b[2],
                               const int64_t k[2], const int64_t d[1])
{
    static const float x[3] = {1, 2, 3};
    f->in[0] = tensor(IFD_F32, SHAPE(1, 3), x, sizeof(x));
    f->in[1] = tensor(IFD_S64, SHAPE(2), s, 2 * sizeof(*s));
    f->in[2] = tensor(IFD_S64, SHAPE(2), b, 2 * sizeof(*b));
    f->in[3] = tensor(IFD_S64, SHAPE(2), k, 2 * sizeof(*k));
    f->in[4] = tensor(IFD_S64, SHAPE(1), d, sizeof(*d));
    return model_file_run(f);
}

static void requests_hand_over_sizes(void)
{
    struct model_file f;
    model_file_begin(&f, ONNX "sizes.onnx", NULL);
    REQUIRE_OK(
        run_sizes(&f, (int64_t[]){4, 3}, (int64_t[]){1, 1}, (int64_t[]){3, 3}, (int64_t[]){-1}),
        &f.err);
    EXPECT(ifd_shape_equal(&f.out[0].shape, &SHAPE(4)));
    static const float wanted[4] = {2, 3, 2, 3};
    EXPECT(memcmp(f.out[0].data, wanted, sizeof(wanted)) == 0);
    EXPECT_CODE(
        run_sizes(&f, (int64_t[]){4, 2}, (int64_t[]){1, 1}, (int64_t[]){3, 3}, (int64_t[]){-1}),
        IFD_INVALID, &f.err);
    EXPECT_HAS(f.err.text, "do not broadcast");
    EXPECT_CODE(run_sizes(&f, (int64_t[]){1 << 30, 3}, (int64_t[]){1, 1}, (int64_t[]){3, 3},
                          (int64_t[]){-1}),
                IFD_TOO_LARGE, &f.err);
    REQUIRE_OK(
        run_sizes(&f, (int64_t[]){1, 3}, (int64_t[]){0, 0}, (int64_t[]){0, 3}, (int64_t[]){0}),
        &f.err);
    EXPECT(ifd_shape_equal(&f.out[0].shape, &SHAPE(0)));
    model_file_end(&f);
}

/* Of computed_slice: y = x[b + 1 : b + 1 + k]. The node asks twice. */
static void a_node_may_ask_for_computed_numbers_twice(void)
{
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    struct model_file f;
    model_file_begin(&f, ONNX "computed_slice.onnx", NULL);
    for (int64_t b = 0; b < 3; b++) {
        for (int64_t k = 0; k < 4 - b; k++) {
            f.in[0] = tensor(IFD_F32, SHAPE(6), x, sizeof(x));
            f.in[1] = tensor(IFD_S64, SHAPE(1), &b, sizeof(b));
            f.in[2] = tensor(IFD_S64, SHAPE(1), &k, sizeof(k));
            REQUIRE_OK(model_file_run(&f), &f.err);
            EXPECT(ifd_shape_equal(&f.out[0].shape, &SHAPE(k)));
            EXPECT(k == 0 || memcmp(f.out[0].data, x + b + 1, (size_t)k * sizeof(*x)) == 0);
        }
    }
    model_file_end(&f);
}

/* a = [a, v] while sum(a) < l: its length doubles or grows from turn to turn. */
static void loops_whose_values_grow_run(void)
{
    static const float v[2] = {1, 2};
    struct model_file f;
    model_file_begin(&f, ONNX "loop_grows.onnx", NULL);
    f.deadline_ns = UINT64_MAX; /* 4,096 plans take an emulated processor over 10 s */
    for (int turns = 1; turns < 500; turns += turns < 5 ? 1 : 100) {
        const float limit = 3 * (float)(turns + 1);
        f.in[0] = tensor(IFD_F32, SHAPE(2), v, sizeof(v));
        f.in[1] = tensor(IFD_F32, (struct ifd_shape){0}, &limit, sizeof(limit));
        REQUIRE_OK(model_file_run(&f), &f.err);
        EXPECT(ifd_shape_equal(&f.out[0].shape, &SHAPE(2 * (turns + 1))));
        EXPECT_CLOSE(((const float *)f.out[0].data)[2 * turns + 1], 2, 0);
    }
    const float no_end = 1e9F;
    f.in[1] = tensor(IFD_F32, (struct ifd_shape){0}, &no_end, sizeof(no_end));
    EXPECT_CODE(model_file_run(&f), IFD_TOO_LARGE, &f.err);
    model_file_end(&f);
}

/* 0, 1, 2 … up to the limit. Each turn reads those before again, so a loop that does not end has
 * the time of one that turns. */
static void loops_append_to_sequences(void)
{
    static const int most[] = {1, 2, 7, 60};
    struct model_file f;
    model_file_begin(&f, ONNX "loop_appends.onnx", NULL);
    for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
        const float limit = (float)most[i];
        f.in[0] = tensor(IFD_F32, SHAPE(1), &limit, sizeof(limit));
        REQUIRE_OK(model_file_run(&f), &f.err);
        REQUIRE(ifd_shape_equal(&f.out[0].shape, &SHAPE(most[i] + 1)));
        for (int k = 0; k <= most[i]; k++) {
            EXPECT_CLOSE(((const float *)f.out[0].data)[k], k, 0);
        }
    }
    const float no_end = 1e9F;
    f.in[0] = tensor(IFD_F32, SHAPE(1), &no_end, sizeof(no_end));
    EXPECT_CODE(model_file_run(&f), IFD_DEADLINE, &f.err);
    EXPECT_HAS(f.err.text, "when time is over");
    model_file_end(&f);
}

static bool is_over(const void *context)
{
    (void)context;
    return true;
}

/* Its first part is computed; what follows would be asked for by nobody. */
static void parts_end_when_nobody_waits_for_them(void)
{
    static const float v[2] = {1, 2}, limit = 100;
    struct model_file f;
    model_file_begin(&f, ONNX "loop_grows.onnx", NULL);
    f.in[0] = tensor(IFD_F32, SHAPE(2), v, sizeof(v));
    f.in[1] = tensor(IFD_F32, (struct ifd_shape){0}, &limit, sizeof(limit));
    const struct ifd_io io = {.input = f.in, .output = f.out, .batch = 1, .is_over = is_over};
    EXPECT_CODE(ifd_instance_run(f.instance, &io, 1, &f.err), IFD_CANCELLED, &f.err);
    EXPECT_HAS(f.err.text, "nobody waits");
    REQUIRE_OK(model_file_run(&f), &f.err);
    model_file_end(&f);
}

/* The second loop never turns: its lists are empty, though only a run finds their elements. */
static void a_loop_of_no_turns_gives_what_it_began_with(void)
{
    static const float x[3] = {3, 4, 5};
    static const int64_t found[4] = {0, 2, 0, 2}, shape[4] = {1, 2, 1, 2};
    struct model_file f;
    model_file_begin(&f, ONNX "loop_no_turns.onnx", NULL);
    f.in[1] = tensor(IFD_F32, SHAPE(3), x, sizeof(x));
    for (int64_t turns = 2; turns >= 0; turns--) {
        f.in[0] = tensor(IFD_S64, (struct ifd_shape){0}, &turns, sizeof(turns));
        REQUIRE_OK(model_file_run(&f), &f.err);
        EXPECT(f.out[1].shape.rank == 3 && f.out[1].shape.dim[0] == turns);
        EXPECT(ifd_shape_equal(&f.out[2].shape, &SHAPE(turns, 2)));
        EXPECT_CLOSE(((const float *)f.out[0].data)[1], turns == 0 ? 4 : 0, 0);
        EXPECT(turns == 0 || memcmp(f.out[1].data, found, (size_t)turns * 2 * sizeof(*found)) == 0);
        EXPECT(turns == 0 || memcmp(f.out[2].data, shape, (size_t)turns * 2 * sizeof(*shape)) == 0);
        EXPECT_BYTES(f.out[3].data, x, sizeof(x));
        EXPECT(ifd_shape_equal(&f.out[4].shape, &SHAPE(0, 1, 0)));
        EXPECT(ifd_shape_equal(&f.out[5].shape, &SHAPE(0, 2)));
    }
    model_file_end(&f);
}

static bool is_text(const struct ifd_tensor *tensor, size_t i, const char *wanted)
{
    const struct ifd_str text = ((const struct ifd_str *)tensor->data)[i];
    return text.size == strlen(wanted) && memcmp(text.data, wanted, text.size) == 0;
}

/* Each turn writes its number in front of the text, which outlives the next run of its plan. */
static void texts_go_from_turn_to_turn(void)
{
    const struct ifd_str begin = {" turns", 6};
    const int64_t turns = 6;
    struct model_file f;
    model_file_begin(&f, ONNX "loop_texts.onnx", NULL);
    f.in[0] = tensor(IFD_S64, (struct ifd_shape){0}, &turns, sizeof(turns));
    f.in[1] = tensor(IFD_STR, SHAPE(1), &begin, sizeof(begin));
    for (int run = 0; run < 2; run++) {
        REQUIRE_OK(model_file_run(&f), &f.err);
        REQUIRE(ifd_shape_equal(&f.out[1].shape, &SHAPE(turns, 1)));
        EXPECT(is_text(&f.out[0], 0, "543210 turns"));
        EXPECT(is_text(&f.out[1], 0, "0 turns"));
        EXPECT(is_text(&f.out[1], 3, "3210 turns"));
        EXPECT(is_text(&f.out[1], 5, "543210 turns"));
    }
    model_file_end(&f);
}

/* Of sequences: the rows of x times row p, with row p itself at place 1, without the last one. */
static void positions_in_sequences_may_be_data(void)
{
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    struct model_file f;
    model_file_begin(&f, ONNX "sequences.onnx", NULL);
    for (int64_t p = -3; p < 3; p++) {
        f.in[0] = tensor(IFD_F32, SHAPE(3, 2), x, sizeof(x));
        f.in[1] = tensor(IFD_S64, (struct ifd_shape){0}, &p, sizeof(p));
        REQUIRE_OK(model_file_run(&f), &f.err);
        const float *e = x + 2 * ((p + 3) % 3), *y = f.out[0].data;
        const float wanted[6] = {x[0] * e[0], x[1] * e[1], e[0], e[1], x[2] * e[0], x[3] * e[1]};
        EXPECT(ifd_shape_equal(&f.out[0].shape, &SHAPE(3, 2)));
        EXPECT(memcmp(y, wanted, sizeof(wanted)) == 0);
    }
    const int64_t outside = 3;
    f.in[1] = tensor(IFD_S64, (struct ifd_shape){0}, &outside, sizeof(outside));
    EXPECT_CODE(model_file_run(&f), IFD_INVALID, &f.err);
    EXPECT_HAS(f.err.text, "position 3 of 3");
    model_file_end(&f);
}

/* What turns hand over is kept where a plan may go, and refused where it does not fit. */
static void turns_of_a_loop_take_as_much_as_the_limit(void)
{
    static const float v[2] = {1, 2};
    static const size_t limit_bytes[2] = {300000,
                                          60000}; /* more than two plans; less than values */
    for (int i = 0; i < 2; i++) {
        struct model_file f;
        const int turns = i == 0 ? 40 : 4000;
        const float limit = 3 * (float)(turns + 1);
        model_file_begin(&f, ONNX "loop_grows.onnx",
                         &(struct model_file_options){.model = {.shape_bytes = limit_bytes[i]}});
        f.in[0] = tensor(IFD_F32, SHAPE(2), v, sizeof(v));
        f.in[1] = tensor(IFD_F32, (struct ifd_shape){0}, &limit, sizeof(limit));
        if (i == 1) {
            EXPECT_CODE(model_file_run(&f), IFD_TOO_LARGE, &f.err);
            EXPECT_HAS(f.err.text, "60000");
        } else {
            REQUIRE_OK(model_file_run(&f), &f.err);
            EXPECT(ifd_shape_equal(&f.out[0].shape, &SHAPE(2 * (turns + 1))));
            EXPECT_CLOSE(((const float *)f.out[0].data)[2 * turns + 1], 2, 0);
        }
        model_file_end(&f);
    }
}

static struct ifd_tensor text(const struct ifd_str *s)
{
    return tensor(IFD_STR, SHAPE(1), s, sizeof(*s));
}

/* Of text_turns, turn by turn: u = "b " + v, v = "d" + u. Turns have a plan in common, and each
 * reads the texts of the one before. */
static void texts_of_a_turn_are_there_in_the_next(void)
{
    static char large[200000];
    memset(large, 'x', sizeof(large));
    const struct ifd_str x[2] = {{large, sizeof(large)}, {"first second", 12}}, y = {"yz", 2};
    struct model_file f;
    model_file_begin(&f, ONNX "text_turns.onnx", NULL);
    const int64_t turns = 6;
    for (int run = 0; run < 4; run++) {
        const struct ifd_str in = x[run % 2];
        f.in[0] = tensor(IFD_S64, (struct ifd_shape){0}, &turns, sizeof(turns));
        f.in[1] = text(&in);
        f.in[2] = text(&y);
        REQUIRE_OK(model_file_run(&f), &f.err);
        const struct ifd_str u = *(const struct ifd_str *)f.out[0].data;
        const struct ifd_str v = *(const struct ifd_str *)f.out[1].data;
        REQUIRE(u.size == in.size + 9 && v.size == y.size + 9);
        EXPECT(memcmp(u.data, "b db db d", 9) == 0 && memcmp(u.data + 9, in.data, in.size) == 0);
        EXPECT(memcmp(v.data, "db db db yz", 11) == 0);
    }
    model_file_end(&f);
}

static enum ifd_code run_above(struct model_file *f)
{
    static const float threshold = 3.5F;
    f->in[0] = tensor(IFD_F32, SHAPE(3, 4), values, sizeof(values));
    f->in[1] = tensor(IFD_F32, (struct ifd_shape){0}, &threshold, sizeof(threshold));
    return model_file_run(f);
}

static enum ifd_code run_turns(struct model_file *f)
{
    static const float x[18] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, most = 20;
    f->in[0] = tensor(IFD_F32, SHAPE(6, 3), x, sizeof(x));
    f->in[1] = tensor(IFD_F32, (struct ifd_shape){0}, &most, sizeof(most));
    return model_file_run(f);
}

#define TURNS IFD_SOURCE_DIR "/tests/conformance/onnx/turns_in_turns.onnx"

/* With room for two plans each turn releases one that others still read. */
static void turns_give_the_same_with_room_for_two_plans(void)
{
    struct model_file all, two;
    model_file_begin(&all, TURNS, NULL);
    model_file_begin(&two, TURNS, &(struct model_file_options){.model = {.shape_bytes = 450000}});
    for (int run = 0; run < 2; run++) {
        REQUIRE_OK(run_turns(&all), &all.err);
        REQUIRE_OK(run_turns(&two), &two.err);
        for (uint32_t i = 0; i < all.info->output_count; i++) {
            REQUIRE(all.out[i].bytes > 0 && all.out[i].bytes == two.out[i].bytes);
            EXPECT(memcmp(all.out[i].data, two.out[i].data, all.out[i].bytes) == 0);
        }
    }
    model_file_end(&two);
    model_file_end(&all);
}

static enum ifd_code run_unsaid(struct model_file *f)
{
    static const int64_t two[2] = {2, 6};
    f->in[0] = tensor(IFD_F32, SHAPE(3, 4), values, sizeof(values));
    f->in[1] = tensor(IFD_S64, SHAPE(2), two, sizeof(two));
    return model_file_run(f);
}

static void every_failed_allocation_is_reported(void)
{
    model_file_torture(&(struct model_file_torture){
        .path = ONNX "unsaid.onnx", .run = run_unsaid, .rounds_at_least = 20});
    model_file_torture(&(struct model_file_torture){
        .path = ONNX "found.onnx", .run = run_above, .rounds_at_least = 20});
    model_file_torture(&(struct model_file_torture){
        .path = TFLITE "good_found.tflite", .run = run_above, .rounds_at_least = 20});
    model_file_torture(
        &(struct model_file_torture){.path = TURNS, .run = run_turns, .rounds_at_least = 20});
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(results_have_the_size_that_data_decides),
        T(what_is_read_late_takes_no_more_than_its_own_memory),
        T(outputs_that_the_file_does_not_describe_are_served),
        T(sizes_beyond_the_limit_are_refused_and_the_next_are_served),
        T(computed_limits_decide_the_size_of_a_range),
        T(an_operator_of_several_nodes_asks_for_its_shape),
        T(different_elements_are_found),
        T(branches_find_as_much_as_the_data_has),
        T(loops_find_as_much_as_the_data_has),
        T(handles_name_the_same_table_behind_a_cut),
        T(what_a_call_once_finds_answers_no_later_question),
        T(a_table_holds_what_the_branch_filled_it_with),
        T(requests_hand_over_sizes),
        T(a_node_may_ask_for_computed_numbers_twice),
        T(loops_whose_values_grow_run),
        T(loops_append_to_sequences),
        T(a_loop_of_no_turns_gives_what_it_began_with),
        T(parts_end_when_nobody_waits_for_them),
        T(texts_go_from_turn_to_turn),
        T(turns_of_a_loop_take_as_much_as_the_limit),
        T(turns_give_the_same_with_room_for_two_plans),
        T(positions_in_sequences_may_be_data),
        T(texts_of_a_turn_are_there_in_the_next),
        T(every_failed_allocation_is_reported),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

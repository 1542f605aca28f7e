/* Branches and loops: graphs that a node names, with plans of their own. */
#include "tests/support/model.h"

#include <string.h>

struct fixture {
    struct graph_model m;
    float x[2];
    int32_t n;
    bool flag;
    struct ifd_tensor input[2], out[3];
    uint64_t deadline_ns;
    int asked, answered; /* is_over is asked, and says so when it was asked so often; 0: never */
    struct ifd_err err;
};

static void begin(struct fixture *f)
{
    const struct ifd_engine_options options = test_engine_options(true);
    *f = (struct fixture){.x = {3, -5}};
    graph_model_begin(&f->m, &options, 1);
}

static void end(struct fixture *f)
{
    graph_model_end(&f->m);
}

static struct ifd_tensor tensor(enum ifd_dtype dtype, struct ifd_shape shape, void *data,
                                size_t bytes)
{
    return (struct ifd_tensor){
        .dtype = dtype, .shape = shape, .data = data, .bytes = bytes, .capacity = bytes};
}

static bool is_over(const void *context)
{
    struct fixture *f = (struct fixture *)(uintptr_t)context;
    return ++f->asked == f->answered;
}

/* Two requests in one run of begin_constant_loop. */
static enum ifd_code run_two(struct fixture *f, uint64_t first_ns, uint64_t second_ns)
{
    struct ifd_tensor out[2] = {{0}};
    const struct ifd_tensor x = tensor(IFD_F32, SHAPE(1, 2), f->x, sizeof(f->x));
    const struct ifd_io io[2] = {
        {.input = &x, .output = &out[0], .batch = 1, .deadline_ns = first_ns},
        {.input = &x, .output = &out[1], .batch = 1, .deadline_ns = second_ns},
    };
    const enum ifd_code code = ifd_instance_run(f->m.instance, io, 2, &f->err);
    for (int k = 0; k < 2 && code == IFD_OK; k++) {
        const float *y = out[k].data;
        EXPECT_CLOSE(y[0], f->x[0] + 3, 0);
        EXPECT_CLOSE(y[1], f->x[1] + 3, 0);
    }
    return code;
}

/* Inputs: flag or n, then x. */
static enum ifd_code run(struct fixture *f, bool has_flag)
{
    f->input[0] = has_flag ? tensor(IFD_BOOL, (struct ifd_shape){0}, &f->flag, sizeof(f->flag))
                           : tensor(IFD_S32, (struct ifd_shape){0}, &f->n, sizeof(f->n));
    f->input[1] = tensor(IFD_F32, SHAPE(2), f->x, sizeof(f->x));
    memset(f->out, 0, sizeof(f->out));
    const struct ifd_io io = {.input = f->input,
                              .output = f->out,
                              .batch = 1,
                              .deadline_ns = f->deadline_ns,
                              .is_over = is_over,
                              .is_over_context = f};
    return ifd_instance_run(f->m.instance, &io, 1, &f->err);
}

static float at(const struct fixture *f, int output, int i)
{
    return ((const float *)f->out[output].data)[i];
}

/* ---- graphs ---- */

static uint32_t scalar(struct ifd_graph *g, enum ifd_dtype dtype, const char *name)
{
    uint32_t value = 0;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_add_value(g, name, &(struct ifd_desc){.dtype = dtype}, &value, &err),
               &err);
    return value;
}

static uint32_t number(struct ifd_graph *g, int32_t n)
{
    const uint32_t value = scalar(g, IFD_S32, "number");
    struct ifd_err err = {0};
    REQUIRE_OK(
        ifd_graph_set_constant(
            g, value, (struct ifd_bytes){.data = (const uint8_t *)&n, .size = sizeof(n)}, 0, &err),
        &err);
    return value;
}

/* A node whose output is a scalar of dtype. */
static uint32_t node(struct ifd_graph *g, enum ifd_op op, uint32_t a, uint32_t b,
                     enum ifd_dtype dtype)
{
    const uint32_t output = scalar(g, dtype, "scalar");
    struct ifd_node *made = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_add_node(g, op, (const uint32_t[]){a, b}, 2, &output, 1, &made, &err),
               &err);
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, &err), &err);
    return output;
}

/* A graph that nodes of the model name. */
static struct ifd_graph *inner(struct fixture *f)
{
    struct ifd_graph *g = ifd_arena_take(&f->m.model->arena, sizeof(*g));
    REQUIRE(g != NULL);
    ifd_graph_init(g, &f->m.model->arena);
    g->next = f->m.model->graph.next;
    f->m.model->graph.next = g;
    return g;
}

static void set_io(struct ifd_graph *g, const uint32_t *input, uint32_t inputs,
                   const uint32_t *output, uint32_t outputs)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_set_io(g, input, inputs, output, outputs, &err), &err);
}

static enum ifd_code add(struct ifd_graph *g, enum ifd_op op, const void *attrs,
                         const uint32_t *input, uint32_t inputs, const uint32_t *output,
                         uint32_t outputs, struct ifd_err *err)
{
    struct ifd_node *made = NULL;
    REQUIRE_OK(ifd_graph_add_node(g, op, input, inputs, output, outputs, &made, err), err);
    memcpy((void *)(uintptr_t)made->attrs, attrs, ifd_op_def(op)->attrs_bytes);
    return ifd_graph_infer_node(g, g->node_count - 1, err);
}

/* y = op(x) */
static const struct ifd_graph *branch(struct fixture *f, enum ifd_op op)
{
    struct ifd_graph *g = inner(f);
    const uint32_t x = test_graph_f32(g, "x", SHAPE(2));
    const uint32_t y = op == IFD_OP_COUNT ? x : test_graph_op1(g, op, x, "y");
    set_io(g, &x, 1, &y, 1);
    return g;
}

/* y = flag ? then(x) : otherwise(x); z = |y| */
static void begin_cond(struct fixture *f, enum ifd_op then, enum ifd_op otherwise)
{
    begin(f);
    const struct ifd_cond_attrs attrs = {{branch(f, then), branch(f, otherwise)}};
    struct ifd_graph *g = &f->m.model->graph;
    const uint32_t input[] = {scalar(g, IFD_BOOL, "flag"), test_graph_f32(g, "x", SHAPE(2))};
    const uint32_t y = test_graph_f32(g, "y", SHAPE(2));
    REQUIRE_OK(add(g, IFD_OP_COND, &attrs, input, 2, &y, 1, &f->err), &f->err);
    const uint32_t z = test_graph_op1(g, IFD_OP_ABS, y, "z");
    set_io(g, input, 2, (const uint32_t[]){y, z}, 2);
    graph_model_plan(&f->m, 0);
}

/* i < n */
static const struct ifd_graph *condition(struct fixture *f)
{
    struct ifd_graph *g = inner(f);
    const uint32_t input[] = {scalar(g, IFD_S32, "i"), test_graph_f32(g, "a", SHAPE(2)),
                              test_graph_f32(g, "b", SHAPE(2)), scalar(g, IFD_S32, "n")};
    const uint32_t flag = node(g, IFD_OP_LESS, input[0], input[3], IFD_BOOL);
    set_io(g, input, 4, &flag, 1);
    return g;
}

/* i, a, b = i + step, b, a + b: Fibonacci's numbers, and values that change places */
static const struct ifd_graph *body(struct fixture *f, int32_t step)
{
    struct ifd_graph *g = inner(f);
    const uint32_t input[] = {scalar(g, IFD_S32, "i"), test_graph_f32(g, "a", SHAPE(2)),
                              test_graph_f32(g, "b", SHAPE(2)), scalar(g, IFD_S32, "n")};
    const uint32_t next = node(g, IFD_OP_ADD, input[0], number(g, step), IFD_S32);
    const uint32_t sum = test_graph_op2(g, IFD_OP_ADD, input[1], input[2], "sum");
    set_io(g, input, 4, (const uint32_t[]){next, input[2], sum}, 3);
    return g;
}

static void begin_loop(struct fixture *f, int32_t step)
{
    static const float ones[2] = {1, 1};
    begin(f);
    const struct ifd_loop_attrs attrs = {condition(f), body(f, step)};
    struct ifd_graph *g = &f->m.model->graph;
    const uint32_t n = scalar(g, IFD_S32, "n"), x = test_graph_f32(g, "x", SHAPE(2));
    const uint32_t input[] = {number(g, 0), x, test_graph_constant(g, "ones", SHAPE(2), ones), n};
    const uint32_t output[] = {scalar(g, IFD_S32, "turns"), test_graph_f32(g, "a", SHAPE(2)),
                               test_graph_f32(g, "b", SHAPE(2))};
    REQUIRE_OK(add(g, IFD_OP_LOOP, &attrs, input, 4, output, 3, &f->err), &f->err);
    set_io(g, (const uint32_t[]){n, x}, 2, output, 3);
    graph_model_plan(&f->m, 0);
}

/* y = x + a, of a loop that no input decides: requests share its runs. */
static void begin_constant_loop(struct fixture *f, int32_t step)
{
    static const float ones[2] = {1, 1};
    begin(f);
    const struct ifd_loop_attrs attrs = {condition(f), body(f, step)};
    struct ifd_graph *g = &f->m.model->graph;
    const uint32_t input[] = {number(g, 0), test_graph_constant(g, "a", SHAPE(2), ones),
                              test_graph_constant(g, "b", SHAPE(2), ones), number(g, 3)};
    const uint32_t output[] = {scalar(g, IFD_S32, "turns"), test_graph_f32(g, "a", SHAPE(2)),
                               test_graph_f32(g, "b", SHAPE(2))};
    REQUIRE_OK(add(g, IFD_OP_LOOP, &attrs, input, 4, output, 3, &f->err), &f->err);
    const uint32_t x = test_graph_f32(g, "x", SHAPE(1, 2));
    test_graph_io(g, x, test_graph_op2(g, IFD_OP_ADD, x, output[1], "y"));
    graph_model_plan(&f->m, 2);
}

/* ---- cases ---- */

static void a_condition_chooses_a_branch(void)
{
    struct fixture f;
    begin_cond(&f, IFD_OP_NEG, IFD_OP_ABS);
    for (int i = 0; i < 4; i++) {
        f.flag = i % 2 == 0;
        REQUIRE_OK(run(&f, true), &f.err);
        EXPECT_CLOSE(at(&f, 0, 0), f.flag ? -3 : 3, 0);
        EXPECT_CLOSE(at(&f, 0, 1), 5, 0);
        EXPECT_CLOSE(at(&f, 1, 0), 3, 0);
    }
    end(&f);
}

static void a_branch_may_be_empty(void)
{
    struct fixture f;
    begin_cond(&f, IFD_OP_NEG, IFD_OP_COUNT);
    REQUIRE_OK(run(&f, true), &f.err);
    EXPECT_CLOSE(at(&f, 0, 1), -5, 0);
    EXPECT_CLOSE(at(&f, 1, 1), 5, 0);
    end(&f);
}

static void a_loop_turns_as_often_as_its_condition_says(void)
{
    static const float fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13, 21};
    struct fixture f;
    begin_loop(&f, 1);
    for (f.n = 0; f.n < 8; f.n++) {
        f.x[0] = 0;
        REQUIRE_OK(run(&f, false), &f.err);
        EXPECT_INT(*(const int32_t *)f.out[0].data, f.n);
        EXPECT_CLOSE(at(&f, 1, 0), fibonacci[f.n], 0);
        EXPECT_CLOSE(at(&f, 2, 0), fibonacci[f.n + 1], 0);
    }
    end(&f);
}

static void a_loop_without_end_ends_at_the_deadline(void)
{
    struct fixture f;
    begin_loop(&f, 0);
    f.n = 1;
    f.deadline_ns = 1; /* long ago */
    EXPECT_CODE(run(&f, false), IFD_DEADLINE, &f.err);
    EXPECT_HAS(f.err.text, "a loop has made 0 turns when its time is over");
    f.n = 0;
    REQUIRE_OK(run(&f, false), &f.err);
    end(&f);
}

static void a_shared_loop_goes_on_while_one_request_has_time(void)
{
    static const uint64_t past = 1, future = UINT64_MAX;
    const uint64_t has_time[][2] = {{past, future}, {future, past}, {past, 0},
                                    {0, past},      {future, 0},    {0, 0}};
    struct fixture f;
    begin_constant_loop(&f, 1);
    for (size_t i = 0; i < sizeof(has_time) / sizeof(has_time[0]); i++) {
        REQUIRE_OK(run_two(&f, has_time[i][0], has_time[i][1]), &f.err);
    }
    EXPECT_CODE(run_two(&f, past, past + 1), IFD_DEADLINE, &f.err);
    end(&f);
}

static void a_loop_ends_when_nobody_waits_for_it(void)
{
    struct fixture f;
    begin_loop(&f, 0);
    f.n = 1;
    f.answered = 4;
    EXPECT_CODE(run(&f, false), IFD_CANCELLED, &f.err);
    EXPECT_HAS(f.err.text, "nobody waits for a loop, after 3 turns");
    f.n = 0;
    REQUIRE_OK(run(&f, false), &f.err);
    EXPECT_INT(f.asked, 4);
    EXPECT(ifd_model_info(f.m.model)->has_loops);
    end(&f);
}

static void graphs_that_do_not_fit_are_refused(void)
{
    struct fixture f;
    begin(&f);
    struct ifd_graph *g = &f.m.model->graph;
    const struct ifd_cond_attrs cond = {{branch(&f, IFD_OP_NEG), NULL}};
    const struct ifd_loop_attrs loop = {branch(&f, IFD_OP_NEG), branch(&f, IFD_OP_NEG)};
    const uint32_t flag = scalar(g, IFD_BOOL, "flag"), x = test_graph_f32(g, "x", SHAPE(2));
    const uint32_t wide = test_graph_f32(g, "wide", SHAPE(3));
    for (int i = 0; i < 4; i++) {
        const uint32_t y = test_graph_f32(g, "y", SHAPE(2));
        const uint32_t input[] = {i == 0 ? x : flag, i == 2 ? wide : x};
        static const char *const part[] = {"input 0 of type f32", "a graph of 0 inputs for 1",
                                           "its graph has f32 [2]", "a condition of f32 [2]"};
        const enum ifd_code code = i < 3 ? add(g, IFD_OP_COND, &cond, input, 2, &y, 1, &f.err)
                                         : add(g, IFD_OP_LOOP, &loop, &x, 1, &y, 1, &f.err);
        EXPECT_CODE(code, i == 0 ? IFD_UNSUPPORTED : IFD_INVALID, &f.err);
        EXPECT_HAS(f.err.text, part[i]);
        g->node_count = 0;
    }
    ifd_model_destroy(f.m.model);
    f.m.model = NULL;
    end(&f);
}

static void every_failed_allocation_is_reported(void)
{
    struct fixture f;
    long k = 0;
    bool failed = true;
    while (failed) {
        begin(&f);
        const struct ifd_cond_attrs attrs = {{branch(&f, IFD_OP_NEG), branch(&f, IFD_OP_ABS)}};
        struct ifd_graph *g = &f.m.model->graph;
        const uint32_t input[] = {scalar(g, IFD_BOOL, "flag"), test_graph_f32(g, "x", SHAPE(2))};
        const uint32_t y = test_graph_f32(g, "y", SHAPE(2));
        REQUIRE_OK(add(g, IFD_OP_COND, &attrs, input, 2, &y, 1, &f.err), &f.err);
        set_io(g, input, 2, &y, 1);
        fail_alloc_arm(&f.m.fail, ++k, false);
        enum ifd_code code = test_model_build(f.m.model, &f.err);
        if (code == IFD_OK) {
            code = ifd_instance_create(f.m.model, &(struct ifd_instance_options){0}, &f.m.instance,
                                       &f.err);
        }
        failed = f.m.fail.failed;
        EXPECT_CODE(code, failed ? IFD_NOMEM : IFD_OK, &f.err);
        end(&f);
    }
    EXPECT(k > 10);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_condition_chooses_a_branch),
        T(a_branch_may_be_empty),
        T(a_loop_turns_as_often_as_its_condition_says),
        T(a_loop_without_end_ends_at_the_deadline),
        T(a_shared_loop_goes_on_while_one_request_has_time),
        T(a_loop_ends_when_nobody_waits_for_it),
        T(graphs_that_do_not_fit_are_refused),
        T(every_failed_allocation_is_reported),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

#include "engine/plan/plan.h"
#include "backends/cpuref/cpuref.h"
#include "engine/backend/host.h"
#include "tests/support/fake_backend.h"
#include "tests/support/fake_device.h"
#include "tests/support/graph.h"

/* A graph, the backends Null, Fake, CpuRef, Dev, Dev2 in this order, and a plan. */
struct fixture {
    struct ifd_arena arena, keep, scratch;
    struct ifd_graph graph;
    struct ifd_registry registry;
    struct ifd_plan plan;
    struct ifd_err err;
};

#define FAKE   1
#define CPUREF 2
#define DEV    3
#define DEV2   4

static void setup(struct fixture *f)
{
    const struct ifd_backend *const backends[] = {ifd_backend_query(IFD_BACKEND_ABI), &fake_backend,
                                                  &ifd_backend_cpuref, &fake_device, &fake_device2};
    const struct ifd_registry_setup registry = {
        .alloc = ifd_alloc_system(), .backends = backends, .backend_count = 5};
    *f = (struct fixture){0};
    fake_device_state = (struct fake_device_state){0};
    fake_cost_ns = 1;
    ifd_arena_init(&f->arena, ifd_alloc_system(), 0);
    ifd_arena_init(&f->keep, ifd_alloc_system(), 0);
    ifd_arena_init(&f->scratch, ifd_alloc_system(), 0);
    ifd_graph_init(&f->graph, &f->arena);
    ifd_host_init(&f->registry.host, &(struct ifd_engine_options){.alloc = ifd_alloc_system()});
    REQUIRE_OK(ifd_registry_init(&f->registry, &registry, &f->err), &f->err);
}

static void teardown(struct fixture *f)
{
    ifd_registry_finish(&f->registry);
    ifd_arena_finish(&f->scratch);
    ifd_arena_finish(&f->keep);
    ifd_arena_finish(&f->arena);
}

static enum ifd_code plan(struct fixture *f, const uint32_t *preference, uint32_t count)
{
    const struct ifd_plan_options options = {.registry = &f->registry,
                                             .preference = preference,
                                             .preference_count = count,
                                             .max_threads = 1};
    return ifd_plan_partition(&f->graph, &options, &f->keep, &f->scratch, &f->plan, &f->err);
}

static void plan_on(struct fixture *f, const uint32_t *preference, uint32_t count)
{
    REQUIRE_OK(plan(f, preference, count), &f->err);
}

/* On these backends, the preferred one first. */
#define PLAN(f, ...)                                                                               \
    plan_on((f), (const uint32_t[]){__VA_ARGS__},                                                  \
            sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void set_outputs(struct fixture *f, uint32_t x, const uint32_t *output, uint32_t count)
{
    REQUIRE_OK(ifd_graph_set_io(&f->graph, &x, 1, output, count, &f->err), &f->err);
}

/* x → abs → exp → relu → y, and abs + relu → z: only CpuRef takes exp, which lies between two
 * partitions of Fake. */
static void diamond(struct fixture *f)
{
    const uint32_t x = test_graph_f32(&f->graph, "x", SHAPE(1, 4));
    const uint32_t abs = test_graph_op1(&f->graph, IFD_OP_ABS, x, "abs");
    const uint32_t exp = test_graph_op1(&f->graph, IFD_OP_EXP, abs, "exp");
    const uint32_t relu = test_graph_op1(&f->graph, IFD_OP_RELU, exp, "relu");
    const uint32_t sum = test_graph_op2(&f->graph, IFD_OP_ADD, abs, relu, "sum");
    set_outputs(f, x, (const uint32_t[]){relu, sum}, 2);
}

static void neighbours_of_one_backend_form_a_partition_without_cycles(void)
{
    struct fixture f;
    setup(&f);
    diamond(&f);
    PLAN(&f, 0, FAKE, CPUREF);
    REQUIRE(f.plan.partition_count == 3);
    EXPECT_INT(f.plan.partition[0].backend, FAKE);
    EXPECT_INT(f.plan.partition[0].node_count, 1);
    EXPECT_INT(f.plan.partition[1].backend, CPUREF);
    EXPECT_INT(f.plan.partition[2].backend, FAKE);
    EXPECT_INT(f.plan.partition[2].node_count, 2);
    teardown(&f);
}

static void independent_nodes_of_a_backend_are_gathered_across_others(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4));
    const uint32_t a = test_graph_op1(&f.graph, IFD_OP_ABS, x, "a");
    const uint32_t b = test_graph_op1(&f.graph, IFD_OP_EXP, x, "b");
    const uint32_t c = test_graph_op1(&f.graph, IFD_OP_RELU, a, "c");
    set_outputs(&f, x, (const uint32_t[]){b, c}, 2);
    PLAN(&f, 0, FAKE, CPUREF);
    REQUIRE(f.plan.partition_count == 2);
    EXPECT_INT(f.plan.partition[0].node_count, 2);
    EXPECT_INT(f.plan.order[0], 0);
    EXPECT_INT(f.plan.order[1], 2);
    EXPECT_INT(f.plan.order[2], 1);
    teardown(&f);
}

static void per_node_backends_get_one_partition_per_node(void)
{
    struct fixture f;
    setup(&f);
    diamond(&f);
    PLAN(&f, CPUREF);
    EXPECT_INT(f.plan.partition_count, 4);
    teardown(&f);
}

static void values_have_the_roles_that_their_users_give_them(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4));
    const uint32_t c = test_graph_constant(&f.graph, "c", SHAPE(4), (const float[]){1, 2, 3, 4});
    const uint32_t sum = test_graph_op2(&f.graph, IFD_OP_ADD, x, c, "sum");
    const uint32_t both = test_graph_op1(&f.graph, IFD_OP_ABS, sum, "both");
    const uint32_t y = test_graph_op1(&f.graph, IFD_OP_RELU, both, "y");
    test_graph_op1(&f.graph, IFD_OP_TANH, both, "unread");
    set_outputs(&f, x, (const uint32_t[]){y, both}, 2);
    PLAN(&f, 0, FAKE, CPUREF);
    REQUIRE(f.plan.partition_count == 1);
    const struct ifd_partition_view *view = &f.plan.view[0];
    const enum ifd_value_role wanted[] = {IFD_VALUE_INPUT,  IFD_VALUE_CONSTANT, IFD_VALUE_INTERNAL,
                                          IFD_VALUE_OUTPUT, IFD_VALUE_OUTPUT,   IFD_VALUE_OUTPUT};
    REQUIRE(view->value_count == 6);
    for (uint32_t v = 0; v < 6; v++) {
        EXPECT_INT(view->value[v].role, wanted[v]);
    }
    EXPECT(view->value[1].data.size == 16);
    EXPECT_INT(view->input_count, 1);
    EXPECT_INT(view->output_count, 3);
    EXPECT_INT(view->node[0].input_value[1], 1);
    EXPECT_TEXT(view->node[3].view.name, "unread");
    teardown(&f);
}

/* ---- devices with memory of their own ---- */

struct entry {
    enum ifd_plan_task task;
    uint32_t backend, nodes;
    const char *input;
    size_t bytes; /* of a copy */
};

static void expect_entries(const struct fixture *f, const struct entry *want, uint32_t count)
{
    REQUIRE(f->plan.partition_count == count);
    for (uint32_t p = 0; p < count; p++) {
        const struct ifd_plan_partition *got = &f->plan.partition[p];
        EXPECT_INT(got->task, want[p].task);
        EXPECT_INT(got->backend, want[p].backend);
        EXPECT_INT(got->node_count, want[p].nodes);
        const struct ifd_plan_value *input = &f->plan.value[got->input[0]];
        EXPECT_TEXT(input->name, want[p].input);
        if (got->task != IFD_PLAN_RUN) {
            const struct ifd_plan_value *output = &f->plan.value[got->output[0]];
            EXPECT_TEXT(output->name, input->name);
            EXPECT_INT(output->bytes, want[p].bytes);
            EXPECT_INT(input->memory, got->task == IFD_PLAN_READ ? got->memory : 0);
            EXPECT_INT(output->memory, got->task == IFD_PLAN_READ ? 0 : got->memory);
        }
    }
}

/* Arm NN's example: one backend takes layers 1, 2, 4 and 5, another one layer 3. */
static void five_layers(struct fixture *f)
{
    static const enum ifd_op op[] = {IFD_OP_ABS, IFD_OP_RELU, IFD_OP_TANH, IFD_OP_ABS, IFD_OP_RELU};
    static const char *const name[] = {"l1", "l2", "l3", "l4", "l5"};
    const uint32_t x = test_graph_f32(&f->graph, "x", SHAPE(1, 100));
    uint32_t at = x;
    for (int i = 0; i < 5; i++) {
        at = test_graph_op1(&f->graph, op[i], at, name[i]);
    }
    test_graph_io(&f->graph, x, at);
}

static void a_layer_on_a_device_makes_three_partitions_and_two_copies(void)
{
    struct fixture f;
    setup(&f);
    five_layers(&f);
    fake_device_state.cost_ns[0][IFD_OP_TANH] = 1;
    PLAN(&f, DEV, FAKE);
    expect_entries(&f,
                   (const struct entry[]){{IFD_PLAN_RUN, FAKE, 2, "x", 0},
                                          {IFD_PLAN_WRITE, DEV, 0, "l2", 400},
                                          {IFD_PLAN_RUN, DEV, 1, "l2", 0},
                                          {IFD_PLAN_READ, DEV, 0, "l3", 400},
                                          {IFD_PLAN_RUN, FAKE, 2, "l3", 0}},
                   5);
    EXPECT_INT(f.plan.partition[4].wait, 3);
    EXPECT_INT(f.plan.partition[2].wait, IFD_NO_PARTITION);
    teardown(&f);
}

static void layers_on_a_device_also_move_what_goes_in_and_out(void)
{
    struct fixture f;
    setup(&f);
    five_layers(&f);
    fake_device_takes_all(1);
    fake_device_state.cost_ns[0][IFD_OP_TANH] = 0;
    PLAN(&f, DEV, CPUREF);
    expect_entries(&f,
                   (const struct entry[]){{IFD_PLAN_WRITE, DEV, 0, "x", 400},
                                          {IFD_PLAN_RUN, DEV, 2, "x", 0},
                                          {IFD_PLAN_READ, DEV, 0, "l2", 400},
                                          {IFD_PLAN_RUN, CPUREF, 1, "l2", 0},
                                          {IFD_PLAN_WRITE, DEV, 0, "l3", 400},
                                          {IFD_PLAN_RUN, DEV, 2, "l3", 0},
                                          {IFD_PLAN_READ, DEV, 0, "l5", 400}},
                   7);
    teardown(&f);
}

/* abs on Dev is read on Dev2, twice, and by CpuRef. */
static void a_value_crosses_once_to_each_memory(void)
{
    struct fixture f;
    setup(&f);
    fake_device_state.cost_ns[0][IFD_OP_ABS] = 1;
    fake_device_state.cost_ns[1][IFD_OP_RELU] = fake_device_state.cost_ns[1][IFD_OP_ADD] = 1;
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4));
    const uint32_t abs = test_graph_op1(&f.graph, IFD_OP_ABS, x, "abs");
    const uint32_t relu = test_graph_op1(&f.graph, IFD_OP_RELU, abs, "relu");
    const uint32_t sum = test_graph_op2(&f.graph, IFD_OP_ADD, abs, relu, "sum");
    const uint32_t exp = test_graph_op1(&f.graph, IFD_OP_EXP, abs, "exp");
    set_outputs(&f, x, (const uint32_t[]){sum, exp, abs}, 3);
    PLAN(&f, DEV, DEV2, CPUREF);
    expect_entries(&f,
                   (const struct entry[]){{IFD_PLAN_WRITE, DEV, 0, "x", 16},
                                          {IFD_PLAN_RUN, DEV, 1, "x", 0},
                                          {IFD_PLAN_READ, DEV, 0, "abs", 16},
                                          {IFD_PLAN_WRITE, DEV2, 0, "abs", 16},
                                          {IFD_PLAN_RUN, DEV2, 2, "abs", 0},
                                          {IFD_PLAN_READ, DEV2, 0, "sum", 16},
                                          {IFD_PLAN_RUN, CPUREF, 1, "abs", 0}},
                   7);
    EXPECT_INT(f.plan.partition[3].wait, 2);
    EXPECT_INT(f.plan.partition[6].wait, IFD_NO_PARTITION); /* 3 has waited */
    EXPECT_INT(f.plan.device_count, 2);
    teardown(&f);
}

static void a_node_that_no_backend_takes_is_named_with_every_reason(void)
{
    struct fixture f;
    setup(&f);
    diamond(&f);
    f.graph.node[1].source_index = 17;
    f.graph.node[1].source_name = "EXP";
    EXPECT_CODE(plan(&f, (const uint32_t[]){0, FAKE}, 2), IFD_UNSUPPORTED, &f.err);
    EXPECT_HAS(f.err.text, "operator exp (EXP), node 17, output \"exp\"");
    EXPECT_HAS(f.err.text, "Null: computes nothing");
    EXPECT_HAS(f.err.text, "Fake: does not know exp");
    teardown(&f);
}

static void a_backend_that_is_not_available_is_named_with_its_reason(void)
{
    struct fixture f;
    setup(&f);
    diamond(&f);
    f.registry.slot[FAKE].state = IFD_DEVICE_ABSENT;
    ifd_fail(&f.registry.slot[FAKE].reason, IFD_UNAVAILABLE, "no such device");
    EXPECT_CODE(plan(&f, (const uint32_t[]){FAKE}, 1), IFD_UNSUPPORTED, &f.err);
    EXPECT_HAS(f.err.text, "node -1, output \"abs\"; Fake: no such device");
    f.registry.slot[FAKE].state = IFD_DEVICE_OPEN; /* it is open, and closed at the end */
    teardown(&f);
}

/* ---- memory ---- */

static void lay_out(struct fixture *f, bool can_alias)
{
    struct ifd_partition_info info[8] = {0};
    REQUIRE(f->plan.partition_count <= 8);
    for (uint32_t p = 0; p < f->plan.partition_count; p++) {
        info[p].can_alias = can_alias;
    }
    REQUIRE_OK(ifd_plan_memory(&f->plan, info, SIZE_MAX, ifd_alloc_system(), &f->err), &f->err);
}

static const struct ifd_plan_value *find(const struct fixture *f, const char *name)
{
    for (uint32_t v = 0; v < f->plan.value_count; v++) {
        if (f->plan.value[v].name[0] == name[0] && f->plan.value[v].name[1] == name[1]) {
            return &f->plan.value[v];
        }
    }
    REQUIRE(false);
    return NULL;
}

/* x → aa → bb → cc → y, each one node of CpuRef. */
static void chain(struct fixture *f)
{
    const uint32_t x = test_graph_f32(&f->graph, "x", SHAPE(1, 100));
    const uint32_t a = test_graph_op1(&f->graph, IFD_OP_ABS, x, "aa");
    const uint32_t b = test_graph_op1(&f->graph, IFD_OP_NEG, a, "bb");
    const uint32_t c = test_graph_op1(&f->graph, IFD_OP_ABS, b, "cc");
    test_graph_io(&f->graph, x, test_graph_op1(&f->graph, IFD_OP_NEG, c, "y"));
    PLAN(f, CPUREF);
}

static void partitions_that_alias_compute_in_place(void)
{
    struct fixture f;
    setup(&f);
    chain(&f);
    lay_out(&f, true);
    EXPECT_INT(find(&f, "bb")->buffer, find(&f, "aa")->buffer);
    EXPECT_INT(find(&f, "cc")->buffer, find(&f, "aa")->buffer);
    EXPECT_INT(find(&f, "y")->buffer, find(&f, "aa")->buffer);
    EXPECT(find(&f, "x")->buffer != find(&f, "aa")->buffer);
    EXPECT_INT(f.plan.arena_bytes, 2 * (448 + IFD_TENSOR_PAD));
    teardown(&f);
}

static void without_alias_two_buffers_take_turns(void)
{
    struct fixture f;
    setup(&f);
    chain(&f);
    lay_out(&f, false);
    EXPECT(find(&f, "bb")->offset != find(&f, "aa")->offset);
    EXPECT_INT(f.plan.arena_bytes, 2 * (448 + IFD_TENSOR_PAD));
    teardown(&f);
}

/* A part of a model that data divides hands such inputs on. */
static void inputs_that_nobody_reads_take_no_room(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4));
    const uint32_t unread = test_graph_f32(&f.graph, "unread", SHAPE(1, 4000));
    const uint32_t output = test_graph_f32(&f.graph, "handed on", SHAPE(1, 8));
    const uint32_t y = test_graph_op1(&f.graph, IFD_OP_ABS, x, "y");
    REQUIRE_OK(ifd_graph_set_io(&f.graph, (const uint32_t[]){x, unread, output}, 3,
                                (const uint32_t[]){y, output}, 2, &f.err),
               &f.err);
    PLAN(&f, CPUREF);
    lay_out(&f, false);
    EXPECT_INT(find(&f, "unread")->bytes, 0);
    EXPECT_INT(find(&f, "handed on")->bytes, 32);
    EXPECT(f.plan.arena_bytes < 4000 * sizeof(float));
    teardown(&f);
}

/* x → abs, relu, tanh of Dev → exp of CpuRef → abs, relu of Dev → y, and what it costs. */
static void cut_in_two(struct fixture *f, uint32_t dev_ns, uint32_t fake_ns, uint64_t copy_ns)
{
    fake_device_takes_all(dev_ns);
    fake_cost_ns = fake_ns;
    fake_device_state.transfer_ns = copy_ns;
    const uint32_t x = test_graph_f32(&f->graph, "x", SHAPE(1, 4));
    uint32_t at = test_graph_op1(&f->graph, IFD_OP_ABS, x, "l1");
    at = test_graph_op1(&f->graph, IFD_OP_RELU, at, "l2");
    at = test_graph_op1(&f->graph, IFD_OP_TANH, at, "l3");
    at = test_graph_op1(&f->graph, IFD_OP_EXP, at, "l4");
    at = test_graph_op1(&f->graph, IFD_OP_ABS, at, "l5");
    test_graph_io(&f->graph, x, test_graph_op1(&f->graph, IFD_OP_RELU, at, "l6"));
    PLAN(f, DEV, FAKE, CPUREF);
}

static void an_operator_between_cheap_neighbours_costs_no_copies(void)
{
    struct fixture f;
    setup(&f);
    cut_in_two(&f, 10, 20, 100); /* 5 nodes save 50, their 4 copies cost 400 */
    expect_entries(&f,
                   (const struct entry[]){{IFD_PLAN_RUN, FAKE, 3, "x", 0},
                                          {IFD_PLAN_RUN, CPUREF, 1, "l3", 0},
                                          {IFD_PLAN_RUN, FAKE, 2, "l4", 0}},
                   3);
    EXPECT_INT(f.plan.unworthy_nodes, 5);
    teardown(&f);
}

static void neighbours_that_save_more_than_their_copies_stay(void)
{
    struct fixture f;
    setup(&f);
    cut_in_two(&f, 10, 200, 100); /* 3 nodes save 570, 2 save 380; 2 copies each cost 200 */
    EXPECT_INT(f.plan.partition_count, 7);
    EXPECT_INT(f.plan.unworthy_nodes, 0);
    teardown(&f);
}

/* The preference is the user's: only copies are weighed, not the device. */
static void a_slow_device_keeps_what_takes_longer_than_copies(void)
{
    struct fixture f;
    setup(&f);
    cut_in_two(&f, 1000, 500, 100); /* on Fake 1500 and 1000, for copies of 200 each */
    EXPECT_INT(f.plan.unworthy_nodes, 0);
    teardown(&f);
}

static void each_partition_is_weighed_by_itself(void)
{
    struct fixture f;
    setup(&f);
    cut_in_two(&f, 10, 90, 100); /* 3 nodes save 240, 2 save 160 */
    expect_entries(&f,
                   (const struct entry[]){{IFD_PLAN_WRITE, DEV, 0, "x", 16},
                                          {IFD_PLAN_RUN, DEV, 3, "x", 0},
                                          {IFD_PLAN_READ, DEV, 0, "l3", 16},
                                          {IFD_PLAN_RUN, CPUREF, 1, "l3", 0},
                                          {IFD_PLAN_RUN, FAKE, 2, "l4", 0}},
                   5);
    EXPECT_INT(f.plan.unworthy_nodes, 2);
    teardown(&f);
}

static void costs_that_are_equal_leave_the_preference(void)
{
    struct fixture f;
    setup(&f);
    cut_in_two(&f, 10, 110, 100); /* 2 nodes save what their copies cost */
    EXPECT_INT(f.plan.unworthy_nodes, 0);
    teardown(&f);
}

/* Two nodes read x, which crosses once: three nodes for 240 more would spare copies of 200. */
static void a_value_that_two_nodes_read_crosses_once(void)
{
    struct fixture f;
    setup(&f);
    fake_device_takes_all(10);
    fake_device_state.transfer_ns = 100;
    fake_cost_ns = 90;
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4));
    const uint32_t a = test_graph_op1(&f.graph, IFD_OP_ABS, x, "a");
    const uint32_t b = test_graph_op1(&f.graph, IFD_OP_RELU, x, "b");
    const uint32_t c = test_graph_op2(&f.graph, IFD_OP_ADD, a, b, "c");
    test_graph_io(&f.graph, x, test_graph_op1(&f.graph, IFD_OP_EXP, c, "y"));
    PLAN(&f, DEV, FAKE, CPUREF);
    EXPECT_INT(f.plan.unworthy_nodes, 0);
    teardown(&f);
}

static void a_node_that_no_other_backend_takes_stays(void)
{
    struct fixture f;
    setup(&f);
    five_layers(&f);
    fake_device_state.cost_ns[0][IFD_OP_TANH] = 1;
    fake_device_state.cost_ns[1][IFD_OP_ABS] = fake_device_state.cost_ns[1][IFD_OP_RELU] = 1;
    fake_device_state.transfer_ns = 1000000;
    PLAN(&f, DEV, DEV2);
    EXPECT_INT(f.plan.unworthy_nodes, 0);
    EXPECT_INT(f.plan.device_count, 2);
    teardown(&f);
}

/* A value that goes around the operator in the middle crosses too if only one side moves. */
static void a_value_that_passes_the_operator_by_counts(void)
{
    struct fixture f;
    setup(&f);
    fake_device_takes_all(10);
    fake_device_state.transfer_ns = 100;
    fake_cost_ns = 150;
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4));
    const uint32_t a = test_graph_op1(&f.graph, IFD_OP_ABS, x, "a");
    const uint32_t b = test_graph_op1(&f.graph, IFD_OP_EXP, a, "b");
    const uint32_t c = test_graph_op2(&f.graph, IFD_OP_ADD, a, b, "c");
    test_graph_io(&f.graph, x, c);
    PLAN(&f, DEV, FAKE, CPUREF);
    /* a saves 140 and would spare one copy; c saves 140 and spares two; then a spares two, too. */
    expect_entries(&f,
                   (const struct entry[]){{IFD_PLAN_RUN, FAKE, 1, "x", 0},
                                          {IFD_PLAN_RUN, CPUREF, 1, "a", 0},
                                          {IFD_PLAN_RUN, FAKE, 1, "a", 0}},
                   3);
    teardown(&f);
}

static void a_model_that_a_device_computes_alone_stays_there(void)
{
    struct fixture f;
    setup(&f);
    five_layers(&f);
    fake_device_takes_all(1000);
    fake_device_state.transfer_ns = 1000000;
    PLAN(&f, DEV, FAKE, CPUREF);
    expect_entries(&f,
                   (const struct entry[]){{IFD_PLAN_WRITE, DEV, 0, "x", 400},
                                          {IFD_PLAN_RUN, DEV, 5, "x", 0},
                                          {IFD_PLAN_READ, DEV, 0, "l5", 400}},
                   3);
    teardown(&f);
}

/* What is in another memory takes no room: x, l2 and l5 on the host, two values and l3 on Dev. */
static void each_memory_has_an_arena(void)
{
    struct fixture f;
    setup(&f);
    five_layers(&f);
    fake_device_state.cost_ns[0][IFD_OP_TANH] = 1;
    PLAN(&f, DEV, FAKE);
    struct ifd_partition_info info[8] = {0};
    info[2].scratch_bytes = 4096;
    REQUIRE_OK(ifd_plan_memory(&f.plan, info, SIZE_MAX, ifd_alloc_system(), &f.err), &f.err);
    EXPECT_INT(f.plan.device[0].arena_bytes, 2 * (448 + IFD_TENSOR_PAD) + 4096 + IFD_TENSOR_PAD);
    EXPECT_INT(f.plan.arena_bytes, 2 * (448 + IFD_TENSOR_PAD));
    EXPECT_CODE(ifd_plan_memory(&f.plan, info, 1100, ifd_alloc_system(), &f.err), IFD_TOO_LARGE,
                &f.err);
    teardown(&f);
}

/* aa stays on Dev while CpuRef computes bb: it takes no room on the host meanwhile. */
static void what_waits_on_a_device_takes_no_room_on_the_host(void)
{
    struct fixture f;
    struct ifd_partition_info info[8] = {0};
    setup(&f);
    fake_device_takes_all(1);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 100));
    const uint32_t a = test_graph_op1(&f.graph, IFD_OP_ABS, x, "aa");
    const uint32_t b = test_graph_op1(&f.graph, IFD_OP_EXP, a, "bb");
    test_graph_io(&f.graph, x, test_graph_op2(&f.graph, IFD_OP_ADD, a, b, "y"));
    PLAN(&f, DEV, CPUREF);
    REQUIRE(f.plan.partition_count == 7);
    REQUIRE_OK(ifd_plan_memory(&f.plan, info, SIZE_MAX, ifd_alloc_system(), &f.err), &f.err);
    EXPECT_INT(f.plan.arena_bytes, 2 * (448 + IFD_TENSOR_PAD));
    EXPECT_INT(f.plan.device[0].arena_bytes, 3 * (448 + IFD_TENSOR_PAD));
    teardown(&f);
}

static void values_read_later_and_outputs_are_not_overwritten(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4));
    const uint32_t a = test_graph_op1(&f.graph, IFD_OP_ABS, x, "aa");
    const uint32_t b = test_graph_op1(&f.graph, IFD_OP_NEG, a, "bb");
    const uint32_t c = test_graph_op1(&f.graph, IFD_OP_RELU, b, "cc");
    const uint32_t d = test_graph_op2(&f.graph, IFD_OP_ADD, a, c, "dd");
    set_outputs(&f, x, (const uint32_t[]){b, d}, 2);
    PLAN(&f, CPUREF);
    lay_out(&f, true);
    EXPECT(find(&f, "bb")->buffer != find(&f, "aa")->buffer);
    EXPECT(find(&f, "cc")->buffer != find(&f, "bb")->buffer);
    EXPECT_INT(find(&f, "dd")->buffer, find(&f, "aa")->buffer);
    teardown(&f);
}

/* Its partition writes it: it must not share memory with what that partition reads. */
static void a_value_that_nobody_reads_lives_in_its_partition(void)
{
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4));
    const uint32_t a = test_graph_op1(&f.graph, IFD_OP_ABS, x, "aa");
    const uint32_t b = test_graph_op1(&f.graph, IFD_OP_NEG, a, "bb");
    test_graph_op1(&f.graph, IFD_OP_EXP, b, "unread");
    test_graph_io(&f.graph, x, test_graph_op1(&f.graph, IFD_OP_NEG, b, "y"));
    PLAN(&f, CPUREF);
    lay_out(&f, false);
    EXPECT_INT(find(&f, "un")->first, 2);
    EXPECT_INT(find(&f, "un")->last, 2);
    EXPECT(find(&f, "un")->offset != find(&f, "bb")->offset);
    teardown(&f);
}

/* The list of values has exactly the room that it needs if no output is made by a node. */
static void a_file_may_name_what_a_node_makes_before_the_inputs(void)
{
    struct fixture f;
    struct ifd_node *node = NULL;
    setup(&f);
    const uint32_t made = test_graph_f32(&f.graph, "made", SHAPE(1, 4));
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4));
    REQUIRE_OK(ifd_graph_add_node(&f.graph, IFD_OP_ABS, &x, 1, &made, 1, &node, &f.err), &f.err);
    test_graph_io(&f.graph, x, x);
    PLAN(&f, 0, FAKE, CPUREF);
    REQUIRE(f.plan.value_count == 3);
    EXPECT_INT(f.plan.input[0], 0);
    EXPECT_INT(f.plan.output[0].kind, IFD_PLAN_INPUT);
    EXPECT_INT(f.plan.output[0].value, 2);
    EXPECT_TEXT(f.plan.value[1].name, "made");
    teardown(&f);
}

static void limit_of_the_arena_is_kept(void)
{
    struct fixture f;
    struct ifd_partition_info info[8] = {0};
    setup(&f);
    chain(&f);
    EXPECT_CODE(ifd_plan_memory(&f.plan, info, 500, ifd_alloc_system(), &f.err), IFD_TOO_LARGE,
                &f.err);
    EXPECT_HAS(f.err.text, "500");
    teardown(&f);
}

/* Refuses the request of at least 16 KiB before which left_until others came: arenas ask for no
 * smaller blocks, and with AddressSanitizer for each list by itself. */
struct scarce {
    struct ifd_alloc alloc;
    long left_until;
};

static void *scarce_acquire(void *context, size_t size, size_t align)
{
    struct scarce *scarce = context;
    const struct ifd_alloc *system = ifd_alloc_system();
    if (size >= 16384 && scarce->left_until-- == 0) {
        return NULL;
    }
    return system->acquire(system->context, size, align);
}

static void scarce_release(void *context, void *ptr, size_t size)
{
    (void)context;
    const struct ifd_alloc *system = ifd_alloc_system();
    system->release(system->context, ptr, size);
}

/* The graph is so large that each list takes a block by itself; the next one finds memory again. */
static void a_plan_without_memory_for_one_of_its_lists_fails(void)
{
    static const uint32_t backends[] = {FAKE, CPUREF}; /* one partition, one per node */
    struct fixture f;
    setup(&f);
    const uint32_t x = test_graph_f32(&f.graph, "x", SHAPE(1, 4));
    uint32_t y = x;
    for (int n = 0; n < 17000; n++) {
        y = test_graph_op1(&f.graph, IFD_OP_ABS, y, "y");
    }
    test_graph_io(&f.graph, x, y);
    for (int b = 0; b < 2; b++) {
        bool is_refused = true;
        for (long k = 0; is_refused; k++) {
            struct scarce scarce = {
                .alloc = {.context = &scarce, .acquire = scarce_acquire, .release = scarce_release},
                .left_until = k};
            ifd_arena_init(&f.keep, &scarce.alloc, 0);
            ifd_arena_init(&f.scratch, &scarce.alloc, 0);
            const enum ifd_code code = plan(&f, &backends[b], 1);
            is_refused = scarce.left_until < 0;
            EXPECT_CODE(code, is_refused ? IFD_NOMEM : IFD_OK, &f.err);
            ifd_arena_finish(&f.scratch);
            ifd_arena_finish(&f.keep);
        }
    }
    teardown(&f);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(neighbours_of_one_backend_form_a_partition_without_cycles),
        T(independent_nodes_of_a_backend_are_gathered_across_others),
        T(per_node_backends_get_one_partition_per_node),
        T(values_have_the_roles_that_their_users_give_them),
        T(a_layer_on_a_device_makes_three_partitions_and_two_copies),
        T(layers_on_a_device_also_move_what_goes_in_and_out),
        T(a_value_crosses_once_to_each_memory),
        T(an_operator_between_cheap_neighbours_costs_no_copies),
        T(neighbours_that_save_more_than_their_copies_stay),
        T(a_slow_device_keeps_what_takes_longer_than_copies),
        T(each_partition_is_weighed_by_itself),
        T(costs_that_are_equal_leave_the_preference),
        T(a_node_that_no_other_backend_takes_stays),
        T(a_value_that_passes_the_operator_by_counts),
        T(a_model_that_a_device_computes_alone_stays_there),
        T(a_value_that_two_nodes_read_crosses_once),
        T(each_memory_has_an_arena),
        T(what_waits_on_a_device_takes_no_room_on_the_host),
        T(a_node_that_no_backend_takes_is_named_with_every_reason),
        T(a_backend_that_is_not_available_is_named_with_its_reason),
        T(partitions_that_alias_compute_in_place),
        T(without_alias_two_buffers_take_turns),
        T(inputs_that_nobody_reads_take_no_room),
        T(values_read_later_and_outputs_are_not_overwritten),
        T(a_value_that_nobody_reads_lives_in_its_partition),
        T(a_file_may_name_what_a_node_makes_before_the_inputs),
        T(limit_of_the_arena_is_kept),
        T(a_plan_without_memory_for_one_of_its_lists_fails),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

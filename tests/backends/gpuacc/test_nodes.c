/* Nodes that no golden case has, beside the reference kernels: LSTM layers that begin with a state
 * or leave one, and f32 that becomes s16, rounded to even. */
#include "backends/cpuref/cpuref.h"
#include "backends/gpuacc/gpuacc.h"
#include "backends/lowering/requantize.h"
#include "engine/base/team.h"
#include "inferd/op_attrs.h"
#include "tests/backends/gpuacc/programs.h"
#include "tests/conformance/golden.h"
#include "tests/conformance/one_node.h"
#include "tests/support/test.h"

#include <string.h>

struct comparison {
    struct ifd_device *device, *reference;
    struct ifd_team *team;
    uint32_t taken, left; /* left to the reference for their scales */
};

static struct comparison open_both(void)
{
    struct comparison c = {.device = one_node_open(&ifd_backend_gpuacc),
                           .reference = one_node_open(&ifd_backend_cpuref)};
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_team_create(1, ifd_alloc_system(), &c.team, &err), &err);
    return c;
}

static void close_both(const struct comparison *c)
{
    print_programs(c->device);
    ifd_backend_gpuacc.close(c->device);
    ifd_backend_cpuref.close(c->reference);
    ifd_team_destroy(c->team);
}

/* Both nodes are the same. */
static void expect_same(struct comparison *c, struct one_node *got, struct one_node *want)
{
    struct ifd_err err = {0};
    REQUIRE(ifd_backend_gpuacc.cost(c->device, &got->node.view, &err) > 0);
    REQUIRE_OK(one_node_run(want, &ifd_backend_cpuref, c->reference, c->team, true, &err), &err);
    REQUIRE_OK(one_node_run(got, &ifd_backend_gpuacc, c->device, c->team, true, &err), &err);
    for (uint32_t i = 0; i < got->view.output_count; i++) {
        EXPECT(memcmp(got->output[i], want->output[i], want->output_bytes[i]) == 0);
    }
    c->taken++;
    one_node_finish(got);
    one_node_finish(want);
}

/* ---- LSTM ---- */

/* A golden case's layer, with a state. */
struct states {
    struct ifd_desc hidden, cell;
    int8_t hidden_data[1024];
    int16_t cell_data[1024];
};

static struct states states_of(const struct golden_case *golden)
{
    const bool is_time_major = ((const struct ifd_lstm_attrs *)golden->attrs)->time_major;
    static float cell_scale;
    static int32_t zero;
    struct states states = {.hidden = golden->output[0].desc, .cell = {.dtype = IFD_S16}};
    const struct ifd_shape *x = &golden->input[0].desc.shape;
    const struct ifd_shape *weights =
        &golden->input[IFD_LSTM_WEIGHTS(IFD_LSTM_FORGET_GATE)].desc.shape;
    const int64_t batch = x->dim[is_time_major ? 1 : 0];
    const int64_t width = golden->output[0].desc.shape.dim[2];
    states.hidden.shape = (struct ifd_shape){2, {batch, width}};
    states.cell.shape = (struct ifd_shape){2, {batch, weights->dim[0]}};
    cell_scale = 1.0f / 2048;
    states.cell.quant = (struct ifd_quant){.count = 1, .scale = &cell_scale, .zero_point = &zero};
    for (uint32_t i = 0; i < 1024; i++) {
        states.hidden_data[i] = (int8_t)(i * 2654435761u >> 13);
        states.cell_data[i] = (int16_t)((int16_t)(i * 2246822519u >> 11) / 4);
    }
    REQUIRE(batch * width <= 1024 && batch * weights->dim[0] <= 1024);
    return states;
}

static void build_lstm(const struct golden_case *golden, const struct states *states,
                       bool has_state, bool keeps_state, struct one_node *node)
{
    one_node_init(node, golden->name, golden->op, golden->attrs);
    for (uint32_t i = 0; i < IFD_LSTM_INPUTS; i++) {
        const struct golden_tensor *in = &golden->input[i];
        const bool is_there = i < golden->input_count && !in->is_absent;
        if (i == IFD_LSTM_STATE && has_state) {
            one_node_add_input(node, &states->hidden, states->hidden_data, false);
        } else if (i == IFD_LSTM_CELL && has_state) {
            one_node_add_input(node, &states->cell, states->cell_data, false);
        } else {
            one_node_add_input(node, is_there ? &in->desc : NULL, in->data, in->is_constant);
        }
    }
    one_node_add_output(node, &golden->output[0].desc);
    if (keeps_state) {
        one_node_add_output(node, &states->hidden);
        one_node_add_output(node, &states->cell);
    }
}

static void compare_lstm(struct golden_case *golden, void *context)
{
    static struct one_node got, want; /* large */
    struct comparison *c = context;
    const struct states states = states_of(golden);
    for (int ways = 1; ways < 4; ways++) {
        build_lstm(golden, &states, ways & 1, ways & 2, &got);
        if (ifd_low_has_odd_scale(&got.node.view) || ifd_low_wraps(&got.node.view)) {
            c->left++;
            one_node_finish(&got);
            continue;
        }
        build_lstm(golden, &states, ways & 1, ways & 2, &want);
        expect_same(c, &got, &want);
    }
}

static void states_are_read_and_kept(void)
{
    struct comparison c = open_both();
    const size_t cases = golden_for_each(IFD_SOURCE_DIR "/tests/ops/lstm.json", compare_lstm, &c);
    EXPECT(c.taken > 0 && c.taken + c.left == 3 * cases);
    close_both(&c);
}

/* ---- quantizing ---- */

static void quantize_node(const float *x, float *scale, int32_t *zero, struct one_node *node)
{
    static const struct ifd_quantize_attrs attrs = {.rounds_even = true};
    const struct ifd_desc in = {.dtype = IFD_F32, .shape = {1, {64}}};
    const struct ifd_desc out = {.dtype = IFD_S16,
                                 .shape = {1, {64}},
                                 .quant = {.count = 1, .scale = scale, .zero_point = zero}};
    one_node_init(node, "quantize", IFD_OP_QUANTIZE, &attrs);
    one_node_add_input(node, &in, x, false);
    one_node_add_output(node, &out);
}

static void floats_become_words_rounded_to_even(void)
{
    static struct one_node got, want; /* large */
    struct comparison c = open_both();
    float x[64], scale = 0.5f;
    int32_t zero = 0;
    for (int i = 0; i < 64; i++) {
        x[i] = (float)(i - 32) / (i % 2 ? 4 : 0.001f); /* halves of a step, and beyond the type */
    }
    quantize_node(x, &scale, &zero, &got);
    quantize_node(x, &scale, &zero, &want);
    expect_same(&c, &got, &want);
    close_both(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(states_are_read_and_kept),
        T(floats_become_words_rounded_to_even),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

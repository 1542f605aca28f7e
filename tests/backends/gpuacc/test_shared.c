/* Two layers whose weights are the same numbers of the file, as matrices of two shapes. */
#include "backends/gpuacc/gpuacc.h"
#include "inferd/op_attrs.h"
#include "tests/support/model.h"

#include <stdio.h>

enum { WIDE = 8, NARROW = 4 };

static uint32_t dense(struct ifd_graph *g, uint32_t in, const struct ifd_bytes *weights,
                      int64_t outputs, int64_t inputs)
{
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    uint32_t value[2] = {in}, out = 0;
    const struct ifd_desc w = {.dtype = IFD_F32, .shape = SHAPE(outputs, inputs)};
    REQUIRE_OK(ifd_graph_add_value(g, "w", &w, &value[1], &err), &err);
    REQUIRE_OK(ifd_graph_set_constant(g, value[1], *weights, IFD_TENSOR_PAD, &err), &err);
    REQUIRE_OK(ifd_graph_add_value(g, "y", &(struct ifd_desc){.dtype = IFD_F32}, &out, &err), &err);
    REQUIRE_OK(ifd_graph_add_node(g, IFD_OP_FULLY_CONNECTED, value, 2, &out, 1, &node, &err), &err);
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, &err), &err);
    return out;
}

static void matrices_of_two_shapes_share_no_packed_weights(void)
{
    static _Alignas(64) float numbers[WIDE * NARROW + IFD_TENSOR_PAD / sizeof(float)];
    const struct ifd_bytes weights = {(const uint8_t *)numbers, WIDE * NARROW * sizeof(float)};
    float want[NARROW];
    for (size_t i = 0; i < WIDE * NARROW; i++) {
        numbers[i] = (float)(i % 7) - 3;
    }
    struct test_run run = test_run_open_device(
        &(struct test_run_options){.backend = &ifd_backend_gpuacc, .model = {.no_optimize = true}});
    struct ifd_graph *g = &run.model->graph;
    const uint32_t in = test_graph_f32(g, "in", SHAPE(1, NARROW));
    const uint32_t hidden = dense(g, in, &weights, WIDE, NARROW);
    test_graph_io(g, in, dense(g, hidden, &weights, NARROW, WIDE));
    test_run_plan(&run, 0);
    float *x = run.in.data;
    for (size_t i = 0; i < NARROW; i++) {
        x[i] = (float)i + 1;
    }
    test_graph_interpret(g, (const void *[]){run.in.data}, (void *[]){want});
    struct ifd_err err = {0};
    REQUIRE_OK(test_run_try(&run, run.batch, &err), &err);
    for (size_t i = 0; i < NARROW; i++) {
        const float y = ((const float *)run.out[0].data)[i];
        if (y != want[i]) {
            printf("element %zu: %g, expected %g\n", i, (double)y, (double)want[i]);
        }
        EXPECT(y == want[i]);
    }
    test_run_close(&run);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(matrices_of_two_shapes_share_no_packed_weights),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

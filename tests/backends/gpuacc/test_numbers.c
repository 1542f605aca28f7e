/* Operators of integers beside the reference kernel, with numbers that golden cases lack. */
#include "backends/cpuref/cpuref.h"
#include "backends/gpuacc/gpuacc.h"
#include "backends/gpuacc/lower.h"
#include "inferd/op_attrs.h"
#include "tests/backends/gpuacc/programs.h"
#include "tests/conformance/one_node.h"
#include "tests/support/test.h"

#include <string.h>

struct operands {
    const struct ifd_desc *desc[8];
    const void *data[8];
    bool is_constant[8];
    uint32_t count;
};

static void make(struct one_node *node, enum ifd_op op, const void *attrs,
                 const struct operands *in, const struct ifd_desc *out, uint32_t out_count)
{
    one_node_init(node, "node", op, attrs);
    for (uint32_t i = 0; i < in->count; i++) {
        one_node_add_input(node, in->desc[i], in->data[i], in->is_constant[i]);
    }
    for (uint32_t i = 0; i < out_count; i++) {
        one_node_add_output(node, &out[i]);
    }
}

static void expect_reference(enum ifd_op op, const void *attrs, const struct operands *in,
                             const struct ifd_desc *out, uint32_t out_count)
{
    static struct one_node node, reference; /* large */
    struct ifd_device *device = one_node_open(&ifd_backend_gpuacc);
    struct ifd_device *other = one_node_open(&ifd_backend_cpuref);
    struct ifd_team *team = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_team_create(1, ifd_alloc_system(), &team, &err), &err);
    make(&node, op, attrs, in, out, out_count);
    make(&reference, op, attrs, in, out, out_count);
    REQUIRE(ifd_gpu_driver_of(&node.node.view, &err) != NULL);
    REQUIRE_OK(one_node_run(&node, &ifd_backend_gpuacc, device, team, true, &err), &err);
    REQUIRE_OK(one_node_run(&reference, &ifd_backend_cpuref, other, team, true, &err), &err);
    for (uint32_t i = 0; i < out_count; i++) {
        REQUIRE(node.output_bytes[i] == reference.output_bytes[i]);
        EXPECT(memcmp(node.output[i], reference.output[i], node.output_bytes[i]) == 0);
    }
    one_node_finish(&node);
    one_node_finish(&reference);
    ifd_team_destroy(team);
    print_programs(device);
    ifd_backend_gpuacc.close(device);
    ifd_backend_cpuref.close(other);
}

/* ---- quotients of 16-bit numbers ---- */

#define EDGES 16
#define WORDS (EDGES * EDGES)

/* All pairs of edges and of some between them, with factors from nothing to what saturates. */
static void quotients_of_words_are_those_of_the_reference(void)
{
    static const int16_t edge[EDGES] = {
        0,   1,   -1,   2,    -2,   3,     INT16_MAX, INT16_MIN,
        127, 128, -129, 1000, -777, 16384, -16384,    INT16_MIN + 1};
    static const float scale[] = {1e-9f, 1e-5f, 0.0123f, 1, 37.5f, 3e4f, 1e9f, 1e20f};
    static const int32_t zero[] = {0};
    static int16_t a[WORDS], b[WORDS];
    for (size_t i = 0; i < WORDS; i++) {
        a[i] = edge[i / EDGES];
        b[i] = edge[i % EDGES];
    }
    for (size_t i = 0; i < sizeof(scale) / sizeof(scale[0]); i++) {
        const float one = 1;
        const struct ifd_binary_attrs attrs = {.activation = i % 2 ? IFD_ACT_NONE : IFD_ACT_RELU6};
        const struct ifd_desc in = {.dtype = IFD_S16,
                                    .shape = {1, {WORDS}},
                                    .quant = {.scale = &one, .zero_point = zero, .count = 1}};
        const struct ifd_desc out = {.dtype = IFD_S16,
                                     .shape = in.shape,
                                     .quant = {.scale = &scale[i], .zero_point = zero, .count = 1}};
        const struct operands operands = {{&in, &in}, {a, b}, {false, false}, 2};
        expect_reference(IFD_OP_DIV, &attrs, &operands, &out, 1);
    }
}

/* ---- logarithms of the softmax of 8-bit numbers ---- */

#define ROWS  37
#define DEPTH 53

/* Rows with one large number, equal ones, and any; scales from those that keep nothing to those
 * that saturate. */
static void log_softmax_of_bytes_is_that_of_the_reference(void)
{
    static const float scale[] = {1e-4f, 0.01f, 0.0625f, 0.37f, 8, 3e4f};
    static const int32_t in_zero[] = {5}, out_zero[] = {100};
    static uint8_t x[ROWS * DEPTH];
    const struct ifd_softmax_attrs attrs = {.beta = 1};
    for (size_t i = 0; i < sizeof(x); i++) {
        const size_t row = i / DEPTH;
        x[i] = (uint8_t)(row == 0   ? 7
                         : row == 1 ? i % DEPTH == 9 ? 255 : 0
                                    : (i * 2654435761u >> 11) % (row % 5 ? 256 : 9));
    }
    for (size_t i = 0; i < 36; i++) {
        const enum ifd_dtype dtype = i % 2 ? IFD_U8 : IFD_S8;
        const struct ifd_quant in_quant = {
            .scale = &scale[i % 6], .zero_point = in_zero, .count = 1};
        const struct ifd_quant out_quant = {
            .scale = &scale[i / 6], .zero_point = out_zero, .count = 1};
        const struct ifd_desc in = {.dtype = dtype, .shape = {2, {ROWS, DEPTH}}, .quant = in_quant};
        const struct ifd_desc out = {.dtype = dtype, .shape = in.shape, .quant = out_quant};
        const struct operands operands = {{&in}, {x}, {false}, 1};
        expect_reference(IFD_OP_LOG_SOFTMAX, &attrs, &operands, &out, 1);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(quotients_of_words_are_those_of_the_reference),
        T(log_softmax_of_bytes_is_that_of_the_reference),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Values that a split, a slice or a concatenation only moves stay in place if readers and writers
 * accept that: no copies are left, and results equal the reference kernels. test_networks.c splits
 * values of random networks in random ways. */
#include "backends/cpuacc/cpuacc.h"
#include "engine/ir/attrs.h"
#include "engine/ir/shape.h"
#include "inferd/op_attrs.h"
#include "tests/support/model.h"

#include <string.h>

enum { SIDE = 6, DEEP = 20, PARTS = 3 };

static struct ifd_node *node(struct ifd_graph *g, enum ifd_op op, const uint32_t *in,
                             uint32_t count, uint32_t *ret_out, uint32_t outputs)
{
    struct ifd_node *made = NULL;
    struct ifd_err err = {0};
    for (uint32_t i = 0; i < outputs; i++) {
        REQUIRE_OK(
            ifd_graph_add_value(g, "v", &(struct ifd_desc){.dtype = IFD_F32}, &ret_out[i], &err),
            &err);
    }
    REQUIRE_OK(ifd_graph_add_node(g, op, in, count, ret_out, outputs, &made, &err), &err);
    return made;
}

static void infer(struct ifd_graph *g)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, &err), &err);
}

static void set_ints(const struct ifd_node *made, const char *name, const int64_t *value,
                     size_t count)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_attrs_set_ints(ifd_op_def(made->op), (void *)(uintptr_t)made->attrs, name, value,
                                  count, &err),
               &err);
}

/* Three parts, as large as may be alike. */
static void split(struct ifd_graph *g, uint32_t in, int32_t axis, uint32_t part[PARTS])
{
    const int64_t all = g->value[in].desc.shape.dim[axis], third = all / PARTS;
    struct ifd_node *made = node(g, IFD_OP_SPLIT, &in, 1, part, PARTS);
    ((struct ifd_split_attrs *)(uintptr_t)made->attrs)->axis = axis;
    set_ints(made, "sizes", (const int64_t[]){third, third, all - 2 * third}, PARTS);
    infer(g);
}

static uint32_t concat(struct ifd_graph *g, const uint32_t part[PARTS], int32_t axis)
{
    uint32_t out = 0;
    struct ifd_node *made = node(g, IFD_OP_CONCAT, part, PARTS, &out, 1);
    ((struct ifd_axis_attrs *)(uintptr_t)made->attrs)->axis = axis;
    infer(g);
    return out;
}

/* A layer with weights of this shape, whose input is read by channels. */
static uint32_t product(struct ifd_graph *g, enum ifd_op op, uint32_t in, struct ifd_shape weights)
{
    float data[4096];
    struct test_random random = {.state = in};
    for (size_t i = 0; i < sizeof(data) / sizeof(data[0]); i++) {
        data[i] = test_random_f32(&random, -1, 1);
    }
    const uint32_t input[] = {in, test_graph_constant(g, "w", weights, data)};
    uint32_t out = 0;
    struct ifd_node *made = node(g, op, input, 2, &out, 1);
    if (op == IFD_OP_FULLY_CONNECTED) {
        ((struct ifd_fully_connected_attrs *)(uintptr_t)made->attrs)->keep_dims = true;
    } else {
        ((struct ifd_conv2d_attrs *)(uintptr_t)made->attrs)->window.padding = IFD_PAD_SAME;
    }
    infer(g);
    return out;
}

static int64_t channels(const struct ifd_graph *g, uint32_t v)
{
    const struct ifd_shape *shape = &g->value[v].desc.shape;
    return shape->dim[shape->rank - 1];
}

static uint32_t conv(struct ifd_graph *g, uint32_t in, int64_t side)
{
    const int64_t c = channels(g, in);
    return product(g, IFD_OP_CONV2D, in, SHAPE(c, side, side, c));
}

static uint32_t depthwise(struct ifd_graph *g, uint32_t in)
{
    return product(g, IFD_OP_DEPTHWISE_CONV2D, in, SHAPE(1, 3, 3, channels(g, in)));
}

static uint32_t dense(struct ifd_graph *g, uint32_t in)
{
    const int64_t c = channels(g, in);
    return product(g, IFD_OP_FULLY_CONNECTED, in, SHAPE(c, c));
}

/* ---- graphs: each returns its only output ---- */

static uint32_t channels_to_products(struct ifd_graph *g, uint32_t in)
{
    uint32_t part[PARTS];
    split(g, in, 3, part);
    part[0] = conv(g, part[0], 1);
    part[1] = dense(g, part[1]);
    part[2] = conv(g, depthwise(g, part[2]), 1);
    return concat(g, part, 3);
}

static uint32_t lines_to_anything(struct ifd_graph *g, uint32_t in)
{
    uint32_t part[PARTS];
    split(g, in, 1, part);
    part[0] = conv(g, part[0], 3);
    part[1] = test_graph_op1(g, IFD_OP_TANH, part[1], "tanh");
    part[2] = test_graph_op2(g, IFD_OP_MUL, part[2], part[2], "square");
    return concat(g, part, 1);
}

static uint32_t pixels_one_by_one(struct ifd_graph *g, uint32_t in)
{
    uint32_t line[SIDE], out = 0;
    const uint32_t lines = test_graph_reshape(g, in, SHAPE(SIDE, -1), "lines");
    node(g, IFD_OP_UNPACK, &lines, 1, line, SIDE);
    infer(g);
    for (uint32_t i = 0; i < SIDE; i++) {
        line[i] = test_graph_op1(g, IFD_OP_TANH, line[i], "tanh");
    }
    node(g, IFD_OP_PACK, line, SIDE, &out, 1);
    infer(g);
    return out;
}

static uint32_t parts_of_parts(struct ifd_graph *g, uint32_t in)
{
    uint32_t part[PARTS], inner[PARTS];
    split(g, in, 1, part);
    split(g, part[1], 2, inner);
    inner[0] = test_graph_op1(g, IFD_OP_TANH, inner[0], "tanh");
    part[1] = concat(g, inner, 2);
    split(g, part[2], 3, inner);
    inner[2] = conv(g, inner[2], 1);
    part[2] = concat(g, inner, 3);
    return concat(g, part, 1);
}

/* Readers that need the sub-tensor to be contiguous. */
static uint32_t channels_to_windows(struct ifd_graph *g, uint32_t in)
{
    uint32_t part[PARTS];
    split(g, in, 3, part);
    part[0] = conv(g, part[0], 3);
    part[1] = test_graph_op2(g, IFD_OP_ADD, part[1], conv(g, part[1], 1), "sum");
    part[2] = conv(g, part[2], 1);
    return concat(g, part, 3);
}

/* A padded convolution of 1x1 copies its lines anyway. */
static uint32_t channels_to_padding(struct ifd_graph *g, uint32_t in)
{
    uint32_t part[PARTS];
    split(g, in, 3, part);
    for (uint32_t i = 0; i < PARTS; i++) {
        part[i] = conv(g, part[i], 1);
        const struct ifd_node *made = &g->node[g->node_count - 1];
        struct ifd_window *window = &((struct ifd_conv2d_attrs *)(uintptr_t)made->attrs)->window;
        window->padding = IFD_PAD_EXPLICIT;
        window->pad_top = window->pad_right = 1;
        infer(g);
    }
    return concat(g, part, 3);
}

/* ---- checks ---- */

static void check(uint32_t (*build)(struct ifd_graph *g, uint32_t in), int64_t batch,
                  uint32_t copies)
{
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        struct test_run run = test_run_open(&(struct test_run_options){
            .backend = &ifd_backend_cpuacc, .model = {.max_threads = threads}});
        struct ifd_graph *g = &run.model->graph;
        const uint32_t in = test_graph_f32(g, "in", SHAPE(batch, SIDE, SIDE, DEEP));
        test_graph_io(g, in, build(g, in));
        test_run_input(&run, 0);
        struct test_random random = {.state = 5};
        float *data = run.in.data;
        for (size_t i = 0; i < run.in.bytes / sizeof(float); i++) {
            data[i] = test_random_f32(&random, -1, 1);
        }
        float want[2 * (SIDE + 1) * (SIDE + 1) * DEEP];
        test_graph_interpret(g, (const void *const[]){data}, (void *const[]){want});
        test_run_plan(&run, 0);
        EXPECT_INT(test_run_count(&run, "copy"), copies);
        test_run_once(&run);
        const float *got = run.out[0].data;
        for (size_t i = 0; i < run.out[0].bytes / sizeof(float); i++) {
            EXPECT_CLOSE(got[i], want[i], 1e-3);
        }
        test_run_close(&run);
    }
}

static void channels_are_read_and_written_where_they_are(void)
{
    check(channels_to_products, 1, 0);
    check(channels_to_products, 2, 0);
}

static void lines_are_read_and_written_where_they_are(void)
{
    check(lines_to_anything, 1, 0);
    check(lines_to_anything, 2, 0); /* for one image: those of two are not contiguous */
}

static void packed_values_are_read_and_written_where_they_are(void)
{
    check(pixels_one_by_one, 1, 0);
}

static void parts_have_parts(void)
{
    check(parts_of_parts, 1, 9); /* sub-tensor 0; all of 1, there and back; two sub-tensors of 2 */
}

static void a_value_needed_in_one_block_is_copied(void)
{
    check(channels_to_windows, 1, 2);
    check(channels_to_padding, 1, 3);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(channels_are_read_and_written_where_they_are),
        T(lines_are_read_and_written_where_they_are),
        T(packed_values_are_read_and_written_where_they_are),
        T(parts_have_parts),
        T(a_value_needed_in_one_block_is_copied),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

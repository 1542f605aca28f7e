/* Estimates of the time of a node. */
#include "backends/lowering/work.h"
#include "tests/support/test.h"

#define SHAPE(...)                                                                                 \
    ((struct ifd_shape){.rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                \
                        .dim = {__VA_ARGS__}})

static struct ifd_low_work of(enum ifd_op op, enum ifd_dtype dtype, struct ifd_shape in,
                              struct ifd_shape other, struct ifd_shape out)
{
    const struct ifd_desc desc[2] = {{.dtype = dtype, .shape = in},
                                     {.dtype = dtype, .shape = other}};
    const struct ifd_operand input[3] = {{.desc = &desc[0]}, {.desc = &desc[1]}, {.desc = NULL}};
    const struct ifd_desc output = {.dtype = dtype, .shape = out};
    const struct ifd_node_view node = {
        .op = op, .input = input, .input_count = 3, .output = &output, .output_count = 1};
    return ifd_low_work_of(ifd_op_def(op), &node);
}

static void layers_multiply_what_their_weights_say(void)
{
    /* 112·112·32 results of 3·3·3 products */
    struct ifd_low_work work = of(IFD_OP_CONV2D, IFD_F32, SHAPE(1, 224, 224, 3), SHAPE(32, 3, 3, 3),
                                  SHAPE(1, 112, 112, 32));
    EXPECT_INT(work.macs, 112LL * 112 * 32 * 27);
    EXPECT_INT(work.bytes, 4LL * (224 * 224 * 3 + 32 * 27 + 112 * 112 * 32));
    work = of(IFD_OP_DEPTHWISE_CONV2D, IFD_S8, SHAPE(1, 8, 8, 16), SHAPE(1, 3, 3, 16),
              SHAPE(1, 8, 8, 16));
    EXPECT_INT(work.macs, 8 * 8 * 16 * 9);
    EXPECT_INT(work.bytes, 8 * 8 * 16 + 9 * 16 + 8 * 8 * 16);
    work = of(IFD_OP_FULLY_CONNECTED, IFD_F32, SHAPE(2, 64), SHAPE(10, 64), SHAPE(2, 10));
    EXPECT_INT(work.macs, 2 * 10 * 64);
    work = of(IFD_OP_BATCH_MATMUL, IFD_F32, SHAPE(5, 2, 64), SHAPE(5, 64, 10), SHAPE(5, 2, 10));
    EXPECT_INT(work.macs, 5 * 2 * 10 * 64);
}

static void others_only_move_bytes(void)
{
    const struct ifd_low_work work = of(IFD_OP_ADD, IFD_F32, SHAPE(2, 8), SHAPE(8), SHAPE(2, 8));
    EXPECT_INT(work.macs, 0);
    EXPECT_INT(work.bytes, 4 * (16 + 8 + 16));
}

static void shapes_without_elements_and_giants_have_a_time(void)
{
    const struct ifd_low_rate rate = {.ns_per_node = 0, .macs_per_ns = 2, .bytes_per_ns = 4};
    EXPECT_INT(ifd_low_time_ns(of(IFD_OP_CONV2D, IFD_F32, SHAPE(0, 4, 4, 3), SHAPE(0, 3, 3, 3),
                                  SHAPE(0, 4, 4, 0)),
                               rate),
               1);
    const int64_t much = INT64_C(1) << 40;
    EXPECT_INT(ifd_low_time_ns(of(IFD_OP_FULLY_CONNECTED, IFD_F32, SHAPE(much, much),
                                  SHAPE(much, much), SHAPE(much, much)),
                               rate),
               UINT32_MAX);
    EXPECT_INT(ifd_low_time_ns((struct ifd_low_work){.macs = 10, .bytes = 20},
                               (struct ifd_low_rate){100, 2, 4}),
               110);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(layers_multiply_what_their_weights_say),
        T(others_only_move_bytes),
        T(shapes_without_elements_and_giants_have_a_time),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

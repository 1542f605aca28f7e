/* Nodes that GpuAcc leaves to others for their size. No device is needed. */
#include "backends/gpuacc/lower.h"
#include "inferd/op_attrs.h"
#include "tests/support/test.h"

static const float one = 1;
static const int32_t zero = 0;

static struct ifd_desc desc_of(enum ifd_dtype dtype, int64_t rows, int64_t columns)
{
    struct ifd_desc desc = {.dtype = dtype,
                            .quant = {.count = 1, .scale = &one, .zero_point = &zero}};
    desc.shape.rank = 2;
    desc.shape.dim[0] = rows;
    desc.shape.dim[1] = columns;
    return desc;
}

static bool is_taken(enum ifd_dtype dtype, int64_t rows, int64_t depth, int64_t columns,
                     struct ifd_err *reason)
{
    const struct ifd_batch_matmul_attrs attrs = {.adj_x = false};
    const struct ifd_desc a = desc_of(dtype, rows, depth), b = desc_of(dtype, depth, columns),
                          y = desc_of(dtype, rows, columns);
    const struct ifd_operand input[] = {{&a, {NULL, 0}}, {&b, {NULL, 0}}};
    const struct ifd_node_view node = {.name = "v",
                                       .op = IFD_OP_BATCH_MATMUL,
                                       .attrs = &attrs,
                                       .input = input,
                                       .input_count = 2,
                                       .output = &y,
                                       .output_count = 1};
    return ifd_gpu_driver_of(&node, reason) != NULL;
}

static void tensors_whose_elements_32_bits_do_not_count_are_left_to_others(void)
{
    static const enum ifd_dtype dtypes[] = {IFD_F32, IFD_S8};
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        struct ifd_err err = {0};
        EXPECT(is_taken(dtypes[i], 1 << 15, 4, 65534, &err)); /* 2^31 - 2^16 */
        EXPECT(!is_taken(dtypes[i], 1 << 15, 4, 1 << 16, &err));
        EXPECT_TEXT(err.text, "a tensor of 2147483648 elements, at most 2147418112");
        EXPECT(!is_taken(dtypes[i], 1, 1 << 16, 1 << 15, &err)); /* an input */
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(tensors_whose_elements_32_bits_do_not_count_are_left_to_others),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

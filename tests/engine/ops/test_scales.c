/* Factors between scales that kernels cannot hold are refused, also where a wrapped shift would
 * look small. */
#include "inferd/op.h"
#include "inferd/op_attrs.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>

static const int32_t zero[] = {0};

/* Inputs with scale 2^power and, if there are two, 1; the output has scale 1. */
static enum ifd_code infer(enum ifd_op op, enum ifd_dtype dtype, const void *attrs, uint32_t count,
                           int power, struct ifd_err *err)
{
    const float scale[] = {ldexpf(1, power), 1};
    const struct ifd_shape shape = {2, {3, 3}};
    const struct ifd_desc in[] = {
        {.dtype = dtype, .shape = shape, .quant = {&scale[0], zero, 1, 0}},
        {.dtype = dtype, .shape = shape, .quant = {&scale[1], zero, 1, 0}}};
    const struct ifd_operand operand[] = {{.desc = &in[0]}, {.desc = &in[1]}};
    struct ifd_desc out[] = {{.dtype = dtype, .quant = {&scale[1], zero, 1, 0}}};
    const struct ifd_op_def *def = ifd_op_def(op);
    const struct ifd_infer call = {
        .def = def, .attrs = attrs, .input = operand, .input_count = count, .output_count = 1};
    return def->infer(&call, out, err);
}

static void factors_out_of_range_are_refused(void)
{
    const struct ifd_binary_attrs binary = {0};
    const struct ifd_batch_matmul_attrs product = {0};
    static const int beyond[] = {31, 32, 33, 38, 39, 64, 70, 96};
    struct ifd_err err = {0};
    REQUIRE_OK(infer(IFD_OP_DIV, IFD_U8, &binary, 2, 20, &err), &err);
    REQUIRE_OK(infer(IFD_OP_BATCH_MATMUL, IFD_S16, &product, 2, 5, &err), &err);
    REQUIRE_OK(infer(IFD_OP_HARD_SWISH, IFD_S8, NULL, 1, 6, &err), &err);
    for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
        const int power = beyond[i];
        (void)printf("2^%d\n", power);
        EXPECT(infer(IFD_OP_DIV, IFD_U8, &binary, 2, power, NULL) == IFD_UNSUPPORTED);
        EXPECT(infer(IFD_OP_BATCH_MATMUL, IFD_S16, &product, 2, power, NULL) == IFD_UNSUPPORTED);
        EXPECT(infer(IFD_OP_HARD_SWISH, IFD_S8, NULL, 1, power, NULL) == IFD_UNSUPPORTED);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(factors_out_of_range_are_refused),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

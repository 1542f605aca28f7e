/* Reference kernels of tensors without elements. */
#include "inferd/op.h"
#include "inferd/op_attrs.h"
#include "tests/support/test.h"

/* A layer of 8 bits without filters has no results, and a state of nothing. */
static void svdf_of_no_filters_computes_nothing(void)
{
    static const float scale[] = {0.5f};
    static const int32_t zero[] = {0};
    const struct ifd_quant quant = {scale, zero, 1, 0};
    const struct ifd_svdf_attrs attrs = {.rank = 1};
    const struct ifd_desc x = {.dtype = IFD_S8, .shape = {2, {2, 3}}, .quant = quant},
                          feature = {.dtype = IFD_S8, .shape = {2, {0, 3}}, .quant = quant},
                          time = {.dtype = IFD_S16, .shape = {2, {0, 4}}, .quant = quant},
                          state = {.dtype = IFD_S16, .shape = {2, {2, 0}}, .quant = quant};
    const struct ifd_operand operand[] = {
        {.desc = &x}, {.desc = &feature}, {.desc = &time}, {.desc = NULL}, {.desc = &state}};
    struct ifd_desc out[] = {{.dtype = IFD_S8, .quant = quant}, {.dtype = IFD_S16, .quant = quant}};
    const struct ifd_op_def *def = ifd_op_def(IFD_OP_SVDF);
    const struct ifd_infer infer = {
        .def = def, .attrs = &attrs, .input = operand, .input_count = 5, .output_count = 2};
    struct ifd_err err = {0};
    REQUIRE_OK(def->infer(&infer, out, &err), &err);
    EXPECT_INT(out[0].shape.dim[1], 0);
    int8_t data[] = {1, 2, 3, 4, 5, 6}, none[] = {0, 0};
    const struct ifd_ref_call call = {
        .attrs = &attrs,
        .in = (const struct ifd_desc *const[]){&x, &feature, &time, NULL, &state},
        .input = (const void *const[]){data, none, none, NULL, none},
        .input_count = 5,
        .out = (const struct ifd_desc *const[]){&out[0], &out[1]},
        .output = (void *const[]){none, none},
        .output_count = 2};
    EXPECT_CODE(def->ref(&call, &err), IFD_OK, &err);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(svdf_of_no_filters_computes_nothing),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

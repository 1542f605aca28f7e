/* Scales far apart: LiteRT's answers on x86-64, or its refusal. */
#include "inferd/op.h"
#include "inferd/op_attrs.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static void what_litert_refuses_is_refused(void)
{
    static const int beyond[] = {8, 31, 32, 33, 38, 39, 64, 70, 96};
    struct ifd_err err = {0};
    REQUIRE_OK(infer(IFD_OP_HARD_SWISH, IFD_S8, NULL, 1, 6, &err), &err);
    for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
        EXPECT(infer(IFD_OP_HARD_SWISH, IFD_S8, NULL, 1, beyond[i], NULL) == IFD_UNSUPPORTED);
    }
}

struct odd {
    enum ifd_op op;
    float scale[3]; /* of two inputs and the output */
    int32_t activation;
    const char *why; /* NULL: it is accepted */
};

/* All s8. What is accepted has golden cases. */
static void judge_odd(const struct odd *odd)
{
    struct ifd_binary_attrs attrs = {.activation = odd->activation};
    struct ifd_err err = {0};
    struct ifd_desc desc[3];
    for (size_t i = 0; i < 3; i++) {
        desc[i] = (struct ifd_desc){
            .dtype = IFD_S8, .shape = {1, {3}}, .quant = {&odd->scale[i], zero, 1, 0}};
    }
    const struct ifd_op_def *def = ifd_op_def(odd->op);
    const struct ifd_operand operand[] = {{.desc = &desc[0]}, {.desc = &desc[1]}};
    const struct ifd_infer call = {.def = def,
                                   .attrs = def->attrs_bytes > 0 ? &attrs : NULL,
                                   .input = operand,
                                   .input_count = def->min_inputs,
                                   .output_count = 1};
    desc[2].dtype = odd->op == IFD_OP_EQUAL ? IFD_BOOL : IFD_S8;
    const enum ifd_code code = def->infer(&call, &desc[2], &err);
    if (!odd->why) {
        REQUIRE_OK(code, &err);
    } else {
        EXPECT(code == IFD_INVALID);
        EXPECT_HAS(err.text, odd->why);
    }
}

static void scales_of_0_and_denormal_ones_are_those_of_litert(void)
{
    static const struct odd odds[] = {
        {IFD_OP_MUL, {0, 1, 1}, IFD_ACT_RELU6, NULL},
        {IFD_OP_MUL, {1, 1, 0}, IFD_ACT_NONE, NULL},
        {IFD_OP_MUL, {1, 1, 0}, IFD_ACT_RELU, "the output has scale 0, and its activation the"},
        {IFD_OP_MUL, {1, 1, 1e-40f}, IFD_ACT_RELU, NULL},
        {IFD_OP_MUL, {1, 1, 1e-40f}, IFD_ACT_RELU6, "the bound 6, which is inf steps, expected"},
        {IFD_OP_MUL, {-1, 1, 1}, IFD_ACT_NONE, "input 0 has scale -1, expected a finite one"},
        {IFD_OP_MUL, {1, INFINITY, 1}, IFD_ACT_NONE, "input 1 has scale inf, expected a finite"},
        {IFD_OP_ADD, {1e-40f, 1, 1}, IFD_ACT_NONE, NULL},
        {IFD_OP_ADD, {0, 1, 1}, IFD_ACT_NONE, "add: input 0 has scale 0, expected a positive"},
        {IFD_OP_ADD, {1, 0, 1}, IFD_ACT_NONE, "add: input 1 has scale 0, expected a positive"},
        {IFD_OP_ADD, {1, 1, 0}, IFD_ACT_NONE, "add: output 0 has scale 0, expected a positive"},
        {IFD_OP_ADD, {1, 1, 1e-40f}, IFD_ACT_NONE, "too small for inputs of scale 1 and 1"},
        {IFD_OP_SUB, {1, 1, 0}, IFD_ACT_NONE, NULL},
        {IFD_OP_SUB, {0, 1, 1}, IFD_ACT_NONE, "sub: input 0 has scale 0, expected a positive"},
        {IFD_OP_SQUARED_DIFFERENCE, {1e-40f, 1e-40f, 1e-40f}, IFD_ACT_NONE, NULL},
        {IFD_OP_SQUARED_DIFFERENCE, {1, 1, 1e-40f}, IFD_ACT_NONE, "too small for inputs of"},
        {IFD_OP_EQUAL, {1e-40f, 1, 1}, IFD_ACT_NONE, NULL},
        {IFD_OP_EQUAL, {1, 0, 1}, IFD_ACT_NONE, "equal: input 1 has scale 0, expected a positive"},
        {IFD_OP_RSQRT, {0, 0, 1}, IFD_ACT_NONE, NULL},
        {IFD_OP_RSQRT, {-1, 0, 1}, IFD_ACT_NONE, "input 0 has scale -1, expected a finite one"},
    };
    for (size_t i = 0; i < sizeof(odds) / sizeof(odds[0]); i++) {
        judge_odd(&odds[i]);
    }
}

struct quantized {
    enum ifd_dtype dtype;
    float scale;
    int32_t zero;
    const void *data;
};

/* The operator's reference kernel on count elements of each input. */
static void compute(enum ifd_op op, const void *attrs, const struct quantized *in, uint32_t inputs,
                    const struct quantized *out, void *ret, int64_t count)
{
    struct ifd_desc desc[3];
    for (uint32_t i = 0; i <= inputs; i++) {
        const struct quantized *q = i < inputs ? &in[i] : out;
        desc[i] = (struct ifd_desc){
            .dtype = q->dtype, .shape = {1, {count}}, .quant = {&q->scale, &q->zero, 1, 0}};
    }
    const struct ifd_desc *const ins[] = {&desc[0], &desc[1]};
    const struct ifd_desc *const outs[] = {&desc[inputs]};
    const void *const data[] = {in[0].data, inputs > 1 ? in[1].data : NULL};
    void *const result[] = {ret};
    const struct ifd_ref_call call = {.attrs = attrs,
                                      .in = ins,
                                      .input = data,
                                      .input_count = inputs,
                                      .out = outs,
                                      .output = result,
                                      .output_count = 1};
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_op_def(op)->ref(&call, &err), &err);
}

/* Measured with LiteRT 2.3's reference kernels: on x86-64 a float that 32 bits do not hold is
 * INT32_MIN, to which the zero point is added modulo 2^32. */
static void floats_beyond_32_bits_are_those_of_litert(void)
{
    const float x[] = {-1e3f, -1, -1e-9f, 0, 1e-9f, 1, 1e3f, NAN};
    const struct ifd_quantize_attrs attrs = {0};
    const struct quantized real = {IFD_F32, 1, 0, x};
    const struct quantized u8 = {IFD_U8, 1e-9f, 3, NULL}, s8 = {IFD_S8, 1e-9f, -3, NULL};
    const uint8_t want_u8[] = {0, 0, 2, 3, 4, 255, 0, 0};
    const int8_t want_s8[] = {127, -128, -4, -3, -2, 127, 127, 127};
    uint8_t got[8];
    compute(IFD_OP_QUANTIZE, &attrs, &real, 1, &u8, got, 8);
    EXPECT(memcmp(got, want_u8, sizeof(want_u8)) == 0);
    compute(IFD_OP_QUANTIZE, &attrs, &real, 1, &s8, got, 8);
    EXPECT(memcmp(got, want_s8, sizeof(want_s8)) == 0);
}

static void bounds_beyond_32_bits_are_those_of_litert(void)
{
    const int8_t signed_in[] = {-128, -5, 0, 5, 127}, signed_want[] = {-7, -7, -7, -2, 120};
    const uint8_t in[] = {0, 5, 127, 200, 255}, want[] = {9, 9, 9, 9, 9};
    uint8_t got[5];
    compute(IFD_OP_RELU6, NULL, &(struct quantized){IFD_S8, 1e-12f, 0, signed_in}, 1,
            &(struct quantized){IFD_S8, 1e-12f, -7, NULL}, got, 5);
    EXPECT(memcmp(got, signed_want, sizeof(signed_want)) == 0);
    compute(IFD_OP_RELU6, NULL, &(struct quantized){IFD_U8, 1e-12f, 0, in}, 1,
            &(struct quantized){IFD_U8, 1e-12f, 9, NULL}, got, 5);
    EXPECT(memcmp(got, want, sizeof(want)) == 0);
}

static void long_shifts_of_quotients_are_those_of_litert(void)
{
    const struct ifd_binary_attrs attrs = {0};
    const uint8_t a[] = {0, 50, 100, 255}, b[] = {1, 9, 77, 255}, want[] = {0, 0, 8, 95};
    const struct quantized in[] = {{IFD_U8, 1e-6f, 100, a}, {IFD_U8, 3e3f, 0, b}};
    uint8_t got[4];
    compute(IFD_OP_DIV, &attrs, in, 2, &(struct quantized){IFD_U8, 1e-2f, 7, NULL}, got, 4);
    EXPECT(memcmp(got, want, sizeof(want)) == 0);
}

/* A layer of one product, quantized as a whole (rounds_even). */
static void compute_whole(const float *x, float *ret, int64_t count)
{
    static const float one = 1;
    static const int8_t weight = 1;
    const struct ifd_fully_connected_attrs attrs = {.keep_dims = true, .rounds_even = true};
    const struct ifd_desc real = {.dtype = IFD_F32, .shape = {2, {count, 1}}},
                          w = {IFD_S8, {2, {1, 1}}, {&one, zero, 1, 0}};
    const struct ifd_operand operand[] = {{.desc = &real}, {.desc = &w}};
    const struct ifd_op_def *def = ifd_op_def(IFD_OP_FULLY_CONNECTED);
    struct ifd_err err = {0};
    size_t bytes = 0;
    REQUIRE_OK(
        def->scratch(
            &(struct ifd_infer){
                .def = def, .attrs = &attrs, .input = operand, .input_count = 2, .output_count = 1},
            &real, &bytes, &err),
        &err);
    void *scratch = calloc(1, bytes);
    REQUIRE(scratch);
    const struct ifd_ref_call call = {.attrs = &attrs,
                                      .in = (const struct ifd_desc *[]){&real, &w},
                                      .input = (const void *[]){x, &weight},
                                      .input_count = 2,
                                      .out = (const struct ifd_desc *[]){&real},
                                      .output = (void *[]){ret},
                                      .output_count = 1,
                                      .scratch = scratch};
    REQUIRE_OK(def->ref(&call, &err), &err);
    free(scratch);
}

/* The zero point of such a range is no number. */
static void a_range_that_no_scale_holds_gives_no_numbers(void)
{
    const float x[] = {-INFINITY, 1, INFINITY};
    float y[3];
    compute_whole(x, y, 3);
    EXPECT(isnan(y[1]));
}

/* Were each row to ask for the range of all anew, this took hours. */
static void a_range_whose_scale_is_0_is_looked_for_once(void)
{
    enum { COUNT = 1 << 20 };
    float *x = malloc(COUNT * sizeof(*x)), *y = malloc(COUNT * sizeof(*y));
    REQUIRE(x && y);
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = 0x1p-149f;
    }
    compute_whole(x, y, COUNT);
    EXPECT(y[0] == 0 && y[COUNT - 1] == 0);
    free(x);
    free(y);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(what_litert_refuses_is_refused),
        T(scales_of_0_and_denormal_ones_are_those_of_litert),
        T(floats_beyond_32_bits_are_those_of_litert),
        T(bounds_beyond_32_bits_are_those_of_litert),
        T(long_shifts_of_quotients_are_those_of_litert),
        T(a_range_that_no_scale_holds_gives_no_numbers),
        T(a_range_whose_scale_is_0_is_looked_for_once),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

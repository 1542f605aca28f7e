/* Reference kernels against the golden cases of the file named on the command line. */
#include "engine/exec/texts.h"
#include "engine/ir/shape.h"
#include "tests/conformance/golden.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

/** A copy that ends where its content ends, so that an overrun of either side is found. */
static void *exact_copy(const void *data, size_t bytes)
{
    void *copy = ifd_acquire(ifd_alloc_system(), bytes > 0 ? bytes : 1);
    REQUIRE(copy);
    if (bytes > 0) {
        memcpy(copy, data, bytes);
    }
    return copy;
}

static void free_copy(void *copy, size_t bytes)
{
    ifd_release(ifd_alloc_system(), copy, bytes > 0 ? bytes : 1);
}

/** Everything that one call needs. */
struct call {
    struct ifd_operand operand[GOLDEN_OPERANDS];
    struct ifd_desc out_desc[GOLDEN_OPERANDS];
    const struct ifd_desc *in[GOLDEN_OPERANDS];
    const struct ifd_desc *out[GOLDEN_OPERANDS];
    void *input[GOLDEN_OPERANDS];
    const void *const_input[GOLDEN_OPERANDS];
    void *output[GOLDEN_OPERANDS];
};

static void fill_inputs(struct call *call, const struct golden_case *golden)
{
    for (uint32_t i = 0; i < golden->input_count; i++) {
        const struct golden_tensor *tensor = &golden->input[i];
        if (tensor->is_absent) {
            continue;
        }
        call->input[i] = exact_copy(tensor->data, tensor->bytes);
        call->const_input[i] = call->input[i];
        call->in[i] = &tensor->desc;
        call->operand[i].desc = &tensor->desc;
        if (tensor->is_constant) {
            call->operand[i].data = (struct ifd_bytes){call->input[i], tensor->bytes};
        }
    }
}

static bool infer_agrees(struct call *call, const struct golden_case *golden)
{
    for (uint32_t i = 0; i < golden->output_count; i++) {
        call->out_desc[i] = golden->output[i].desc;
        call->out_desc[i].shape = (struct ifd_shape){0};
        call->out[i] = &call->out_desc[i];
    }
    const struct ifd_op_def *def = ifd_op_def(golden->op);
    const struct ifd_infer in = {.def = def,
                                 .attrs = golden->attrs,
                                 .input = call->operand,
                                 .input_count = golden->input_count,
                                 .output_count = golden->output_count};
    struct ifd_err err = {0};
    const enum ifd_code code = def->infer(&in, call->out_desc, &err);
    if (code != IFD_OK) {
        (void)fprintf(stderr, "%s: %s\n", golden->name, err.text);
    }
    EXPECT_CODE(code, IFD_OK, &err);
    bool same = code == IFD_OK;
    for (uint32_t i = 0; same && i < golden->output_count; i++) {
        same = ifd_shape_equal(&call->out_desc[i].shape, &golden->output[i].desc.shape);
        EXPECT_TEXT(ifd_shape_text(&call->out_desc[i].shape).s,
                    ifd_shape_text(&golden->output[i].desc.shape).s);
    }
    return same;
}

static size_t scratch_bytes(struct call *call, const struct golden_case *golden)
{
    const struct ifd_op_def *def = ifd_op_def(golden->op);
    const struct ifd_infer in = {.def = def,
                                 .attrs = golden->attrs,
                                 .input = call->operand,
                                 .input_count = golden->input_count,
                                 .output_count = golden->output_count};
    size_t bytes = 0;
    struct ifd_err err = {0};
    if (def->scratch) {
        REQUIRE_OK(def->scratch(&in, call->out_desc, &bytes, &err), &err);
    }
    return bytes;
}

static void run_ref(struct call *call, const struct golden_case *golden, bool in_place)
{
    for (uint32_t i = 0; i < golden->output_count; i++) {
        const bool shares = in_place && i == 0;
        call->output[i] =
            shares ? call->input[0] : exact_copy(golden->output[i].data, golden->output[i].bytes);
        if (!shares && golden->output[i].bytes > 0) {
            memset(call->output[i], 0xA5, golden->output[i].bytes);
        }
    }
    const size_t bytes = scratch_bytes(call, golden);
    struct ifd_text_store texts;
    ifd_text_store_init(&texts, ifd_alloc_system());
    void *scratch = ifd_acquire_tensor(ifd_alloc_system(), bytes);
    REQUIRE(scratch);
    const struct ifd_ref_call ref_call = {.attrs = golden->attrs,
                                          .in = call->in,
                                          .input = call->const_input,
                                          .input_count = golden->input_count,
                                          .out = call->out,
                                          .output = call->output,
                                          .output_count = golden->output_count,
                                          .scratch = scratch,
                                          .texts = &texts.base};
    struct ifd_err err = {0};
    EXPECT_CODE(ifd_op_def(golden->op)->ref(&ref_call, &err), IFD_OK, &err);
    ifd_release_tensor(ifd_alloc_system(), scratch, bytes);
    for (uint32_t i = 0; i < golden->output_count; i++) {
        golden_compare(golden, i, call->output[i]);
        if (!in_place || i > 0) {
            free_copy(call->output[i], golden->output[i].bytes);
        }
    }
    ifd_text_store_finish(&texts);
}

static void run_case(struct golden_case *golden, void *context)
{
    const bool in_place = *(const bool *)context;
    struct call call;
    memset(&call, 0, sizeof(call));
    fill_inputs(&call, golden);
    const bool applies =
        !in_place || (ifd_op_def(golden->op)->can_alias && !golden->input[0].is_constant &&
                      golden->input[0].bytes == golden->output[0].bytes);
    if (infer_agrees(&call, golden) && applies) {
        run_ref(&call, golden, in_place);
    }
    for (uint32_t i = 0; i < golden->input_count; i++) {
        if (call.input[i]) {
            free_copy(call.input[i], golden->input[i].bytes);
        }
    }
}

static void ref_equals_golden_values(void)
{
    bool in_place = false;
    EXPECT(golden_for_each(test_arg(0), run_case, &in_place) > 0);
}

static void ref_equals_golden_values_in_place(void)
{
    bool in_place = true;
    EXPECT(golden_for_each(test_arg(0), run_case, &in_place) > 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(ref_equals_golden_values),
        T(ref_equals_golden_values_in_place),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

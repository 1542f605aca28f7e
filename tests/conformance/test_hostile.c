/* Shape rules against hostile models: golden cases with a few things changed at random. What a rule accepts, the
 * reference kernel must run within the memory that the rule promised; the sanitizers watch. */
#include "engine/ir/shape.h"
#include "tests/conformance/golden.h"
#include "tests/support/test.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/** Changed copies of every golden case. */
#define VARIANTS 150

/** Tensors larger than this are not run, only inferred. */
#define RUN_BYTES 4096

/** Loops over a scratch larger than this would take long. */
#define RUN_SCRATCH_BYTES (1 << 20)

#define CHANNELS 64

/** A golden case that may be changed: its own descriptions, scales and attributes. */
struct variant {
    const struct golden_case *golden;
    struct ifd_desc desc[2 * GOLDEN_OPERANDS];
    float scale[2 * GOLDEN_OPERANDS][CHANNELS];
    int32_t zero_point[2 * GOLDEN_OPERANDS][CHANNELS];
    bool is_absent[GOLDEN_OPERANDS], is_constant[GOLDEN_OPERANDS];
    uint32_t input_count, output_count;
    union {
        max_align_t align;
        unsigned char bytes[1024];
    } attrs;
};

struct tally {
    struct test_random random;
    size_t accepted, run;
};

static void copy_tensor(struct variant *variant, uint32_t to, const struct golden_tensor *from)
{
    variant->desc[to] = from->desc;
    const uint32_t count = from->desc.quant.count < CHANNELS ? from->desc.quant.count : CHANNELS;
    for (uint32_t c = 0; c < count; c++) {
        variant->scale[to][c] = from->scale[c];
        variant->zero_point[to][c] = from->zero_point[c];
    }
    variant->desc[to].quant.scale = variant->scale[to];
    variant->desc[to].quant.zero_point = variant->zero_point[to];
}

static void copy_case(struct variant *variant, const struct golden_case *golden)
{
    memset(variant, 0, sizeof(*variant));
    variant->golden = golden;
    variant->input_count = golden->input_count;
    variant->output_count = golden->output_count;
    for (uint32_t i = 0; i < golden->input_count; i++) {
        copy_tensor(variant, i, &golden->input[i]);
        variant->is_absent[i] = golden->input[i].is_absent;
        variant->is_constant[i] = golden->input[i].is_constant;
    }
    for (uint32_t i = 0; i < golden->output_count; i++) {
        copy_tensor(variant, GOLDEN_OPERANDS + i, &golden->output[i]);
    }
    const size_t bytes = ifd_op_def(golden->op)->attrs_bytes;
    REQUIRE(bytes <= sizeof(variant->attrs.bytes));
    if (bytes > 0) {
        memcpy(variant->attrs.bytes, golden->attrs, bytes);
    }
}

static int64_t hostile_int(struct test_random *random)
{
    static const int64_t extreme[] = {INT64_MIN,        INT64_MAX,        INT32_MIN, INT32_MAX,
                                      (int64_t)1 << 32, (int64_t)1 << 62, 65536,     255};
    return test_random_int(random, 0, 3) > 0 ? test_random_int(random, -3, 9)
                                             : extreme[test_random_int(random, 0, 7)];
}

static float hostile_f32(struct test_random *random)
{
    static const float extreme[] = {0,       -1,      NAN,    INFINITY, -INFINITY,
                                    FLT_MAX, FLT_MIN, 1e-40f, -FLT_MAX, 1e9f};
    return test_random_int(random, 0, 2) > 0 ? test_random_f32(random, -2, 8)
                                             : extreme[test_random_int(random, 0, 9)];
}

static uint32_t any_operand(const struct variant *variant, struct test_random *random)
{
    const uint32_t all = variant->input_count + variant->output_count;
    const uint32_t i = (uint32_t)test_random_int(random, 0, all - 1);
    return i < variant->input_count ? i : GOLDEN_OPERANDS + i - variant->input_count;
}

static void change_shape(struct variant *variant, struct test_random *random)
{
    struct ifd_shape *shape = &variant->desc[any_operand(variant, random)].shape;
    const long long kind = test_random_int(random, 0, 5);
    if (kind == 0) {
        const uint32_t rank = (uint32_t)test_random_int(random, 0, IFD_MAX_RANK);
        for (uint32_t d = 0; d < IFD_MAX_RANK; d++) {
            shape->dim[d] = d >= rank ? 0 : d < shape->rank ? shape->dim[d] : 1;
        }
        shape->rank = rank;
    } else if (shape->rank > 0) {
        int64_t *dim = &shape->dim[test_random_int(random, 0, shape->rank - 1)];
        *dim = kind == 1 ? hostile_int(random) : test_random_int(random, kind == 2 ? -1 : 1, 9);
    }
}

static void change_quant(struct variant *variant, struct test_random *random)
{
    const uint32_t i = any_operand(variant, random);
    struct ifd_quant *quant = &variant->desc[i].quant;
    const uint32_t c = (uint32_t)test_random_int(random, 0, CHANNELS - 1) %
                       (quant->count > 0 ? quant->count : 1) % CHANNELS;
    switch (test_random_int(random, 0, 4)) {
    case 0:
        variant->scale[i][c] = hostile_f32(random);
        break;
    case 1:
        variant->zero_point[i][c] = (int32_t)hostile_int(random);
        break;
    case 2:
        quant->axis = (uint32_t)test_random_int(random, 0, 9);
        break;
    case 3:
        quant->count = (uint32_t)test_random_int(random, 0, CHANNELS);
        break;
    default: /* plausible, but another */
        variant->scale[i][c] = test_random_f32(random, 1e-6f, 4);
        variant->zero_point[i][c] = (int32_t)test_random_int(random, -128, 255);
        break;
    }
}

static void change_attr(struct variant *variant, struct test_random *random)
{
    const struct ifd_op_def *def = ifd_op_def(variant->golden->op);
    if (def->attr_count == 0) {
        return;
    }
    const struct ifd_attr_def *attr = &def->attrs[test_random_int(random, 0, def->attr_count - 1)];
    void *field = variant->attrs.bytes + attr->offset;
    switch (attr->kind) {
    case IFD_ATTR_INT:
    case IFD_ATTR_ENUM:
        *(int32_t *)field = (int32_t)hostile_int(random);
        break;
    case IFD_ATTR_F32:
        *(float *)field = hostile_f32(random);
        break;
    case IFD_ATTR_BOOL:
        *(bool *)field = !*(const bool *)field;
        break;
    case IFD_ATTR_INTS: {
        struct ifd_ints *ints = field;
        if (test_random_int(random, 0, 2) == 0) {
            ints->count = (uint32_t)test_random_int(random, 0, IFD_MAX_RANK + 1);
        } else {
            ints->value[test_random_int(random, 0, IFD_MAX_RANK - 1)] = hostile_int(random);
        }
        break;
    }
    }
}

static void change_operands(struct variant *variant, struct test_random *random)
{
    const uint32_t i = any_operand(variant, random);
    switch (test_random_int(random, 0, 4)) {
    case 0:
        variant->desc[i].dtype = (enum ifd_dtype)test_random_int(random, 0, IFD_DTYPE_COUNT);
        break;
    case 1:
        variant->input_count = (uint32_t)test_random_int(random, 0, variant->golden->input_count);
        break;
    case 2:
        variant->output_count =
            (uint32_t)test_random_int(random, 0, variant->golden->output_count + 1);
        break;
    case 3:
        variant->is_absent[i % GOLDEN_OPERANDS] = !variant->is_absent[i % GOLDEN_OPERANDS];
        break;
    default:
        variant->is_constant[i % GOLDEN_OPERANDS] = !variant->is_constant[i % GOLDEN_OPERANDS];
        break;
    }
}

static void change(struct variant *variant, struct test_random *random)
{
    for (long long n = test_random_int(random, 1, 4); n > 0; n--) {
        const long long kind = test_random_int(random, 0, 9);
        if (variant->input_count + variant->output_count == 0) {
            return;
        }
        if (kind < 4) {
            change_shape(variant, random);
        } else if (kind < 6) {
            change_quant(variant, random);
        } else if (kind < 9) {
            change_attr(variant, random);
        } else {
            change_operands(variant, random);
        }
    }
}

/** bytes of content: what the golden case has, repeated or cut, with some noise. */
static void *content(const struct golden_tensor *like, size_t bytes, struct test_random *random)
{
    unsigned char *data = ifd_acquire(ifd_alloc_system(), bytes > 0 ? bytes : 1);
    REQUIRE(data);
    const bool is_noise = test_random_int(random, 0, 3) == 0;
    for (size_t i = 0; i < bytes; i++) {
        data[i] = is_noise || like->bytes == 0
                      ? (unsigned char)test_random_int(random, 0, 255)
                      : ((const unsigned char *)like->data)[i % like->bytes];
    }
    return data;
}

/** Everything of one call, allocated exactly. */
struct call {
    struct ifd_operand operand[GOLDEN_OPERANDS];
    const struct ifd_desc *in[GOLDEN_OPERANDS];
    const struct ifd_desc *out[GOLDEN_OPERANDS + 1];
    const void *input[GOLDEN_OPERANDS];
    void *output[GOLDEN_OPERANDS + 1];
};

static bool small_bytes(const struct ifd_desc *desc, size_t *ret_bytes)
{
    return ifd_desc_bytes(desc, ret_bytes) && *ret_bytes <= RUN_BYTES;
}

/** Inputs that are constant have content while the rule looks; the rest gets it here. False: too large to run. */
static bool fill_inputs(struct variant *variant, struct call *call, bool constants,
                        struct test_random *random)
{
    for (uint32_t i = 0; i < variant->input_count; i++) {
        if (variant->is_absent[i]) {
            continue;
        }
        call->in[i] = call->operand[i].desc = &variant->desc[i];
        size_t bytes = 0;
        if (call->input[i] || (constants && !variant->is_constant[i])) {
            continue;
        }
        if (variant->desc[i].shape.rank > IFD_MAX_RANK || !small_bytes(&variant->desc[i], &bytes)) {
            if (constants) {
                continue;
            }
            return false;
        }
        call->input[i] = content(&variant->golden->input[i], bytes, random);
        if (constants) {
            call->operand[i].data = (struct ifd_bytes){call->input[i], bytes};
        }
    }
    return true;
}

static void release_inputs(const struct variant *variant, struct call *call)
{
    for (uint32_t i = 0; i < variant->input_count; i++) {
        size_t bytes = 0;
        if (call->input[i] && ifd_desc_bytes(&variant->desc[i], &bytes)) {
            ifd_release(ifd_alloc_system(), (void *)(uintptr_t)call->input[i],
                        bytes > 0 ? bytes : 1);
        }
    }
}

static void run_accepted(struct variant *variant, struct call *call, const struct ifd_infer *in,
                         struct tally *tally)
{
    const struct ifd_op_def *def = ifd_op_def(variant->golden->op);
    struct ifd_err err = {0};
    size_t scratch_bytes = 0;
    size_t out_bytes[GOLDEN_OPERANDS + 1];
    if (def->scratch &&
        def->scratch(in, &variant->desc[GOLDEN_OPERANDS], &scratch_bytes, &err) != IFD_OK) {
        return;
    }
    bool fits = scratch_bytes <= RUN_SCRATCH_BYTES;
    for (uint32_t i = 0; i < variant->output_count; i++) {
        call->out[i] = &variant->desc[GOLDEN_OPERANDS + i];
        fits = small_bytes(call->out[i], &out_bytes[i]) && fits;
    }
    if (!fits || !fill_inputs(variant, call, false, &tally->random)) {
        return;
    }
    for (uint32_t i = 0; i < variant->output_count; i++) {
        call->output[i] = ifd_acquire(ifd_alloc_system(), out_bytes[i] > 0 ? out_bytes[i] : 1);
        REQUIRE(call->output[i]);
    }
    void *scratch = ifd_acquire(ifd_alloc_system(), scratch_bytes > 0 ? scratch_bytes : 1);
    REQUIRE(scratch);
    const struct ifd_ref_call ref_call = {.attrs = variant->attrs.bytes,
                                          .in = call->in,
                                          .input = call->input,
                                          .input_count = variant->input_count,
                                          .out = call->out,
                                          .output = call->output,
                                          .output_count = variant->output_count,
                                          .scratch = scratch};
    const enum ifd_code code = def->ref(&ref_call, &err);
    EXPECT(code == IFD_OK || code == IFD_INVALID);
    tally->run++;
    ifd_release(ifd_alloc_system(), scratch, scratch_bytes > 0 ? scratch_bytes : 1);
    for (uint32_t i = 0; i < variant->output_count; i++) {
        ifd_release(ifd_alloc_system(), call->output[i], out_bytes[i] > 0 ? out_bytes[i] : 1);
    }
}

static void try_variant(struct variant *variant, struct tally *tally)
{
    const struct ifd_op_def *def = ifd_op_def(variant->golden->op);
    struct call call;
    memset(&call, 0, sizeof(call));
    (void)fill_inputs(variant, &call, true, &tally->random);
    const struct ifd_infer in = {.attrs = variant->attrs.bytes,
                                 .input = call.operand,
                                 .input_count = variant->input_count,
                                 .output_count = variant->output_count};
    struct ifd_err err = {0};
    const enum ifd_code code = def->infer(&in, &variant->desc[GOLDEN_OPERANDS], &err);
    EXPECT(code == IFD_OK || code == IFD_INVALID || code == IFD_UNSUPPORTED ||
           code == IFD_TOO_LARGE);
    EXPECT(code == IFD_OK || err.text[0] != '\0');
    if (code == IFD_OK) {
        tally->accepted++;
        run_accepted(variant, &call, &in, tally);
    }
    release_inputs(variant, &call);
}

static void run_case(struct golden_case *golden, void *context)
{
    struct tally *tally = context;
    static struct variant variant; /* large for a stack; one thread */
    for (int i = 0; i < VARIANTS; i++) {
        copy_case(&variant, golden);
        change(&variant, &tally->random);
        try_variant(&variant, tally);
    }
}

static void what_infer_accepts_ref_runs(void)
{
    struct tally tally = {.random = {12345}};
    EXPECT(golden_for_each(test_arg(0), run_case, &tally) > 0);
    EXPECT(tally.run > 0); /* else nothing was tried */
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(what_infer_accepts_ref_runs),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Every operator with random calls, and golden cases with random damage. A shape rule may refuse
 * anything, but what it accepts must be safe to compute by the reference kernel and by CpuAcc on
 * every level of instructions, in memory proportional to the tensors, and their integers must be
 * equal. Strongest under AddressSanitizer: buffers end where their content ends. */
#include "backends/builtin.h"
#include "engine/base/cpu.h"
#include "engine/base/quota.h"
#include "engine/exec/texts.h"
#include "engine/ir/attrs.h"
#include "engine/ir/shape.h"
#include "tests/conformance/golden.h"
#include "tests/conformance/one_node.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_OPERANDS GOLDEN_OPERANDS
#define MAX_BYTES    (1u << 16) /* larger tensors are inferred but not computed */
#define ROUNDS       1500       /* per operator */
#define DAMAGES      40         /* per golden case */

#define LEVELS 5
#define LIMIT_BYTES                                                                                \
    ((size_t)64 << 20) /* of what a backend keeps of one node, and needs to make it */

static struct test_random rng = {.state = 88172645463325252ull};

static bool chance(int percent)
{
    return test_random_int(&rng, 1, 100) <= percent;
}

static int64_t pick(const int64_t *from, size_t count)
{
    return from[test_random_int(&rng, 0, (long long)count - 1)];
}

/** Random operands of one call, and their memory. */
struct trial {
    struct ifd_desc in[MAX_OPERANDS], out[MAX_OPERANDS];
    float scale[2 * MAX_OPERANDS][8];
    int32_t zero_point[2 * MAX_OPERANDS][8];
    struct ifd_operand operand[MAX_OPERANDS];
    void *data[MAX_OPERANDS];
    size_t bytes[MAX_OPERANDS];
    uint32_t input_count, output_count;
    enum ifd_op op;
    _Alignas(16) char attrs[1024];
};

static int64_t random_dim(void)
{
    static const int64_t odd[] = {0,         IFD_DIM_ANY,      INT64_MAX,       INT64_MIN,
                                  INT32_MAX, (int64_t)1 << 32, (int64_t)1 << 61};
    return chance(2) ? pick(odd, sizeof(odd) / sizeof(odd[0]))
                     : test_random_int(&rng, chance(20) ? 0 : 1, 6);
}

static struct ifd_shape random_shape(void)
{
    static const int64_t ranks[] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 4, 4, 5, 8};
    struct ifd_shape shape = {.rank = (uint32_t)pick(ranks, sizeof(ranks) / sizeof(ranks[0]))};
    for (uint32_t d = 0; d < shape.rank; d++) {
        shape.dim[d] = random_dim();
    }
    if (chance(1)) {
        shape.rank = (uint32_t)test_random_int(&rng, 9, UINT32_MAX);
    }
    return shape;
}

static enum ifd_dtype random_dtype(uint32_t dtypes)
{
    for (int tries = 0; tries < 100 && !chance(2); tries++) {
        const enum ifd_dtype dtype = (enum ifd_dtype)test_random_int(&rng, 0, IFD_DTYPE_COUNT - 1);
        if ((dtypes & IFD_BIT(dtype)) != 0) {
            return dtype;
        }
    }
    return (enum ifd_dtype)test_random_int(&rng, 0, chance(5) ? 1000 : IFD_DTYPE_COUNT - 1);
}

static void random_quant(struct ifd_desc *desc, float scale[8], int32_t zero_point[8])
{
    static const float odd[] = {0.0f, -1.0f, NAN, INFINITY, 1e-45f, 1e-38f, 3e38f};
    const bool is_integer =
        desc->dtype != IFD_F32 && desc->dtype != IFD_S64 && desc->dtype != IFD_BOOL;
    desc->quant = (struct ifd_quant){.scale = scale, .zero_point = zero_point};
    if (!is_integer || chance(5)) {
        return;
    }
    desc->quant.count = chance(80) ? 1 : (uint32_t)test_random_int(&rng, 1, 8);
    desc->quant.axis =
        (uint32_t)(chance(90) ? test_random_int(&rng, 0, 3) : test_random_int(&rng, 0, UINT32_MAX));
    const bool is_symmetric =
        desc->dtype == IFD_S16 || desc->dtype == IFD_S32 || desc->quant.count > 1;
    for (int c = 0; c < 8; c++) {
        scale[c] = chance(1)    ? odd[test_random_int(&rng, 0, 6)]
                   : chance(50) ? ldexpf(1.0f, (int)test_random_int(&rng, -15, -7))
                                : test_random_f32(&rng, 0.001f, 1.0f);
        zero_point[c] = chance(1)      ? (int32_t)test_random_int(&rng, INT32_MIN, INT32_MAX)
                        : is_symmetric ? 0
                                       : (int32_t)test_random_int(&rng, 0, 100);
    }
}

/** Content that shape rules and kernels may read: mostly small numbers. */
static void random_content(enum ifd_dtype dtype, void *data, size_t bytes)
{
    static const struct ifd_str text[] = {{"", 0},    {"a", 1},      {"\xc3\xa9 b,", 5},
                                          {"[a-", 3}, {"(a|b)*", 6}, {"\xff\xc3", 2},
                                          {".+", 2},  {"17", 2}};
    const size_t element = ifd_dtype_bytes(dtype);
    for (size_t i = 0; i < bytes / element; i++) {
        if (dtype == IFD_STR) {
            ((struct ifd_str *)data)[i] = text[test_random_int(&rng, 0, 7)];
            continue;
        }
        const float real = chance(97) ? test_random_f32(&rng, -8, 8) : chance(50) ? NAN : 1e38f;
        const int64_t integer =
            chance(99) ? test_random_int(&rng, 0, 4) : (int64_t)test_random_u64(&rng);
        const int64_t number =
            dtype == IFD_S32 || dtype == IFD_S64 ? integer : (int64_t)test_random_u64(&rng);
        const void *from = dtype == IFD_F32 ? (const void *)&real : (const void *)&number;
        memcpy((char *)data + i * element, from,
               element < sizeof(number) && dtype != IFD_F32 ? element : sizeof(real));
    }
}

static void drop(struct trial *trial, uint32_t i)
{
    ifd_release(ifd_alloc_system(), trial->data[i], trial->bytes[i] > 0 ? trial->bytes[i] : 1);
    trial->data[i] = NULL;
    trial->operand[i].data = (struct ifd_bytes){NULL, 0};
}

/** New random content of the size that input i has now; none if that is too large or unknown. */
static void refill(struct trial *trial, uint32_t i)
{
    const struct ifd_desc *desc = &trial->in[i];
    drop(trial, i);
    trial->bytes[i] = 0;
    if (ifd_desc_bytes(desc, &trial->bytes[i]) && trial->bytes[i] <= MAX_BYTES) {
        trial->data[i] =
            ifd_acquire_zeroed(ifd_alloc_system(), trial->bytes[i] > 0 ? trial->bytes[i] : 1, 1);
        REQUIRE(trial->data[i]);
        random_content(desc->dtype, trial->data[i], trial->bytes[i]);
    }
}

static void random_input(struct trial *trial, const struct ifd_op_def *def, uint32_t i)
{
    struct ifd_desc *desc = &trial->in[i];
    const bool decides_shape = i > 0 && (def->shape_inputs & 1u << i) != 0;
    desc->shape = i > 0 && chance(50) && !decides_shape ? trial->in[0].shape : random_shape();
    desc->dtype = random_dtype(def->dtypes);
    if (i > 0) {
        static const int64_t others[] = {IFD_S32, IFD_S8, IFD_S64, IFD_F32, IFD_U8};
        desc->dtype = chance(60) ? trial->in[0].dtype : (enum ifd_dtype)pick(others, 5);
    }
    if (decides_shape) {
        const uint32_t rank = trial->in[0].shape.rank;
        desc->dtype = chance(90) ? IFD_S32 : IFD_S64;
        desc->shape =
            (struct ifd_shape){.rank = 1, .dim = {chance(80) ? rank : test_random_int(&rng, 0, 9)}};
        if (chance(40)) {
            desc->shape = (struct ifd_shape){.rank = 2, .dim = {desc->shape.dim[0], 2}};
        }
    }
    random_quant(desc, trial->scale[i], trial->zero_point[i]);
    trial->operand[i].desc = i > 0 && chance(10) ? NULL : desc;
    refill(trial, i);
    if (trial->data[i] && trial->operand[i].desc && chance(decides_shape ? 97 : i > 0 ? 60 : 20)) {
        trial->operand[i].data =
            (struct ifd_bytes){trial->data[i], chance(99) ? trial->bytes[i] : trial->bytes[i] / 2};
    }
}

static int64_t random_number(const struct ifd_attr_def *attr)
{
    const double least = fmax(attr->min, -3);
    const double greatest = fmin(attr->max, 6);
    if (chance(96) && least <= greatest) {
        return test_random_int(&rng, (long long)least, (long long)greatest);
    }
    static const int64_t odd[] = {-1,        INT32_MIN,        INT32_MAX, INT64_MIN,
                                  INT64_MAX, 9007199254740991, 100};
    return pick(odd, sizeof(odd) / sizeof(odd[0]));
}

static void random_ints(const struct ifd_attr_def *attr, const struct trial *trial,
                        struct ifd_ints *ints)
{
    const uint32_t rank = trial->in[0].shape.rank;
    ints->count = chance(60) ? rank : chance(95) ? (uint32_t)test_random_int(&rng, 0, 8) : 1000000;
    for (int i = 0; i < IFD_MAX_RANK; i++) {
        ints->value[i] = chance(30) ? i : random_number(attr);
    }
    if (chance(30)) { /* a permutation, a whole window */
        for (int i = 0; i < IFD_MAX_RANK; i++) {
            ints->value[i] = chance(50) ? i : trial->in[0].shape.dim[i];
        }
    }
}

static void random_attr(struct trial *trial, const struct ifd_attr_def *attr)
{
    void *field = trial->attrs + attr->offset;
    switch (attr->kind) {
    case IFD_ATTR_INTS:
        random_ints(attr, trial, field);
        break;
    case IFD_ATTR_F32:
        *(float *)field = chance(95) ? test_random_f32(&rng, 0, 2) : chance(50) ? NAN : -INFINITY;
        break;
    case IFD_ATTR_BOOL:
        *(bool *)field = chance(50);
        break;
    case IFD_ATTR_INT:
    case IFD_ATTR_ENUM:
        *(int32_t *)field = (int32_t)random_number(attr);
        break;
    }
}

static void random_attrs(struct trial *trial, const struct ifd_op_def *def)
{
    REQUIRE(def->attrs_bytes <= sizeof(trial->attrs));
    ifd_attrs_defaults(def, trial->attrs);
    for (uint32_t i = 0; i < def->attr_count; i++) {
        if (def->attrs[i].kind == IFD_ATTR_INTS || chance(50)) {
            random_attr(trial, &def->attrs[i]);
        }
    }
}

static void random_outputs(struct trial *trial, const struct ifd_op_def *def)
{
    trial->output_count =
        def->outputs == IFD_OP_VARIADIC ? (uint32_t)test_random_int(&rng, 1, 4) : def->outputs;
    if (chance(1)) {
        trial->output_count = (uint32_t)test_random_int(&rng, 0, 6);
    }
    for (uint32_t i = 0; i < MAX_OPERANDS; i++) {
        static const int64_t others[] = {IFD_F32, IFD_S8, IFD_S32, IFD_C64, IFD_U8, IFD_S16};
        trial->out[i].dtype = chance(70) ? trial->in[0].dtype : (enum ifd_dtype)pick(others, 6);
        random_quant(&trial->out[i], trial->scale[MAX_OPERANDS + i],
                     trial->zero_point[MAX_OPERANDS + i]);
        if (chance(60)) {
            trial->out[i].quant = trial->in[0].quant;
        }
    }
}

/* --- CpuAcc ----------------------------------------------------------------------------------- */

struct fast {
    const struct ifd_backend *backend; /* NULL: not built in */
    struct ifd_quota quota;
    struct ifd_host host[LEVELS];
    struct ifd_device *device[LEVELS];
    struct ifd_team *team;
    size_t taken;
};

static struct fast fast;

static void open_fast(void)
{
    static const uint32_t masks[LEVELS] = {
        UINT32_MAX,
        ~(uint32_t)(IFD_CPU_AMX_INT8 | IFD_CPU_AMX_BF16 | IFD_CPU_I8MM | IFD_CPU_BF16),
        IFD_CPU_AVX2 | IFD_CPU_AVX512 | IFD_CPU_NEON,
        IFD_CPU_AVX2,
        0,
    };
    uint32_t count = 0;
    struct ifd_err err = {0};
    const struct ifd_backend *const *backends = ifd_backends_builtin(&count);
    ifd_quota_init(&fast.quota, ifd_alloc_system(), LIMIT_BYTES, 0);
    for (uint32_t i = 0; i < count; i++) {
        fast.backend = strcmp(backends[i]->name, "CpuAcc") == 0 ? backends[i] : fast.backend;
    }
    for (size_t i = 0; fast.backend && i < LEVELS; i++) {
        fast.host[i] = (struct ifd_host){
            .bytes = sizeof(struct ifd_host), .alloc = &fast.quota.alloc, .exact = true};
        ifd_cpu_detect(&fast.host[i].cpu);
        fast.host[i].cpu.flags &= masks[i];
        REQUIRE_OK(fast.backend->open(&fast.host[i], &fast.device[i], &err), &err);
    }
    REQUIRE_OK(ifd_team_create(2, ifd_alloc_system(), &fast.team, &err), &err);
}

static void close_fast(void)
{
    for (size_t i = 0; fast.backend && i < LEVELS; i++) {
        fast.backend->close(fast.device[i]);
    }
    ifd_team_destroy(fast.team);
}

static bool is_integer(enum ifd_dtype dtype)
{
    return dtype != IFD_F32 && dtype != IFD_F64 && dtype != IFD_C64;
}

/* Results of NaN are not specified. */
static bool holds_nan(const struct trial *trial)
{
    bool found = false;
    for (uint32_t i = 0; i < trial->input_count; i++) {
        const bool is_float = trial->operand[i].desc && trial->in[i].dtype == IFD_F32;
        for (size_t k = 0; is_float && k < trial->bytes[i] / sizeof(float); k++) {
            found |= isnan(((const float *)trial->data[i])[k]) != 0;
        }
    }
    return found;
}

static void compute_fast(const struct trial *trial, void *const *want)
{
    static struct one_node node; /* large */
    struct ifd_err err = {0};
    void *padded[MAX_OPERANDS] = {NULL};
    struct ifd_device *device = fast.device[test_random_int(&rng, 0, LEVELS - 1)];
    one_node_init(&node, "hostile", trial->op, trial->attrs);
    for (uint32_t i = 0; i < trial->input_count; i++) {
        const bool is_absent = !trial->operand[i].desc;
        if (!is_absent) {
            padded[i] = ifd_acquire_tensor(ifd_alloc_system(), trial->bytes[i]);
            REQUIRE(padded[i]);
            memcpy(padded[i], trial->data[i], trial->bytes[i]);
        }
        one_node_add_input(&node, is_absent ? NULL : &trial->in[i], padded[i],
                           trial->operand[i].data.data != NULL);
    }
    for (uint32_t i = 0; i < trial->output_count; i++) {
        one_node_add_output(&node, &trial->out[i]);
    }
    if (fast.backend->cost(device, &node.node.view, NULL) > 0) {
        EXPECT_CODE(one_node_run(&node, fast.backend, device, fast.team, true, &err), IFD_OK, &err);
        fast.taken++;
        for (uint32_t i = 0; i < trial->output_count; i++) {
            if (is_integer(trial->out[i].dtype) && !holds_nan(trial)) {
                EXPECT_BYTES(node.output[i], want[i], node.output_bytes[i]);
            }
        }
    }
    one_node_finish(&node);
    for (uint32_t i = 0; i < trial->input_count; i++) {
        if (padded[i]) {
            ifd_release_tensor(ifd_alloc_system(), padded[i], trial->bytes[i]);
        }
    }
}

/* --- judging ---------------------------------------------------------------------------------- */

/** Computes what was accepted, into buffers of exactly the inferred size. */
static void compute(const struct trial *trial, const struct ifd_op_def *def,
                    const struct ifd_infer *in)
{
    const struct ifd_desc *in_desc[MAX_OPERANDS];
    const struct ifd_desc *out_desc[MAX_OPERANDS];
    const void *input[MAX_OPERANDS];
    void *output[MAX_OPERANDS];
    size_t out_bytes[MAX_OPERANDS];
    struct ifd_err err = {0};
    for (uint32_t i = 0; i < trial->input_count; i++) {
        in_desc[i] = trial->operand[i].desc;
        input[i] = in_desc[i] ? trial->data[i] : NULL;
        if (in_desc[i] && !trial->data[i]) {
            return; /* too large to hold */
        }
    }
    for (uint32_t i = 0; i < trial->output_count; i++) {
        out_desc[i] = &trial->out[i];
        REQUIRE(ifd_desc_bytes(out_desc[i], &out_bytes[i]));
        if (out_bytes[i] > MAX_BYTES) {
            return;
        }
    }
    size_t scratch_bytes = 0;
    if (def->scratch && (def->scratch(in, trial->out, &scratch_bytes, &err) != IFD_OK ||
                         scratch_bytes > MAX_BYTES)) {
        return;
    }
    for (uint32_t i = 0; i < trial->output_count; i++) {
        output[i] = ifd_acquire_zeroed(ifd_alloc_system(), out_bytes[i] > 0 ? out_bytes[i] : 1, 1);
        REQUIRE(output[i]);
    }
    struct ifd_text_store texts;
    ifd_text_store_init(&texts, ifd_alloc_system());
    void *scratch = ifd_acquire_tensor(ifd_alloc_system(), scratch_bytes);
    REQUIRE(scratch);
    const struct ifd_ref_call call = {.attrs = trial->attrs,
                                      .in = in_desc,
                                      .input = input,
                                      .input_count = trial->input_count,
                                      .out = out_desc,
                                      .output = output,
                                      .output_count = trial->output_count,
                                      .scratch = scratch,
                                      .texts = &texts.base};
    const enum ifd_code code = def->ref(&call, &err);
    EXPECT(code == IFD_OK || code == IFD_INVALID);
    if (fast.backend && code == IFD_OK) {
        compute_fast(trial, output);
    }
    ifd_text_store_finish(&texts);
    ifd_release_tensor(ifd_alloc_system(), scratch, scratch_bytes);
    for (uint32_t i = 0; i < trial->output_count; i++) {
        ifd_release(ifd_alloc_system(), output[i], out_bytes[i] > 0 ? out_bytes[i] : 1);
    }
}

/** Asks the shape rule and computes if it accepts; frees the content. */
static bool judge(struct trial *trial, const struct ifd_op_def *def)
{
    const struct ifd_infer in = {.def = def,
                                 .attrs = trial->attrs,
                                 .input = trial->operand,
                                 .input_count = trial->input_count,
                                 .output_count = trial->output_count};
    struct ifd_err err = {0};
    const enum ifd_code code = def->infer(&in, trial->out, &err);
    EXPECT(code == IFD_OK || err.text[0] != '\0');
    if (code == IFD_OK) {
        compute(trial, def, &in);
    }
    for (uint32_t i = 0; i < MAX_OPERANDS; i++) {
        drop(trial, i);
    }
    return code == IFD_OK;
}

static void random_calls_are_safe_if_accepted(void)
{
    static struct trial trial; /* large */
    open_fast();
    for (int op = 0; op < IFD_OP_COUNT; op++) {
        const struct ifd_op_def *def = ifd_op_def((enum ifd_op)op);
        const uint32_t most = def->max_inputs < 6 ? def->max_inputs : 6;
        for (int round = 0; round < ROUNDS; round++) {
            memset(&trial, 0, sizeof(trial));
            trial.op = (enum ifd_op)op;
            trial.input_count =
                (uint32_t)test_random_int(&rng, chance(2) ? 0 : def->min_inputs, most);
            for (uint32_t i = 0; i < trial.input_count; i++) {
                random_input(&trial, def, i);
            }
            random_outputs(&trial, def);
            random_attrs(&trial, def);
            (void)judge(&trial, def);
        }
    }
    close_fast();
}

/* --- golden cases with damage ----------------------------------------------------------------- */

static void copy_golden(struct trial *trial, const struct golden_case *golden)
{
    memset(trial, 0, sizeof(*trial));
    trial->op = golden->op;
    trial->input_count = golden->input_count;
    trial->output_count = golden->output_count;
    memcpy(trial->attrs, golden->attrs, ifd_op_def(golden->op)->attrs_bytes);
    for (uint32_t i = 0; i < golden->output_count; i++) {
        trial->out[i] = golden->output[i].desc;
    }
    for (uint32_t i = 0; i < golden->input_count; i++) {
        const struct golden_tensor *tensor = &golden->input[i];
        if (tensor->is_absent) {
            continue;
        }
        trial->in[i] = tensor->desc;
        trial->operand[i].desc = &trial->in[i];
        refill(trial, i);
        REQUIRE(trial->data[i]);
        memcpy(trial->data[i], tensor->data, tensor->bytes);
        if (tensor->is_constant) {
            trial->operand[i].data = (struct ifd_bytes){trial->data[i], trial->bytes[i]};
        }
    }
}

static void damage_input(struct trial *trial, uint32_t i)
{
    struct ifd_desc *desc = &trial->in[i];
    const bool was_constant = trial->operand[i].data.data != NULL;
    switch (test_random_int(&rng, 0, 7)) {
    case 0:
        desc->shape = random_shape();
        break;
    case 1:
    case 2:
    case 3:
        desc->shape.dim[test_random_int(&rng, 0, IFD_MAX_RANK - 1) %
                        (desc->shape.rank > 0 ? desc->shape.rank : 1)] = random_dim();
        break;
    case 4:
        desc->dtype = random_dtype(UINT32_MAX);
        break;
    case 5:
        random_quant(desc, trial->scale[i], trial->zero_point[i]);
        return;
    case 6:
        trial->operand[i] =
            (struct ifd_operand){chance(50) ? NULL : trial->operand[i].desc, {NULL, 0}};
        return;
    default:
        if (trial->data[i]) {
            random_content(desc->dtype, trial->data[i], trial->bytes[i]);
        }
        return;
    }
    refill(trial, i);
    if (was_constant && trial->data[i]) {
        trial->operand[i].data = (struct ifd_bytes){trial->data[i], trial->bytes[i]};
    }
}

static void damage(struct trial *trial, const struct ifd_op_def *def)
{
    const uint32_t i = (uint32_t)test_random_int(&rng, 0, trial->input_count - 1);
    const uint32_t o = (uint32_t)test_random_int(&rng, 0, trial->output_count - 1);
    switch (test_random_int(&rng, 0, 5)) {
    case 0:
        trial->out[o].dtype = random_dtype(UINT32_MAX);
        break;
    case 1:
        random_quant(&trial->out[o], trial->scale[MAX_OPERANDS + o],
                     trial->zero_point[MAX_OPERANDS + o]);
        break;
    case 2:
        if (def->attr_count > 0) {
            random_attr(trial, &def->attrs[test_random_int(&rng, 0, def->attr_count - 1)]);
        }
        break;
    default:
        if (trial->operand[i].desc) {
            damage_input(trial, i);
        }
        break;
    }
}

static void damage_case(struct golden_case *golden, void *context)
{
    const struct ifd_op_def *def = ifd_op_def(golden->op);
    static struct trial trial; /* large */
    for (int round = 0; round < DAMAGES; round++) {
        copy_golden(&trial, golden);
        for (int64_t times = test_random_int(&rng, 0, 3); times > 0; times--) {
            damage(&trial, def);
        }
        *(size_t *)context += judge(&trial, def);
    }
}

static void damaged_golden_calls_are_safe_if_accepted(void)
{
    const char *path = test_arg(0);
    size_t accepted = 0;
    if (!path) {
        test_skip("needs a file of golden cases");
    }
    open_fast();
    EXPECT(golden_for_each(path, damage_case, &accepted) > 0);
    EXPECT(accepted > 0);
    close_fast();
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(random_calls_are_safe_if_accepted),
        T(damaged_golden_calls_are_safe_if_accepted),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

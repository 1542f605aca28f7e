/* Computes a node of constants again, for other numbers of samples: is each element of its result
 * affine in that number? */
#include <math.h>
#include <string.h>

#include "engine/ir/count_impl.h"
#include "engine/ir/eval.h"
#include "inferd/engine.h"

#define FLOAT_MOST    ((int64_t)1 << 24) /* integers up to here are exact */
#define NOT_YET       INT64_MIN
#define ROWS          256 /* numbers of samples that one call computes */
#define ROW_ELEMENTS  32  /* of their result, each */
#define CALL_ELEMENTS 8   /* a call takes as long as so many more elements */

/* ---- numbers ---- */

/* False: it is no integer, or of another type. */
static bool take_number(enum ifd_dtype dtype, const void *data, size_t i, int64_t *ret)
{
    const float f32 = dtype == IFD_F32 ? ((const float *)data)[i] : 0;
    switch ((int)dtype) {
    case IFD_S32:
        *ret = ((const int32_t *)data)[i];
        return true;
    case IFD_S64:
        *ret = ((const int64_t *)data)[i];
        return true;
    case IFD_F32:
        *ret = f32 > -1e9F && f32 < 1e9F ? (int64_t)f32 : INT64_MAX;
        return *ret != INT64_MAX && (float)*ret == f32;
    default:
        return false;
    }
}

static bool put_number(enum ifd_dtype dtype, void *data, size_t i, int64_t number)
{
    switch ((int)dtype) {
    case IFD_S32:
        ((int32_t *)data)[i] = (int32_t)number;
        return number >= INT32_MIN && number <= INT32_MAX;
    case IFD_S64:
        ((int64_t *)data)[i] = number;
        return true;
    case IFD_F32:
        ((float *)data)[i] = (float)number;
        return number >= -FLOAT_MOST && number <= FLOAT_MOST;
    default:
        return false;
    }
}

/* number + slope * samples */
static bool advance(int64_t number, int64_t slope, int64_t samples, int64_t *ret)
{
    int64_t way = 0;
    return !__builtin_mul_overflow(slope, samples, &way) &&
           !__builtin_add_overflow(number, way, ret);
}

/* ---- a computed node, computed again ---- */

struct again {
    const struct ifd_node *node;
    const struct ifd_op_def *def;
    struct ifd_ref_call call;
    struct ifd_arena scratch;
    uint8_t **input;     /* per input: its own copy, or NULL where the content is fixed */
    const uint8_t **now; /* per output: what was computed last */
    uint8_t **first;     /* per output: with one sample */
    int64_t **slope;     /* per output */
    bool moves;          /* each element of the result is one of input 0, or of any */
    int64_t begin, rows; /* one call computes so many numbers of samples, from begin on */
};

const struct ifd_count_form *ifd_count_form_of(const struct ifd_count *c, uint32_t value)
{
    static const struct ifd_count_form fixed = {.kind = IFD_COUNT_FIXED};
    return value != IFD_NONE ? &c->form[value] : &fixed;
}

bool ifd_count_has_unknown(const struct ifd_count *c, uint32_t value)
{
    const struct ifd_count_form *form = ifd_count_form_of(c, value);
    const size_t count = form->kind == IFD_COUNT_NUMBERS ? ifd_count_elements(c, value) : 0;
    for (size_t i = 0; i < count; i++) {
        if (form->slope[i] == IFD_COUNT_UNKNOWN) {
            return true;
        }
    }
    return false;
}

static size_t bytes_of(const struct ifd_count *c, uint32_t value)
{
    return c->graph->value[value].data.size;
}

/* Content of the inputs for so many samples, in a row of their copies. */
static bool fill_inputs(const struct ifd_count *c, struct again *a, int64_t samples, int64_t row)
{
    bool fits = true;
    for (uint32_t i = 0; i < a->node->input_count; i++) {
        if (!a->input[i]) {
            continue;
        }
        const struct ifd_value *value = &c->graph->value[a->node->input[i]];
        const int64_t *slope = c->form[a->node->input[i]].slope;
        const size_t count = ifd_count_elements(c, a->node->input[i]);
        uint8_t *to = a->input[i] + (size_t)row * value->data.size;
        for (size_t k = 0; k < count; k++) {
            int64_t number = 0;
            fits = fits && (slope[k] == 0 || slope[k] == IFD_COUNT_UNKNOWN ||
                            (take_number(value->desc.dtype, value->data.data, k, &number) &&
                             advance(number, slope[k], samples - c->batch, &number) &&
                             put_number(value->desc.dtype, to, k, number)));
        }
    }
    return fits;
}

/* False: of another type. */
static bool put_extreme(enum ifd_dtype dtype, void *data, size_t i, bool is_largest)
{
    switch ((int)dtype) {
    case IFD_BOOL:
        ((uint8_t *)data)[i] = is_largest;
        return true;
    case IFD_S32:
        ((int32_t *)data)[i] = is_largest ? INT32_MAX : INT32_MIN;
        return true;
    case IFD_S64:
        ((int64_t *)data)[i] = is_largest ? INT64_MAX : INT64_MIN;
        return true;
    case IFD_F32:
        ((float *)data)[i] = is_largest ? INFINITY : -INFINITY;
        return true;
    default:
        return false;
    }
}

/* For elements that are not affine. */
static bool fill_unknown(const struct ifd_count *c, struct again *a, bool is_largest)
{
    bool fits = true;
    for (uint32_t i = 0; i < a->node->input_count; i++) {
        const size_t count = a->input[i] ? ifd_count_elements(c, a->node->input[i]) : 0;
        for (size_t k = 0; k < count; k++) {
            const enum ifd_dtype dtype = c->graph->value[a->node->input[i]].desc.dtype;
            fits = fits && (c->form[a->node->input[i]].slope[k] != IFD_COUNT_UNKNOWN ||
                            put_extreme(dtype, a->input[i], k, is_largest));
        }
    }
    return fits;
}

/* For so many samples, or for these and those that follow them. */
static bool compute(const struct ifd_count *c, struct again *a, int64_t samples)
{
    bool fits = true;
    if (a->begin == NOT_YET || samples < a->begin || samples >= a->begin + a->rows) {
        a->begin = samples;
        for (int64_t row = 0; fits && row < a->rows; row++) {
            fits = fill_inputs(c, a, samples + row, row);
        }
        fits = fits && a->def->ref(&a->call, NULL) == IFD_OK;
    }
    for (uint32_t o = 0; o < a->node->output_count; o++) {
        a->now[o] = (const uint8_t *)a->call.output[o] +
                    (size_t)(samples - a->begin) * bytes_of(c, a->node->output[o]);
    }
    return fits;
}

static void lose_all(const struct ifd_count *c, struct again *a)
{
    for (uint32_t o = 0; o < a->node->output_count; o++) {
        const size_t count = ifd_count_elements(c, a->node->output[o]);
        for (size_t k = 0; k < count; k++) {
            a->slope[o][k] = IFD_COUNT_UNKNOWN;
        }
    }
}

static void keep_first(const struct ifd_count *c, struct again *a)
{
    for (uint32_t o = 0; o < a->node->output_count; o++) {
        memcpy(a->first[o], a->now[o], bytes_of(c, a->node->output[o]));
    }
}

/* Has element k of output o, with so many samples, the place on its line? */
static bool is_on_line(const struct ifd_count *c, const struct again *a, uint32_t o, size_t k,
                       int64_t samples)
{
    const enum ifd_dtype dtype = c->graph->value[a->node->output[o]].desc.dtype;
    const size_t bytes = ifd_dtype_bytes(dtype);
    int64_t first = 0, number = 0;
    if (a->slope[o][k] == 0) {
        return memcmp(a->first[o] + k * bytes, a->now[o] + k * bytes, bytes) == 0;
    }
    return take_number(dtype, a->first[o], k, &first) &&
           advance(first, a->slope[o][k], samples - 1, &first) &&
           take_number(dtype, a->now[o], k, &number) && number == first;
}

/* With two samples. */
static void find_slopes(const struct ifd_count *c, struct again *a)
{
    for (uint32_t o = 0; o < a->node->output_count; o++) {
        const enum ifd_dtype dtype = c->graph->value[a->node->output[o]].desc.dtype;
        const size_t count = ifd_count_elements(c, a->node->output[o]);
        for (size_t k = 0; k < count; k++) {
            int64_t first = 0, second = 0;
            if (a->slope[o][k] != IFD_COUNT_UNKNOWN && !is_on_line(c, a, o, k, 2)) {
                a->slope[o][k] = take_number(dtype, a->first[o], k, &first) &&
                                         take_number(dtype, a->now[o], k, &second) &&
                                         !__builtin_sub_overflow(second, first, &second)
                                     ? second
                                     : IFD_COUNT_UNKNOWN;
            }
        }
    }
}

/* False: no element is affine. */
static bool check_slopes(const struct ifd_count *c, struct again *a, int64_t samples)
{
    bool has_affine = false;
    for (uint32_t o = 0; o < a->node->output_count; o++) {
        const size_t count = ifd_count_elements(c, a->node->output[o]);
        for (size_t k = 0; k < count; k++) {
            if (a->slope[o][k] != IFD_COUNT_UNKNOWN && !is_on_line(c, a, o, k, samples)) {
                a->slope[o][k] = IFD_COUNT_UNKNOWN;
            }
            has_affine = has_affine || a->slope[o][k] != IFD_COUNT_UNKNOWN;
        }
    }
    return has_affine;
}

/* Three points of a line where elements are moved or chosen as the largest or smallest, which is
 * convex or concave; else all. */
static void follow_line(const struct ifd_count *c, struct again *a)
{
    bool is_computed = compute(c, a, 1);
    if (is_computed) {
        keep_first(c, a);
        is_computed = compute(c, a, 2);
    }
    if (is_computed) {
        find_slopes(c, a);
    }
    for (int64_t n = a->moves ? IFD_MAX_BATCH : 3; is_computed && n <= IFD_MAX_BATCH; n++) {
        is_computed = compute(c, a, n) && check_slopes(c, a, n);
    }
    if (!is_computed) {
        lose_all(c, a);
    }
}

/* Which elements of the result come from those that are not affine? */
static void spread_by_moving(const struct ifd_count *c, struct again *a)
{
    bool is_computed = fill_unknown(c, a, false) && compute(c, a, c->batch);
    if (is_computed) {
        keep_first(c, a);
        a->begin = NOT_YET;
        is_computed = fill_unknown(c, a, true) && compute(c, a, c->batch);
    }
    if (!is_computed || !check_slopes(c, a, 1)) {
        lose_all(c, a);
    }
    a->begin = NOT_YET;
}

/* Element of an operand that broadcasts, for element k of the result. */
static size_t operand_element(const struct ifd_shape *of, const struct ifd_shape *result, size_t k)
{
    size_t at = 0, stride = 1;
    for (uint32_t d = 0; d < result->rank; d++) {
        const size_t size = (size_t)result->dim[result->rank - 1 - d];
        if (d < of->rank && of->dim[of->rank - 1 - d] > 1) {
            at += k % size * stride;
            stride *= (size_t)of->dim[of->rank - 1 - d];
        }
        k /= size;
    }
    return at;
}

static void spread_by_element(const struct ifd_count *c, struct again *a)
{
    const struct ifd_shape *result = &c->graph->value[a->node->output[0]].desc.shape;
    const size_t count = ifd_count_elements(c, a->node->output[0]);
    for (uint32_t i = 0; i < a->node->input_count; i++) {
        for (size_t k = 0; a->input[i] && k < count; k++) {
            const struct ifd_shape *of = &c->graph->value[a->node->input[i]].desc.shape;
            const int64_t slope = c->form[a->node->input[i]].slope[operand_element(of, result, k)];
            a->slope[0][k] = slope == IFD_COUNT_UNKNOWN ? IFD_COUNT_UNKNOWN : a->slope[0][k];
        }
    }
}

/* Do all that have slopes move only? */
static bool may_move(const struct ifd_count *c, const struct again *a)
{
    bool may = a->def->moves;
    for (uint32_t i = 1; i < a->node->input_count; i++) {
        may = may && (a->def->max_inputs == IFD_OP_VARIADIC ||
                      ifd_count_form_of(c, a->node->input[i])->kind != IFD_COUNT_NUMBERS);
    }
    return may;
}

/* One call computes many numbers of samples where elements go by their places: they are a dimension
 * more. */
static bool may_take_rows(const struct ifd_count *c, const struct again *a)
{
    const uint32_t result = a->node->output[0];
    return !a->moves && a->def->is_elementwise && !a->def->scratch && a->node->output_count == 1 &&
           c->graph->value[result].desc.shape.rank < IFD_MAX_RANK &&
           ifd_count_elements(c, result) <= ROW_ELEMENTS;
}

static struct ifd_desc widened(const struct ifd_desc *desc, uint32_t rank, int64_t rows)
{
    struct ifd_desc wide = *desc;
    wide.shape.rank = rank + 1;
    for (uint32_t d = 0; d <= rank; d++) {
        const bool is_own = d + desc->shape.rank > rank;
        wide.shape.dim[d] = d == 0   ? rows
                            : is_own ? desc->shape.dim[d + desc->shape.rank - rank - 1]
                                     : 1;
    }
    return wide;
}

static bool take_rows(const struct ifd_count *c, struct again *a)
{
    const struct ifd_node *node = a->node;
    const struct ifd_desc **in = (const struct ifd_desc **)(uintptr_t)a->call.in;
    const struct ifd_desc **out = (const struct ifd_desc **)(uintptr_t)a->call.out;
    void **output = (void **)(uintptr_t)a->call.output;
    const uint32_t rank = c->graph->value[node->output[0]].desc.shape.rank;
    struct ifd_desc *wide =
        ifd_arena_take_array(&a->scratch, node->input_count + (size_t)1, sizeof(*wide));
    output[0] = ifd_arena_take_tensor(&a->scratch, bytes_of(c, node->output[0]) * (size_t)a->rows);
    if (!wide || !output[0]) {
        return false;
    }
    wide[node->input_count] = widened(out[0], rank, a->rows);
    out[0] = &wide[node->input_count];
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (in[i]) {
            wide[i] = widened(in[i], rank, a->input[i] ? a->rows : 1);
            in[i] = &wide[i];
        }
    }
    return true;
}

/* Inputs that have slopes are copied. */
static bool take_inputs(const struct ifd_count *c, struct again *a)
{
    const void **content = (const void **)(uintptr_t)a->call.input;
    for (uint32_t i = 0; i < a->node->input_count; i++) {
        if (ifd_count_form_of(c, a->node->input[i])->kind != IFD_COUNT_NUMBERS) {
            continue;
        }
        const struct ifd_bytes from = c->graph->value[a->node->input[i]].data;
        uint8_t *copy = ifd_arena_take_tensor(&a->scratch, from.size * (size_t)a->rows);
        if (!copy) {
            return false;
        }
        for (int64_t row = 0; row < a->rows; row++) {
            memcpy(copy + (size_t)row * from.size, from.data, from.size);
        }
        content[i] = a->input[i] = copy;
    }
    return true;
}

static bool take_outputs(const struct ifd_count *c, struct again *a)
{
    bool has_memory = true;
    for (uint32_t o = 0; has_memory && o < a->node->output_count; o++) {
        const uint32_t value = a->node->output[o];
        a->first[o] = ifd_arena_take_tensor(&a->scratch, bytes_of(c, value));
        a->slope[o] =
            ifd_arena_take_array(c->arena, ifd_count_elements(c, value), sizeof(*a->slope[o]));
        has_memory = a->first[o] && a->slope[o];
    }
    return has_memory;
}

static struct again plan_again(const struct ifd_count *c, const struct ifd_node *node)
{
    struct again a = {.node = node, .def = ifd_op_def(node->op), .begin = NOT_YET};
    a.moves = may_move(c, &a);
    a.rows = may_take_rows(c, &a) ? ROWS : 1;
    return a;
}

static enum ifd_code prepare(const struct ifd_count *c, struct again *a, struct ifd_err *err)
{
    const struct ifd_node *node = a->node;
    ifd_arena_init(&a->scratch, c->arena->alloc, 0);
    const enum ifd_code code = ifd_graph_prepare_call(c->graph, node, &a->scratch, &a->call, err);
    if (code != IFD_OK) {
        return code;
    }
    a->input = ifd_arena_take_array(&a->scratch, node->input_count, sizeof(*a->input));
    a->now = ifd_arena_take_array(&a->scratch, node->output_count, sizeof(*a->now));
    a->first = ifd_arena_take_array(&a->scratch, node->output_count, sizeof(*a->first));
    a->slope = ifd_arena_take_array(&a->scratch, node->output_count, sizeof(*a->slope));
    const bool has_memory = a->input && a->now && a->first && a->slope && take_inputs(c, a) &&
                            (a->rows == 1 || take_rows(c, a)) && take_outputs(c, a);
    return has_memory ? IFD_OK : ifd_arena_fail(&a->scratch, 0, err);
}

static bool are_all_0(const int64_t *slope, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (slope[i] != 0) {
            return false;
        }
    }
    return true;
}

static double cost_of(const struct ifd_count *c, const struct again *a)
{
    const double once =
        ifd_node_work(c->graph, a->node) + (a->rows > 1 ? 0 : (double)CALL_ELEMENTS);
    return once * (a->moves ? 3 : IFD_MAX_BATCH);
}

static void note_slopes(struct ifd_count *c, const struct again *a)
{
    for (uint32_t o = 0; o < a->node->output_count; o++) {
        const bool is_fixed = are_all_0(a->slope[o], ifd_count_elements(c, a->node->output[o]));
        c->form[a->node->output[o]] = (struct ifd_count_form){
            .kind = is_fixed ? IFD_COUNT_FIXED : IFD_COUNT_NUMBERS, .slope = a->slope[o]};
    }
}

static void follow(const struct ifd_count *c, struct again *a)
{
    bool is_sure = true;
    for (uint32_t i = 0; i < a->node->input_count; i++) {
        is_sure = is_sure && !ifd_count_has_unknown(c, a->node->input[i]);
    }
    if (!is_sure && !a->moves && !a->def->is_elementwise) {
        lose_all(c, a);
        return;
    }
    if (!is_sure && a->moves) {
        spread_by_moving(c, a);
    } else if (!is_sure) {
        spread_by_element(c, a);
    }
    follow_line(c, a);
}

enum ifd_code ifd_count_compute(struct ifd_count *c, const struct ifd_node *node,
                                struct ifd_err *err)
{
    struct again a = plan_again(c, node);
    const double cost = cost_of(c, &a);
    if (cost > c->work_left) { /* nor is there memory for it */
        for (uint32_t o = 0; o < node->output_count; o++) {
            c->form[node->output[o]] = (struct ifd_count_form){.kind = IFD_COUNT_OTHER};
        }
        return IFD_OK;
    }
    c->work_left -= cost;
    const enum ifd_code code = prepare(c, &a, err);
    if (code == IFD_OK) {
        follow(c, &a);
        note_slopes(c, &a);
    }
    ifd_arena_finish(&a.scratch);
    return code;
}

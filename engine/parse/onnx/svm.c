/* Support vector machines of ai.onnx.ml: kernels of the samples and the support vectors, one
 * product for the decisions of all pairs of classes, votes. */
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

#define CLASSES_MAX 256
/* The coupling of pairs' probabilities is an iteration; each turn of each class becomes this many
 * nodes, all together about so many. ONNX Runtime's limit is 100 turns; it stops after about 5,
 * where the error is small. */
#define STEP_NODES     18
#define COUPLING_NODES 4096
#define TURNS_LEAST    5
#define TURNS_MAX      100
#define COUPLED_MAX    128 /* classes */

static uint32_t with(struct ifd_builder *b, enum ifd_op op, uint32_t x, double number)
{
    return ifd_build_with(b, op, x, number);
}

static uint32_t sum(struct ifd_builder *b, uint32_t x, int64_t axis, bool keeps)
{
    const struct ifd_ints axes = {.count = 1, .value = {axis}};
    return ifd_build_reduce(b, IFD_OP_REDUCE_SUM, x, &axes, keeps);
}

static int64_t columns(const struct ifd_builder *b, uint32_t x)
{
    return ifd_build_desc(b, x)->shape.dim[1];
}

/* ---- kernels ---- */

static double parameter(const struct ifd_onnx_call *call, uint32_t i)
{
    const struct ifd_onnx_attr *list = ifd_onnx_attr(call, "kernel_params");
    return list && i < list->float_count ? (double)list->floats[i] : 0;
}

/* exp(-gamma |x - v|²). Both are moved by the mean of the vectors first, so that the difference of
 * large squares keeps its digits. */
static uint32_t radial(struct ifd_builder *b, uint32_t x, uint32_t v, double gamma)
{
    const struct ifd_ints rows = {.count = 1, .value = {0}};
    const uint32_t mean = ifd_build_reduce(b, IFD_OP_REDUCE_MEAN, v, &rows, true);
    x = ifd_build_binary(b, IFD_OP_SUB, x, mean);
    v = ifd_build_binary(b, IFD_OP_SUB, v, mean);
    const uint32_t x2 = sum(b, ifd_build_binary(b, IFD_OP_MUL, x, x), 1, true);
    const uint32_t v2 = sum(b, ifd_build_binary(b, IFD_OP_MUL, v, v), 1, false);
    const uint32_t xv = with(b, IFD_OP_MUL, ifd_build_layer(b, x, v, IFD_NONE), -2);
    const uint32_t distance =
        ifd_build_binary(b, IFD_OP_ADD, ifd_build_binary(b, IFD_OP_ADD, xv, x2), v2);
    const uint32_t least =
        ifd_build_binary(b, IFD_OP_MAXIMUM, distance, ifd_build_number(b, IFD_F32, 0));
    return ifd_build_unary(b, IFD_OP_EXP, with(b, IFD_OP_MUL, least, -gamma));
}

/* [n, vectors] */
static uint32_t kernels(struct ifd_onnx_call *call, uint32_t x, uint32_t v)
{
    struct ifd_builder *b = call->b;
    const double gamma = parameter(call, 0), offset = parameter(call, 1);
    if (ifd_onnx_text_is(call, "kernel_type", "RBF", false)) {
        return radial(b, x, v, gamma);
    }
    const uint32_t product = ifd_build_layer(b, x, v, IFD_NONE);
    if (ifd_onnx_text_is(call, "kernel_type", "LINEAR", true)) {
        return product;
    }
    const uint32_t y = with(b, IFD_OP_ADD, with(b, IFD_OP_MUL, product, gamma), offset);
    if (ifd_onnx_text_is(call, "kernel_type", "POLY", false)) {
        return with(b, IFD_OP_POW, y, parameter(call, 2));
    }
    return ifd_onnx_text_is(call, "kernel_type", "SIGMOID", false)
               ? ifd_build_unary(b, IFD_OP_TANH, y)
               : ifd_build_fail(b, IFD_UNSUPPORTED, "another \"kernel_type\"");
}

/* Attribute name as a matrix of so many rows, which x multiplies; IFD_NONE: it does not fit. */
static uint32_t matrix(struct ifd_onnx_call *call, const char *name, int64_t rows, int64_t width)
{
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, name);
    if (call->b->code != IFD_OK || !attr || rows < 1 || width < 1 ||
        attr->float_count / (uint64_t)rows != (uint64_t)width ||
        attr->float_count % (uint64_t)rows != 0) {
        return ifd_build_fail(call->b, IFD_INVALID, "%u numbers of \"%s\" for %lld rows of %lld",
                              attr ? attr->float_count : 0, name, (long long)rows,
                              (long long)width);
    }
    return ifd_onnx_floats(call->b, attr->floats, (const int64_t[]){rows, width}, 2);
}

/* ---- decisions ---- */

struct pairs {
    int64_t classes, vectors, count;
    const struct ifd_onnx_attr *sizes; /* of each class, in vectors */
};

static void *take(struct ifd_builder *b, uint64_t count)
{
    const bool has_size = count <= SIZE_MAX / sizeof(float);
    float *data =
        has_size ? ifd_arena_take_array(b->graph->arena, (size_t)count, sizeof(float)) : NULL;
    if (!data) {
        b->code = ifd_arena_fail(b->graph->arena,
                                 has_size ? (size_t)count * sizeof(float) : SIZE_MAX, b->err);
        return NULL;
    }
    memset(data, 0, (size_t)count * sizeof(float));
    return data;
}

static bool take_pairs(struct ifd_onnx_call *call, int64_t classes, struct pairs *ret)
{
    *ret = (struct pairs){.classes = classes,
                          .count = classes * (classes - 1) / 2,
                          .sizes = ifd_onnx_attr(call, "vectors_per_class")};
    for (uint32_t i = 0; ret->sizes && i < ret->sizes->int_count; i++) {
        if (ret->sizes->ints[i] < 0 || ret->sizes->ints[i] > INT32_MAX) {
            ifd_build_fail(call->b, IFD_INVALID, "class %u has %lld vectors", i,
                           (long long)ret->sizes->ints[i]);
            return false;
        }
        ret->vectors += ret->sizes->ints[i];
    }
    return true;
}

/* One decision for each pair of classes i < k, above 0 for i: the vectors of i count with the
 * coefficients against k, those of k with the ones against i. [n, pairs] */
static uint32_t decisions(struct ifd_onnx_call *call, const struct pairs *p, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_attr *given = ifd_onnx_attr(call, "coefficients");
    const struct ifd_onnx_attr *rho = ifd_onnx_attr(call, "rho");
    const uint32_t v = matrix(call, "support_vectors", p->vectors, columns(b, x));
    if (b->code != IFD_OK || p->sizes->int_count != (uint64_t)p->classes || !given || !rho ||
        given->float_count != (uint64_t)(p->classes - 1) * (uint64_t)p->vectors ||
        rho->float_count < (uint64_t)p->count) {
        return ifd_build_fail(b, IFD_INVALID, "coefficients, rho or classes do not fit each other");
    }
    float *weight = take(b, (uint64_t)p->count * (uint64_t)p->vectors);
    int64_t begin_i = 0, pair = 0;
    for (int64_t i = 0; weight && i < p->classes; begin_i += p->sizes->ints[i++]) {
        int64_t begin_k = begin_i + p->sizes->ints[i];
        for (int64_t k = i + 1; k < p->classes; begin_k += p->sizes->ints[k++], pair++) {
            float *row = weight + pair * p->vectors;
            memcpy(row + begin_i, given->floats + (k - 1) * p->vectors + begin_i,
                   (size_t)p->sizes->ints[i] * sizeof(*row));
            memcpy(row + begin_k, given->floats + i * p->vectors + begin_k,
                   (size_t)p->sizes->ints[k] * sizeof(*row));
        }
    }
    if (!weight) {
        return IFD_NONE;
    }
    const int64_t dim[2] = {p->count, p->vectors};
    return ifd_build_layer(b, kernels(call, x, v), ifd_onnx_floats(b, weight, dim, 2),
                           ifd_onnx_floats(b, rho->floats, dim, 1));
}

/* How many pairs each class wins. */
static uint32_t votes(struct ifd_builder *b, const struct pairs *p, uint32_t decision)
{
    float *weight = take(b, (uint64_t)p->count * (uint64_t)p->classes);
    float *bias = take(b, (uint64_t)p->classes);
    int64_t pair = 0;
    for (int64_t i = 0; weight && bias && i < p->classes; i++) {
        for (int64_t k = i + 1; k < p->classes; k++, pair++) {
            weight[i * p->count + pair] = 1;
            weight[k * p->count + pair] = -1;
            bias[k]++;
        }
    }
    if (!weight || !bias) {
        return IFD_NONE;
    }
    const uint32_t wins =
        ifd_onnx_compared(b, IFD_OP_GREATER, decision, ifd_build_number(b, IFD_F32, 0));
    return ifd_build_layer(b, ifd_build_cast(b, wins, IFD_F32),
                           ifd_onnx_floats(b, weight, (const int64_t[]){p->classes, p->count}, 2),
                           ifd_onnx_floats(b, bias, &p->classes, 1));
}

/* ---- probabilities (Wu, Lin, Weng: Probability Estimates by Pairwise Coupling) ---- */

/* The probability of each class against each other: [n, classes, classes], 0 on the diagonal. */
static uint32_t against(struct ifd_onnx_call *call, const struct pairs *p, uint32_t decision)
{
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_attr *slope = ifd_onnx_attr(call, "prob_a");
    const struct ifd_onnx_attr *offset = ifd_onnx_attr(call, "prob_b");
    const uint64_t square = (uint64_t)p->classes * (uint64_t)p->classes;
    if (!offset || slope->float_count < (uint64_t)p->count ||
        offset->float_count < (uint64_t)p->count) {
        return ifd_build_fail(b, IFD_INVALID, "prob_a or prob_b has too few numbers");
    }
    int64_t *place = ifd_arena_take_array(b->graph->arena, (size_t)square, sizeof(*place));
    int64_t pair = 0;
    for (int64_t i = 0; place && i < p->classes; i++) {
        place[i * p->classes + i] = 2 * p->count;
        for (int64_t k = i + 1; k < p->classes; k++, pair++) {
            place[i * p->classes + k] = pair;
            place[k * p->classes + i] = p->count + pair;
        }
    }
    if (!place) {
        b->code = ifd_arena_fail(b->graph->arena, (size_t)square * sizeof(*place), b->err);
        return IFD_NONE;
    }
    const uint32_t a = ifd_onnx_floats(b, slope->floats, &p->count, 1);
    const uint32_t c = ifd_onnx_floats(b, offset->floats, &p->count, 1);
    const uint32_t line =
        ifd_build_binary(b, IFD_OP_ADD, ifd_build_binary(b, IFD_OP_MUL, decision, a), c);
    const uint32_t share = ifd_build_clamp(
        b, ifd_build_unary(b, IFD_OP_LOGISTIC, ifd_build_unary(b, IFD_OP_NEG, line)), 1e-7,
        1 - 1e-7);
    const uint32_t rest = ifd_build_binary(b, IFD_OP_SUB, ifd_build_number(b, IFD_F32, 1), share);
    const uint32_t none = with(b, IFD_OP_MUL, ifd_build_cut(b, share, 1, 0, 1), 0);
    const struct ifd_axis_attrs behind = {.axis = 1};
    const uint32_t all =
        ifd_build_node(b, IFD_OP_CONCAT, (const uint32_t[]){share, rest, none}, 3, NULL, &behind);
    const struct ifd_gather_attrs columns_of = {.axis = 1};
    const uint32_t flat = ifd_build_node(
        b, IFD_OP_GATHER, (const uint32_t[]){all, ifd_build_list(b, place, (uint32_t)square)}, 2,
        NULL, &columns_of);
    const int64_t cube[3] = {ifd_build_desc(b, decision)->shape.dim[0], p->classes, p->classes};
    return ifd_build_reshape(b, flat, cube, 3);
}

struct coupling {
    struct ifd_builder *b;
    int64_t samples, classes;
    uint32_t q, diagonal, p; /* [n, k, k], [n, k], [n, k] */
};

static uint32_t op(struct coupling *c, enum ifd_op what, uint32_t x, uint32_t y)
{
    return ifd_build_binary(c->b, what, x, y);
}

/* One turn: each class in order moves to where the error is least. */
static void couple(struct coupling *c)
{
    struct ifd_builder *b = c->b;
    const int64_t row[3] = {c->samples, 1, c->classes};
    const struct ifd_ints last = {.count = 1, .value = {1}};
    const uint32_t before = c->p;
    uint32_t qp = sum(b, op(c, IFD_OP_MUL, c->q, ifd_build_reshape(b, c->p, row, 3)), 2, false);
    uint32_t all = sum(b, op(c, IFD_OP_MUL, c->p, qp), 1, true);
    const uint32_t error =
        ifd_build_reduce(b, IFD_OP_REDUCE_MAX,
                         ifd_build_unary(b, IFD_OP_ABS, op(c, IFD_OP_SUB, qp, all)), &last, true);
    for (int64_t i = 0; b->code == IFD_OK && i < c->classes; i++) {
        float unit[CLASSES_MAX] = {0};
        unit[i] = 1;
        const uint32_t own = ifd_build_cut(b, qp, 1, i, 1);
        const uint32_t factor = ifd_build_cut(b, c->diagonal, 1, i, 1);
        const uint32_t move = op(c, IFD_OP_DIV, op(c, IFD_OP_SUB, all, own), factor);
        const uint32_t size = with(b, IFD_OP_ADD, move, 1);
        const uint32_t more =
            op(c, IFD_OP_ADD, op(c, IFD_OP_MUL, move, factor), with(b, IFD_OP_MUL, own, 2));
        all = op(c, IFD_OP_ADD, all, op(c, IFD_OP_MUL, move, more));
        all = op(c, IFD_OP_DIV, op(c, IFD_OP_DIV, all, size), size);
        const int64_t flat[2] = {c->samples, c->classes};
        const uint32_t line = ifd_build_reshape(b, ifd_build_cut(b, c->q, 1, i, 1), flat, 2);
        qp = op(c, IFD_OP_DIV, op(c, IFD_OP_ADD, qp, op(c, IFD_OP_MUL, move, line)), size);
        const uint32_t step =
            op(c, IFD_OP_MUL, move, ifd_onnx_floats(b, unit, (const int64_t[]){c->classes}, 1));
        c->p = op(c, IFD_OP_DIV, op(c, IFD_OP_ADD, c->p, step), size);
    }
    const uint32_t is_done = ifd_onnx_compared(
        b, IFD_OP_LESS, error, ifd_build_number(b, IFD_F32, 0.005 / (double)c->classes));
    c->p = ifd_onnx_selected(b, is_done, before, c->p);
}

static uint32_t probabilities(struct ifd_onnx_call *call, const struct pairs *p, uint32_t decision)
{
    struct ifd_builder *b = call->b;
    const int64_t affordable = COUPLING_NODES / (STEP_NODES * p->classes);
    const int64_t turns = affordable < TURNS_LEAST ? TURNS_LEAST : affordable;
    const uint32_t r = against(call, p, decision);
    const uint32_t turned = ifd_build_swap(b, r, 1, 2);
    struct coupling c = {.b = b, .classes = p->classes};
    c.samples = ifd_build_desc(b, decision)->shape.dim[0];
    c.diagonal = sum(b, op(&c, IFD_OP_MUL, r, r), 1, false);
    const int64_t column[3] = {c.samples, c.classes, 1};
    float *unit = take(b, (uint64_t)p->classes * (uint64_t)p->classes);
    for (int64_t i = 0; unit && i < p->classes; i++) {
        unit[i * p->classes + i] = 1;
    }
    if (b->code != IFD_OK) {
        return IFD_NONE;
    }
    const uint32_t eye = ifd_onnx_floats(b, unit, (const int64_t[]){p->classes, p->classes}, 2);
    c.q = op(&c, IFD_OP_SUB, op(&c, IFD_OP_MUL, ifd_build_reshape(b, c.diagonal, column, 3), eye),
             op(&c, IFD_OP_MUL, r, turned));
    const struct ifd_broadcast_to_attrs same = {
        .shape = {.count = 2, .value = {c.samples, c.classes}}};
    c.p = ifd_build_number(b, IFD_F32, 1 / (double)p->classes);
    c.p = ifd_build_node(b, IFD_OP_BROADCAST_TO, &c.p, 1, NULL, &same);
    for (int64_t i = 0; b->code == IFD_OK && i < turns && i < TURNS_MAX; i++) {
        couple(&c);
    }
    return c.p;
}

/* ---- the operators ---- */

/* Two classes without vectors: the second where the larger score says so, as in ONNX Runtime. */
static uint32_t linear_label(struct ifd_onnx_call *call, uint32_t labels, uint32_t scores)
{
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_attr *weight = ifd_onnx_attr(call, "coefficients");
    bool is_share = true;
    for (uint32_t i = 0; weight && i < weight->float_count; i++) {
        is_share = is_share && weight->floats[i] >= 0;
    }
    const uint32_t best = ifd_onnx_label_of(b, labels, scores);
    if (columns(b, scores) != 2) {
        return best;
    }
    const struct ifd_ints last = {.count = 1, .value = {1}};
    const uint32_t most = ifd_build_reduce(b, IFD_OP_REDUCE_MAX, scores, &last, false);
    const uint32_t is_second =
        ifd_onnx_compared(b, is_share ? IFD_OP_GREATER_EQUAL : IFD_OP_GREATER, most,
                          ifd_build_number(b, IFD_F32, is_share ? 0.5 : 0));
    return ifd_onnx_selected(b, is_second, ifd_build_cut(b, labels, 0, 1, 1), best);
}

static void classify(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = ifd_onnx_rows(call);
    const uint32_t labels = ifd_onnx_class_labels(call, "classlabels_ints");
    const int64_t classes = labels == IFD_NONE ? 0 : ifd_build_desc(b, labels)->shape.dim[0];
    const struct ifd_onnx_attr *slope = ifd_onnx_attr(call, "prob_a");
    const struct ifd_onnx_attr *rho = ifd_onnx_attr(call, "rho");
    struct pairs p;
    if (b->code != IFD_OK || classes < 2 || classes > CLASSES_MAX || !rho ||
        rho->float_count == 0) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "%lld labels, limit %d, or no rho", (long long)classes,
                       CLASSES_MAX);
        return;
    }
    if (!take_pairs(call, classes, &p)) {
        return;
    }
    const bool is_coupled = p.vectors > 0 && slope && slope->float_count > 0;
    if (is_coupled && classes > COUPLED_MAX) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "probabilities of %lld classes, limit %d",
                       (long long)classes, COUPLED_MAX);
        return;
    }
    uint32_t label = IFD_NONE, scores = IFD_NONE;
    if (p.vectors == 0) {
        scores = with(
            b, IFD_OP_ADD,
            ifd_build_layer(b, x, matrix(call, "coefficients", classes, columns(b, x)), IFD_NONE),
            (double)rho->floats[0]);
        label = linear_label(call, labels, scores);
        scores = ifd_onnx_transformed(call, scores);
    } else {
        scores = decisions(call, &p, x);
        label = ifd_onnx_label_of(b, labels, votes(b, &p, scores));
        if (is_coupled) {
            scores = ifd_onnx_transformed(call, probabilities(call, &p, scores));
        } else if (classes == 2) {
            const struct ifd_axis_attrs attrs = {.axis = 1};
            const bool is_plain = ifd_onnx_text_is(call, "post_transform", "NONE", true);
            const uint32_t other =
                is_plain ? ifd_build_unary(b, IFD_OP_NEG, scores)
                         : ifd_build_binary(b, IFD_OP_SUB, ifd_build_number(b, IFD_F32, 1), scores);
            scores = ifd_build_node(b, IFD_OP_CONCAT, (const uint32_t[]){other, scores}, 2, NULL,
                                    &attrs);
        } else {
            scores = ifd_onnx_transformed(call, scores);
        }
    }
    call->output[0] = label;
    if (call->output_count > 1) {
        call->output[1] = scores;
    }
}

static void regress(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = ifd_onnx_rows(call);
    const struct ifd_onnx_attr *rho = ifd_onnx_attr(call, "rho");
    const int64_t vectors = ifd_onnx_int(call, "n_supports", 0);
    if (b->code != IFD_OK || !rho || rho->float_count == 0) {
        ifd_build_fail(b, IFD_INVALID, "no rho");
        return;
    }
    const int64_t width = columns(b, x);
    const uint32_t k =
        vectors > 0 ? kernels(call, x, matrix(call, "support_vectors", vectors, width)) : x;
    const uint32_t weight = matrix(call, "coefficients", 1, vectors > 0 ? vectors : width);
    uint32_t y =
        with(b, IFD_OP_ADD, ifd_build_layer(b, k, weight, IFD_NONE), (double)rho->floats[0]);
    if (ifd_onnx_int(call, "one_class", 0) != 0) {
        const uint32_t is_in =
            ifd_onnx_compared(b, IFD_OP_GREATER, y, ifd_build_number(b, IFD_F32, 0));
        y = ifd_onnx_selected(b, is_in, ifd_build_number(b, IFD_F32, 1),
                              ifd_build_number(b, IFD_F32, -1));
    }
    call->output[0] = y;
}

void ifd_onnx_svm(struct ifd_onnx_call *call, int is_classifier)
{
    if (is_classifier) {
        classify(call);
    } else {
        regress(call);
    }
}

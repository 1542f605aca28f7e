/* STABLEHLO_GATHER and STABLEHLO_SCATTER: windows of a tensor that indices place, as places in the
 * tensor's rows. */
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/tflite/composite.h"

#define PLACES_MAX ((int64_t)1 << 24) /* rows of all windows */

/* Where windows lie: rows [n, k] of indices, whose column c is an index of dimension map[c]. */
struct windows {
    struct ifd_builder *b;
    struct ifd_shape operand;
    struct ifd_ints size; /* of a window, along each dimension of the operand */
    struct ifd_ints map;
    uint32_t indices;
    int64_t count;    /* n */
    uint32_t outer;   /* dimensions whose elements are rows; the others are whole in each window */
    int64_t row_size; /* elements */
    int64_t rows;
};

static bool is_in(const struct ifd_ints *list, int64_t number)
{
    bool found = false;
    for (uint32_t i = 0; i < list->count; i++) {
        found = found || list->value[i] == number;
    }
    return found;
}

/* As the definition wants the dimensions of windows; LiteRT computes something else otherwise. */
static bool is_rising(const struct ifd_ints *list)
{
    bool rises = true;
    for (uint32_t i = 1; i < list->count; i++) {
        rises = rises && list->value[i - 1] < list->value[i];
    }
    return rises;
}

/* Different dimensions of so many. */
static bool are_dims(const struct ifd_ints *list, uint32_t rank)
{
    bool fits = list->count <= rank;
    for (uint32_t i = 0; fits && i < list->count; i++) {
        const struct ifd_ints before = {.count = i};
        struct ifd_ints seen = before;
        memcpy(seen.value, list->value, i * sizeof(*seen.value));
        fits = list->value[i] >= 0 && list->value[i] < rank && !is_in(&seen, list->value[i]);
    }
    return fits;
}

static uint32_t compared(struct ifd_builder *b, enum ifd_op op, uint32_t x, double number)
{
    const struct ifd_desc output = {.dtype = IFD_BOOL};
    const uint32_t operand[2] = {x, ifd_build_number(b, IFD_S64, number)};
    return ifd_build_node(b, op, operand, 2, &output, NULL);
}

/* Indices as s64 [n, k]. ret_batch: their other dimensions. */
static bool take_indices(struct windows *w, uint32_t indices, int64_t axis,
                         struct ifd_shape *ret_batch)
{
    struct ifd_builder *b = w->b;
    const struct ifd_shape shape = ifd_build_desc(b, indices)->shape;
    const bool has_axis = axis < shape.rank;
    uint32_t perm[IFD_MAX_RANK];
    *ret_batch = (struct ifd_shape){0};
    w->count = 1;
    if (b->code == IFD_OK &&
        (axis < 0 || axis > shape.rank || (has_axis ? shape.dim[axis] : 1) != w->map.count)) {
        ifd_build_fail(b, IFD_CORRUPT, "indices %s, whose dimension %lld names %u others",
                       ifd_shape_text(&shape).s, (long long)axis, w->map.count);
    }
    for (uint32_t d = 0; b->code == IFD_OK && d < shape.rank; d++) {
        if (d != axis) {
            perm[ret_batch->rank] = d;
            ret_batch->dim[ret_batch->rank++] = shape.dim[d];
            w->count *= shape.dim[d]; /* of a tensor whose bytes can be counted */
        }
    }
    if (b->code != IFD_OK) {
        return false;
    }
    if (has_axis) {
        perm[shape.rank - 1] = (uint32_t)axis;
        indices = ifd_build_transpose(b, indices, perm);
    }
    w->indices = ifd_build_reshape(b, ifd_build_cast(b, indices, IFD_S64),
                                   (int64_t[]){w->count, w->map.count}, 2);
    return b->code == IFD_OK;
}

/* Which dimensions are whole in each window, and how many rows the others make. */
static bool measure(struct windows *w)
{
    int64_t places = w->count;
    w->outer = w->operand.rank;
    w->row_size = w->rows = 1;
    while (w->outer > 0 && w->size.value[w->outer - 1] == w->operand.dim[w->outer - 1] &&
           !is_in(&w->map, w->outer - 1)) {
        w->row_size *= w->operand.dim[--w->outer];
    }
    for (uint32_t d = 0; d < w->outer; d++) {
        w->rows *= w->operand.dim[d];
        if (places <= PLACES_MAX) {
            places = w->size.value[d] > PLACES_MAX ? PLACES_MAX + 1 : places * w->size.value[d];
        }
    }
    if (places > PLACES_MAX) {
        ifd_build_fail(w->b, IFD_TOO_LARGE, "windows of more than %lld rows",
                       (long long)PLACES_MAX);
    }
    return w->b->code == IFD_OK;
}

/* Column of the indices for dimension d as [n, 1, 1]; zero where no index names it. */
static uint32_t start_of(const struct windows *w, uint32_t d)
{
    const int64_t dim[3] = {w->count, 1, 1};
    for (uint32_t k = 0; k < w->map.count; k++) {
        if (w->map.value[k] == d) {
            return ifd_build_reshape(w->b, ifd_build_cut(w->b, w->indices, 1, k, 1), dim, 3);
        }
    }
    return ifd_composite_fill(w->b, IFD_S64, 0, dim, 3);
}

/* 0 … count-1 as [1, 1, count] */
static uint32_t ramp(struct ifd_builder *b, int64_t count)
{
    const uint32_t bounds[3] = {ifd_build_number(b, IFD_S64, 0),
                                ifd_build_number(b, IFD_S64, (double)count),
                                ifd_build_number(b, IFD_S64, 1)};
    return ifd_build_reshape(b, ifd_build_node(b, IFD_OP_RANGE, bounds, 3, NULL, NULL),
                             (int64_t[]){1, 1, count}, 3);
}

/* Rows of all windows, [n * rows of a window]. Windows that do not fit are moved if they are held;
 * else the rows outside are number rows, behind the last one. */
static uint32_t places_of(const struct windows *w, bool is_held)
{
    struct ifd_builder *b = w->b;
    const struct ifd_desc like = {.dtype = IFD_S64};
    int64_t each = 1, stride = w->rows;
    uint32_t place = ifd_composite_fill(b, IFD_S64, 0, (int64_t[]){w->count, 1, 1}, 3);
    uint32_t fits = IFD_NONE;
    for (uint32_t d = 0; d < w->outer && b->code == IFD_OK; d++) {
        const int64_t size = w->size.value[d], dim = w->operand.dim[d];
        uint32_t at = start_of(w, d);
        stride = dim > 0 ? stride / dim : 0;
        if (is_held) {
            at = ifd_build_with(b, IFD_OP_MINIMUM, at, (double)(dim - size));
            at = ifd_build_with(b, IFD_OP_MAXIMUM, at, 0);
        }
        at = ifd_build_binary(b, IFD_OP_ADD, at, ramp(b, size)); /* [n, 1, size] */
        const int64_t flat[3] = {w->count, each * size, 1};
        place = ifd_build_binary(b, IFD_OP_ADD, place,
                                 ifd_build_with(b, IFD_OP_MUL, at, (double)stride));
        place = ifd_build_reshape(b, place, flat, 3);
        if (!is_held) {
            const uint32_t inside =
                ifd_build_binary(b, IFD_OP_LOGICAL_AND, compared(b, IFD_OP_GREATER_EQUAL, at, 0),
                                 compared(b, IFD_OP_LESS, at, (double)dim));
            const int64_t thin[3] = {w->count, each, 1};
            fits = fits == IFD_NONE
                       ? ifd_build_node(b, IFD_OP_BROADCAST_TO, &inside, 1, NULL,
                                        &(struct ifd_broadcast_to_attrs){
                                            .shape = {.count = 3, .value = {w->count, each, size}}})
                       : ifd_build_binary(b, IFD_OP_LOGICAL_AND,
                                          ifd_build_reshape(b, fits, thin, 3), inside);
            fits = ifd_build_reshape(b, fits, flat, 3);
        }
        each *= size;
    }
    if (fits != IFD_NONE) {
        const uint32_t choice[3] = {fits, place, ifd_build_number(b, IFD_S64, (double)w->rows)};
        place = ifd_build_node(b, IFD_OP_SELECT, choice, 3, &like, NULL);
    }
    const int64_t all = w->count * each;
    return ifd_build_reshape(b, place, &all, 1);
}

static bool check_options(const struct ifd_composite *c, uint32_t inputs)
{
    if (!c->options->windows) {
        ifd_build_fail(c->b, IFD_CORRUPT, "no options");
        return false;
    }
    return ifd_composite_has_inputs(c, inputs);
}

static int64_t elements(const struct ifd_shape *shape)
{
    int64_t count = 1;
    for (uint32_t d = 0; d < shape->rank; d++) {
        count *= shape->dim[d];
    }
    return count;
}

/* Of a result whose dimensions offset are those of the windows, the others those of the batch:
 * where each lies if the batch comes first. ret: of rank batch + offset. */
static void order_of(const struct ifd_ints *offset, uint32_t batch, uint32_t rank, uint32_t *ret)
{
    uint32_t of_batch = 0, of_window = 0;
    for (uint32_t d = 0; d < rank; d++) {
        ret[d] = is_in(offset, d) ? batch + of_window++ : of_batch++;
    }
}

/* Inputs: operand, indices. */
void ifd_composite_hlo_gather(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    const struct ifd_tflite_windows *o = c->options->windows;
    struct windows w = {.b = b};
    struct ifd_shape batch;
    uint32_t perm[IFD_MAX_RANK];
    if (!check_options(c, 2)) {
        return;
    }
    w.operand = ifd_build_desc(b, c->input[0])->shape;
    w.size = o->size;
    w.map = o->between;
    const uint32_t rank = w.operand.rank;
    bool fits = w.size.count == rank && are_dims(&w.map, rank) && are_dims(&o->high, rank);
    for (uint32_t d = 0; fits && d < rank; d++) {
        fits = w.size.value[d] >= 0 && w.size.value[d] <= w.operand.dim[d] &&
               (!is_in(&o->high, d) || w.size.value[d] == 1);
    }
    if (!fits || o->low.count != rank - o->high.count) {
        ifd_build_fail(b, IFD_CORRUPT, "windows that do not fit %s", ifd_shape_text(&w.operand).s);
        return;
    }
    if (!take_indices(&w, c->input[1], c->options->axis, &batch) || !measure(&w)) {
        return;
    }
    if (batch.rank + o->low.count > IFD_MAX_RANK || !are_dims(&o->low, batch.rank + o->low.count)) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "a result of %u dimensions", batch.rank + o->low.count);
        return;
    }
    const struct ifd_gather_attrs rows = {.axis = 0};
    const uint32_t pair[2] = {ifd_build_reshape(b, c->input[0], (int64_t[]){w.rows, w.row_size}, 2),
                              places_of(&w, true)};
    const uint32_t found = ifd_build_node(b, IFD_OP_GATHER, pair, 2, NULL, &rows);
    order_of(&o->low, batch.rank, batch.rank + o->low.count, perm);
    for (uint32_t d = 0; d < rank; d++) {
        if (!is_in(&o->high, d)) {
            batch.dim[batch.rank++] = w.size.value[d];
        }
    }
    c->output[0] = ifd_build_transpose(b, ifd_build_reshape(b, found, batch.dim, batch.rank), perm);
}

/* What the body of a scatter does: nothing replaces; LiteRT takes one operator of these. */
static bool find_mode(const struct ifd_composite *c, int32_t *ret)
{
    static const struct {
        int32_t builtin, mode;
    } known[] = {{163, IFD_SCATTER_ADD},
                 {165, IFD_SCATTER_MUL},
                 {166, IFD_SCATTER_MAX},
                 {181, IFD_SCATTER_MIN}};
    const struct ifd_tflite_model *model = c->build->model;
    const uint32_t body = c->options->subgraph[0];
    if (body >= model->subgraph_count) {
        ifd_build_fail(c->b, IFD_CORRUPT, "subgraph %u of %u", body, model->subgraph_count);
        return false;
    }
    const struct ifd_tflite_subgraph *g = &model->subgraph[body];
    if (g->op_count == 0) {
        *ret = IFD_SCATTER_REPLACE;
        return true;
    }
    const int32_t builtin = model->opcode[g->op[0].opcode_index].builtin;
    for (size_t i = 0; g->op_count == 1 && i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].builtin == builtin) {
            *ret = known[i].mode;
            return true;
        }
    }
    ifd_build_fail(c->b, IFD_UNSUPPORTED, "a body of %u operators, the first number %d",
                   g->op_count, builtin);
    return false;
}

/* Sizes of the windows from the updates; those of the inserted dimensions are 1. */
static bool size_windows(struct windows *w, const struct ifd_tflite_windows *o,
                         const struct ifd_shape *updates)
{
    const uint32_t rank = w->operand.rank;
    uint32_t next = 0;
    bool fits = are_dims(&w->map, rank) && are_dims(&o->high, rank) &&
                are_dims(&o->low, updates->rank) && o->low.count == rank - o->high.count;
    w->size.count = rank;
    if (!is_rising(&o->low)) {
        ifd_build_fail(w->b, IFD_CORRUPT, "dimensions of windows that do not rise");
        return false;
    }
    for (uint32_t d = 0; fits && d < rank; d++) {
        w->size.value[d] = is_in(&o->high, d) ? 1 : updates->dim[o->low.value[next++]];
        fits = w->size.value[d] <= w->operand.dim[d];
    }
    if (!fits) {
        ifd_build_fail(w->b, IFD_CORRUPT, "windows %s that do not fit %s",
                       ifd_shape_text(updates).s, ifd_shape_text(&w->operand).s);
    }
    return fits;
}

/* The updates with the batch first. */
static uint32_t batch_first(const struct windows *w, uint32_t updates, const struct ifd_ints *low,
                            const struct ifd_shape *batch)
{
    const struct ifd_shape shape = ifd_build_desc(w->b, updates)->shape;
    uint32_t place[IFD_MAX_RANK], perm[IFD_MAX_RANK];
    order_of(low, batch->rank, shape.rank, place);
    bool fits = shape.rank == batch->rank + low->count;
    for (uint32_t d = 0; fits && d < shape.rank; d++) {
        perm[place[d]] = d;
        fits = place[d] >= batch->rank || shape.dim[d] == batch->dim[place[d]];
    }
    return fits ? ifd_build_transpose(w->b, updates, perm)
                : ifd_build_fail(w->b, IFD_CORRUPT, "updates %s for indices %s",
                                 ifd_shape_text(&shape).s, ifd_shape_text(batch).s);
}

/* Inputs: operand, indices, updates. What lies outside goes to a row behind the last one. */
void ifd_composite_hlo_scatter(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    const struct ifd_tflite_windows *o = c->options->windows;
    const struct ifd_axis_attrs first = {.axis = 0};
    struct ifd_scatter_rows_attrs attrs = {0};
    struct windows w = {.b = b};
    struct ifd_shape batch;
    if (!check_options(c, 3) || !find_mode(c, &attrs.mode)) {
        return;
    }
    w.operand = ifd_build_desc(b, c->input[0])->shape;
    w.map = o->between;
    const struct ifd_shape updates = ifd_build_desc(b, c->input[2])->shape;
    if (!size_windows(&w, o, &updates) ||
        !take_indices(&w, c->input[1], c->options->axis, &batch) || !measure(&w)) {
        return;
    }
    if (elements(&updates) == 0 || elements(&w.operand) == 0) {
        c->output[0] = c->input[0];
        return;
    }
    const uint32_t news = batch_first(&w, c->input[2], &o->low, &batch);
    const int64_t count = elements(&updates) / w.row_size;
    const int64_t base[2] = {w.rows, w.row_size}, rows[2] = {count, w.row_size};
    const uint32_t parts[2] = {ifd_build_reshape(b, c->input[0], base, 2),
                               ifd_build_cut(b, ifd_build_reshape(b, news, rows, 2), 0, 0, 1)};
    const uint32_t operand[3] = {ifd_build_node(b, IFD_OP_CONCAT, parts, 2, NULL, &first),
                                 places_of(&w, false), ifd_build_reshape(b, news, rows, 2)};
    const uint32_t all = ifd_build_node(b, IFD_OP_SCATTER_ROWS, operand, 3, NULL, &attrs);
    c->output[0] =
        ifd_build_reshape(b, ifd_build_cut(b, all, 0, 0, w.rows), w.operand.dim, w.operand.rank);
}

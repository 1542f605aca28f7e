/* Detection by a grid: rows of centre, size, objectness and a score for each class (YOLO v3, v5,
 * X). One output holds the rows of all levels, or each level has a map of its own. */
#include "engine/base/str.h"
#include "server/objects/anchors_impl.h"
#include "server/objects/candidates_impl.h"

#define BEFORE_CLASSES 5

/* What the numbers of a row mean: X(id, name in a config). */
#define CODINGS(X)                                                                                 \
    X(V3, "v3")     /* centre σ(x) cells, size e^w anchors, σ of scores */                       \
    X(V5, "v5")     /* centre 2σ(x) − ½ cells, size (2σ(w))² anchors, σ of scores */        \
    X(X, "x")       /* centre x cells, size e^w cells */                                           \
    X(NONE, "none") /* as they are */

#define X(id, name) CODING_##id,
enum coding { CODINGS(X) CODING_COUNT };
#undef X

/* Where a level's map has its numbers: each index has its step. */
struct map {
    size_t row_step, column_step, anchor_step, number_step;
};

struct plan {
    struct ifd_plan common; /* first */
    struct ifd_levels levels;
    bool has_maps; /* an output for each level */
    struct map map[IFD_LEVELS_MAX];
    uint32_t coding;
    size_t numbers;       /* of a row */
    float unit_x, unit_y; /* pixels for one of a box's numbers, where they are as they are */
};

/* ---- at load ---- */

/* Finds the order of a level's own map: [rows, columns, anchors × numbers], the same with anchors
 * and numbers apart, or either of them in front. */
static bool place_map(const struct ifd_shape *shape, const struct ifd_level *level, struct map *ret,
                      size_t *ret_numbers)
{
    const int64_t rows = level->rows, columns = level->columns, anchors = level->count;
    const int64_t *dim = shape->dim;
    const size_t cells = (size_t)(rows * columns);
    if (shape->rank == 3 && dim[0] == rows && dim[1] == columns && dim[2] % anchors == 0) {
        *ret_numbers = (size_t)(dim[2] / anchors);
        ret->number_step = 1;
        ret->anchor_step = *ret_numbers;
        ret->column_step = (size_t)dim[2];
    } else if (shape->rank == 3 && dim[1] == rows && dim[2] == columns && dim[0] % anchors == 0) {
        *ret_numbers = (size_t)(dim[0] / anchors);
        ret->number_step = cells;
        ret->anchor_step = cells * *ret_numbers;
        ret->column_step = 1;
    } else if (shape->rank == 4 && dim[0] == rows && dim[1] == columns && dim[2] == anchors) {
        *ret_numbers = (size_t)dim[3];
        ret->number_step = 1;
        ret->anchor_step = (size_t)dim[3];
        ret->column_step = (size_t)(dim[3] * anchors);
    } else if (shape->rank == 4 && dim[0] == anchors && dim[1] == rows && dim[2] == columns) {
        *ret_numbers = (size_t)dim[3];
        ret->number_step = 1;
        ret->anchor_step = cells * (size_t)dim[3];
        ret->column_step = (size_t)dim[3];
    } else {
        return false;
    }
    ret->row_step = ret->column_step * (size_t)columns;
    return true;
}

/* Each level has the output of its form. */
static enum ifd_code find_maps(struct ifd_setup *setup, struct plan *plan, struct ifd_err *err)
{
    for (uint32_t l = 0; l < plan->levels.count; l++) {
        const struct ifd_level *level = &plan->levels.level[l];
        bool is_found = false;
        size_t numbers = 0;
        for (uint32_t i = 0; i < setup->desc->output_count && !is_found; i++) {
            const struct ifd_shape shape = ifd_setup_shape(setup, i);
            is_found = place_map(&shape, level, &plan->map[l], &numbers) &&
                       (l == 0 || numbers == plan->numbers);
            setup->role[l] = i;
        }
        if (!is_found) {
            return ifd_fail(err, IFD_INVALID,
                            "no output has the form of %u×%u cells with %u anchors each",
                            level->columns, level->rows, level->count);
        }
        plan->numbers = numbers;
    }
    setup->role_count = plan->levels.count;
    plan->has_maps = true;
    return IFD_OK;
}

/* One output [N, numbers] has all rows; N is that of the anchors, if there are any. */
static enum ifd_code find_rows(struct ifd_setup *setup, struct plan *plan, struct ifd_err *err)
{
    const uint32_t output = setup->are_roles_named ? setup->role[0] : 0;
    const struct ifd_shape shape = ifd_setup_shape(setup, output);
    const long long anchors = (long long)plan->levels.anchor_count;
    if (shape.rank != 2 || shape.dim[1] < 0) {
        return ifd_fail(err, IFD_INVALID, "output '%s' has no rows of a known length",
                        setup->desc->output[output].name);
    }
    if (anchors > 0 && shape.dim[0] >= 0 && shape.dim[0] != anchors) {
        return ifd_fail(err, IFD_INVALID, "%lld anchors for the %lld rows of output '%s'", anchors,
                        (long long)shape.dim[0], setup->desc->output[output].name);
    }
    setup->role[0] = output;
    setup->role_count = 1;
    plan->numbers = (size_t)shape.dim[1];
    return IFD_OK;
}

static enum ifd_code read_plan(struct ifd_setup *setup, struct plan *plan, struct ifd_err *err)
{
    static const char *const codings[] = {
#define X(id, name) name,
        CODINGS(X)
#undef X
    };
    plan->coding = CODING_NONE;
    enum ifd_code code =
        ifd_parameter_word(setup->desc, "grid_coding", codings, CODING_COUNT, &plan->coding, err);
    code = code ? code : ifd_setup_unit(setup, &plan->unit_x, &plan->unit_y, err);
    if (!code) {
        code = plan->coding == CODING_X ? ifd_strides_read(setup, "8,16,32", &plan->levels, err)
                                        : ifd_levels_read(setup, &plan->levels, err);
    }
    if (!code && (plan->coding == CODING_NONE) != (plan->levels.count == 0)) {
        code = ifd_fail(err, IFD_INVALID, "\"grid_coding\" %s needs %s", codings[plan->coding],
                        plan->levels.count == 0 ? "\"anchors\"" : "no \"anchors\"");
    }
    return code;
}

static enum ifd_code prepare(struct ifd_setup *setup, struct ifd_plan **ret, struct ifd_err *err)
{
    struct plan made = {0};
    enum ifd_code code = read_plan(setup, &made, err);
    if (!code) {
        const uint32_t outputs =
            setup->are_roles_named ? setup->role_count : setup->desc->output_count;
        code = made.levels.count > 1 && outputs >= made.levels.count ? find_maps(setup, &made, err)
                                                                     : find_rows(setup, &made, err);
    }
    if (!code && made.numbers <= BEFORE_CLASSES) {
        code =
            ifd_fail(err, IFD_INVALID, "rows of %zu numbers, expected more than 5", made.numbers);
    }
    if (!code) {
        code = ifd_setup_plan(setup, &made, sizeof(made), ret, err);
    }
    if (code) {
        return code;
    }
    return ifd_setup_classes(setup, (int64_t)made.numbers - BEFORE_CLASSES, err);
}

/* ---- decoding ---- */

/* A row of an output: its first number, and the step to the next one. */
struct row {
    const struct ifd_values *values;
    size_t first, step;
};

static float number_of(const struct row *row, size_t i)
{
    return ifd_value(row->values, row->first + i * row->step);
}

static float best_score(const struct plan *plan, const struct row *row, uint32_t *ret_class)
{
    const bool is_raw = plan->coding == CODING_V3 || plan->coding == CODING_V5;
    float most = number_of(row, BEFORE_CLASSES);
    size_t best = BEFORE_CLASSES;
    for (size_t i = BEFORE_CLASSES + 1; i < plan->numbers; i++) {
        const float value = number_of(row, i);
        best = value > most ? i : best;
        most = value > most ? value : most;
    }
    *ret_class = (uint32_t)(best - BEFORE_CLASSES);
    const float objectness = number_of(row, 4);
    return is_raw ? ifd_sigmoid(most) * ifd_sigmoid(objectness) : most * objectness;
}

/* Sizes that are stored as logarithms and overflow become infinite, and no candidates. */
static void read_box(const struct plan *plan, const struct row *row, const struct ifd_anchor *at,
                     float *ret)
{
    const struct ifd_level *level = &plan->levels.level[at->level];
    const float column = (float)at->column, line = (float)at->row;
    float x = number_of(row, 0), y = number_of(row, 1), w = number_of(row, 2),
          h = number_of(row, 3);
    switch ((enum coding)plan->coding) {
    case CODING_V3:
        x = (ifd_sigmoid(x) + column) * level->step_x;
        y = (ifd_sigmoid(y) + line) * level->step_y;
        w = expf(w) * level->width[at->number];
        h = expf(h) * level->height[at->number];
        break;
    case CODING_V5:
        x = (2 * ifd_sigmoid(x) - 0.5f + column) * level->step_x;
        y = (2 * ifd_sigmoid(y) - 0.5f + line) * level->step_y;
        w = 4 * ifd_sigmoid(w) * ifd_sigmoid(w) * level->width[at->number];
        h = 4 * ifd_sigmoid(h) * ifd_sigmoid(h) * level->height[at->number];
        break;
    case CODING_X:
        x = (x + column) * level->step_x;
        y = (y + line) * level->step_y;
        w = expf(w) * level->step_x;
        h = expf(h) * level->step_y;
        break;
    case CODING_NONE:
    case CODING_COUNT:
        x *= plan->unit_x;
        y *= plan->unit_y;
        w *= plan->unit_x;
        h *= plan->unit_y;
        break;
    }
    ret[0] = x - w / 2;
    ret[1] = y - h / 2;
    ret[2] = x + w / 2;
    ret[3] = y + h / 2;
}

/* Row number place of all. */
static struct row find_row(const struct ifd_decoding *decoding, size_t place,
                           const struct ifd_anchor *at)
{
    const struct plan *plan = decoding->plan;
    if (!plan->has_maps) {
        return (struct row){
            .values = &decoding->value[0], .first = place * plan->numbers, .step = 1};
    }
    const struct map *map = &plan->map[at->level];
    return (struct row){.values = &decoding->value[at->level],
                        .first = at->row * map->row_step + at->column * map->column_step +
                                 at->number * map->anchor_step,
                        .step = map->number_step};
}

static enum ifd_code check_counts(const struct ifd_decoding *decoding, size_t *ret_rows,
                                  struct ifd_err *err)
{
    const struct plan *plan = decoding->plan;
    size_t numbers = 0;
    for (uint32_t i = 0; i < plan->common.role_count; i++) {
        numbers += decoding->value[i].count;
    }
    *ret_rows = numbers / plan->numbers;
    const bool is_whole = numbers % plan->numbers == 0 && *ret_rows <= UINT32_MAX;
    if (!is_whole || (plan->levels.count > 0 && *ret_rows != plan->levels.anchor_count)) {
        return ifd_fail(err, IFD_INVALID,
                        "outputs have %zu numbers for rows of %zu and %zu anchors", numbers,
                        plan->numbers, plan->levels.anchor_count);
    }
    return IFD_OK;
}

static enum ifd_code decode(const struct ifd_decoding *decoding, struct ifd_err *err)
{
    const struct plan *plan = decoding->plan;
    struct ifd_candidates candidates;
    struct ifd_anchor at = {0};
    size_t rows = 0;
    enum ifd_code code = check_counts(decoding, &rows, err);
    if (!code) {
        code = ifd_candidates_init(&candidates, decoding->arena, err);
    }
    for (size_t place = 0; place < rows && !code; place++) {
        const struct row row = find_row(decoding, place, &at);
        struct ifd_candidate candidate = {.place = (uint32_t)place};
        candidate.score = best_score(plan, &row, &candidate.index);
        if (candidate.score >= decoding->options->threshold) {
            read_box(plan, &row, &at, candidate.box);
            ifd_candidates_add(&candidates, decoding->options, &candidate);
        }
        if (plan->levels.count > 0) {
            ifd_anchor_next(&plan->levels, &at);
        }
    }
    return code ? code : ifd_candidates_finish(&candidates, decoding, false, NULL, 0, err);
}

const struct ifd_decoder ifd_decoder_yolo_grid = {
    .name = "yolo_grid", .task = IFD_TASK_DETECTION, .prepare = prepare, .decode = decode};

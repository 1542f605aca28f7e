/* Segmentation: the best class of each cell of a grid that covers the model's input. */
#include "server/objects/decoder_impl.h"

#include <stdlib.h>

#define CLASSES_MAX 255
#define UNSEEN      255 /* a pixel that the model did not see, or of a class that is not wanted */

struct plan {
    struct ifd_plan common; /* first */
    bool channels_first;    /* [classes, height, width], else [height, width, classes] */
    uint32_t activation;
};

/* A grid of classes, and which of its cells each row or column of the picture lies in. */
struct grid {
    size_t height, width, classes;
    uint8_t *cell; /* class */
};

/* Cells along one axis. */
struct axis {
    uint32_t *cell; /* of each pixel of the picture; cell_count: none */
    uint32_t *pixel_count;
    uint32_t cell_count, picture_size;
};

static enum ifd_code check_form(const struct ifd_shape *shape, bool channels_first,
                                struct ifd_err *err)
{
    const int64_t classes = shape->rank == 3 ? shape->dim[channels_first ? 0 : 2] : 1;
    if (shape->rank != 2 && shape->rank != 3) {
        return ifd_fail(err, IFD_INVALID, "expected an output [height,width,classes], got rank %u",
                        shape->rank);
    }
    if (classes > CLASSES_MAX) {
        return ifd_fail(err, IFD_INVALID, "%lld classes, the most are %d", (long long)classes,
                        CLASSES_MAX);
    }
    return IFD_OK;
}

static enum ifd_code prepare(struct ifd_setup *setup, struct ifd_plan **ret, struct ifd_err *err)
{
    struct plan made = {0};
    ifd_setup_one_role(setup);
    const struct ifd_shape shape = ifd_setup_shape(setup, setup->role[0]);
    enum ifd_code code = ifd_setup_layout(setup, &made.channels_first, err);
    code = code ? code : ifd_setup_activation(setup, "activation", false, &made.activation, err);
    if (!code && setup->meaning->input_width == 0) {
        code = ifd_fail(err, IFD_INVALID, "the model takes no picture");
    }
    if (!code) {
        code = check_form(&shape, made.channels_first, err);
    }
    if (!code && shape.rank == 3 && shape.dim[made.channels_first ? 0 : 2] > 1) {
        code = ifd_setup_classes(setup, shape.dim[made.channels_first ? 0 : 2], err);
    }
    return code ? code : ifd_setup_plan(setup, &made, sizeof(made), ret, err);
}

/* ---- the classes of the grid ---- */

/* Of one score a cell: class 1 where it reaches the threshold. Of none but the class itself: that
 * class. */
static uint8_t single_class(const struct ifd_decoding *decoding, const struct plan *plan, size_t i)
{
    const struct ifd_values *values = &decoding->value[0];
    const float value = ifd_value(values, i);
    if (values->dtype != IFD_F32 && values->scale <= 0) {
        return value >= 0 && value < UNSEEN ? (uint8_t)value : UNSEEN;
    }
    return ifd_score((enum ifd_activation)plan->activation, value) >= decoding->options->threshold;
}

static uint8_t best_class(const struct ifd_values *values, size_t first, size_t step, size_t count)
{
    float most = ifd_value_stored(values, first);
    size_t best = 0;
    for (size_t c = 1; c < count; c++) {
        const float value = ifd_value_stored(values, first + c * step);
        best = value > most ? c : best;
        most = value > most ? value : most;
    }
    return (uint8_t)best;
}

static enum ifd_code fill_grid(const struct ifd_decoding *decoding, struct grid *grid,
                               struct ifd_err *err)
{
    const struct plan *plan = decoding->plan;
    const struct ifd_values *values = &decoding->value[0];
    const struct ifd_shape *shape = &values->shape;
    enum ifd_code code = check_form(shape, plan->channels_first, err);
    if (code) {
        return code;
    }
    const uint32_t lead = shape->rank == 3 && plan->channels_first ? 1 : 0;
    grid->classes = shape->rank == 3 ? (size_t)shape->dim[lead ? 0 : 2] : 1;
    grid->height = (size_t)shape->dim[lead];
    grid->width = (size_t)shape->dim[lead + 1];
    const size_t cells = grid->height * grid->width;
    if (cells == 0 || grid->classes == 0) {
        return ifd_fail(err, IFD_INVALID, "a grid of %zu×%zu cells and %zu classes", grid->height,
                        grid->width, grid->classes);
    }
    grid->cell = ifd_arena_take_room(decoding->arena, cells);
    if (!grid->cell) {
        return ifd_arena_fail(decoding->arena, cells, err);
    }
    for (size_t i = 0; i < cells; i++) {
        const uint8_t index = grid->classes == 1 ? single_class(decoding, plan, i)
                                                 : best_class(values, lead ? i : i * grid->classes,
                                                              lead ? cells : 1, grid->classes);
        grid->cell[i] = ifd_options_want(decoding->options, index) ? index : UNSEEN;
    }
    return IFD_OK;
}

/* ---- in the picture ---- */

/* The grid begins at low in the picture and is extent pixels long. */
static enum ifd_code fill_axis(struct ifd_arena *arena, double low, double extent,
                               size_t cell_count, uint32_t picture_size, struct axis *ret,
                               struct ifd_err *err)
{
    *ret = (struct axis){.cell_count = (uint32_t)cell_count, .picture_size = picture_size};
    ret->cell = ifd_arena_take_array(arena, picture_size, sizeof(*ret->cell));
    ret->pixel_count = ifd_arena_take_array(arena, cell_count, sizeof(*ret->pixel_count));
    if (!ret->cell || !ret->pixel_count) {
        return ifd_arena_fail(arena, picture_size * sizeof(*ret->cell), err);
    }
    for (uint32_t i = 0; i < picture_size; i++) {
        const double at = (i + 0.5 - low) / extent * (double)cell_count;
        const bool is_seen = at >= 0 && at < (double)cell_count;
        ret->cell[i] = is_seen ? (uint32_t)at : ret->cell_count;
        if (is_seen) {
            ret->pixel_count[ret->cell[i]]++;
        }
    }
    return IFD_OK;
}

static int by_area(const void *a, const void *b)
{
    const struct ifd_segment *x = a, *y = b;
    if (x->area != y->area) {
        return x->area > y->area ? -1 : 1;
    }
    return x->index < y->index ? -1 : 1;
}

static enum ifd_code list_segments(const struct ifd_decoding *decoding, const struct grid *grid,
                                   const struct axis *rows, const struct axis *columns,
                                   struct ifd_err *err)
{
    struct ifd_objects *ret = decoding->ret;
    uint64_t pixels[UNSEEN + 1] = {0};
    for (size_t y = 0; y < grid->height; y++) {
        for (size_t x = 0; x < grid->width; x++) {
            pixels[grid->cell[y * grid->width + x]] +=
                (uint64_t)rows->pixel_count[y] * columns->pixel_count[x];
        }
    }
    ret->segment = ifd_arena_take_array(decoding->arena, UNSEEN, sizeof(*ret->segment));
    if (!ret->segment) {
        return ifd_arena_fail(decoding->arena, UNSEEN * sizeof(*ret->segment), err);
    }
    const float all = (float)rows->picture_size * (float)columns->picture_size;
    for (uint32_t i = 0; i < UNSEEN; i++) {
        if (pixels[i] > 0) {
            ret->segment[ret->segment_count++] =
                (struct ifd_segment){.index = i, .area = (float)pixels[i] / all};
        }
    }
    qsort(ret->segment, ret->segment_count, sizeof(*ret->segment), by_area);
    return IFD_OK;
}

static enum ifd_code draw_mask(const struct ifd_decoding *decoding, const struct grid *grid,
                               const struct axis *rows, const struct axis *columns,
                               struct ifd_err *err)
{
    struct ifd_objects *ret = decoding->ret;
    const size_t width = columns->picture_size, height = rows->picture_size;
    size_t bytes = 0;
    uint8_t *mask =
        ifd_size_mul(width, height, &bytes) ? ifd_arena_take_room(decoding->arena, bytes) : NULL;
    if (!mask) {
        return ifd_arena_fail(decoding->arena, bytes, err);
    }
    for (size_t y = 0; y < height; y++) {
        const uint8_t *row = grid->cell + (size_t)rows->cell[y] * grid->width;
        for (size_t x = 0; x < width; x++) {
            const bool is_seen =
                rows->cell[y] < rows->cell_count && columns->cell[x] < columns->cell_count;
            mask[y * width + x] = is_seen ? row[columns->cell[x]] : UNSEEN;
        }
    }
    ret->mask = mask;
    ret->mask_width = columns->picture_size;
    ret->mask_height = rows->picture_size;
    return IFD_OK;
}

static enum ifd_code decode(const struct ifd_decoding *decoding, struct ifd_err *err)
{
    const struct ifd_picture_view *view = decoding->view;
    struct grid grid;
    struct axis rows, columns;
    enum ifd_code code = fill_grid(decoding, &grid, err);
    if (code) {
        return code;
    }
    const double input_height = (double)decoding->meaning->input_height;
    const double input_width = (double)decoding->meaning->input_width;
    code = fill_axis(decoding->arena, view->offset_y, view->scale_y * input_height, grid.height,
                     view->height, &rows, err);
    if (!code) {
        code = fill_axis(decoding->arena, view->offset_x, view->scale_x * input_width, grid.width,
                         view->width, &columns, err);
    }
    if (!code) {
        code = list_segments(decoding, &grid, &rows, &columns, err);
    }
    return code || decoding->options->mask == IFD_MASK_NONE
               ? code
               : draw_mask(decoding, &grid, &rows, &columns, err);
}

const struct ifd_decoder ifd_decoder_argmax = {
    .name = "argmax", .task = IFD_TASK_SEGMENTATION, .prepare = prepare, .decode = decode};

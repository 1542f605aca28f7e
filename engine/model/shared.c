/* Memory that the variants of an instance share: one runs at a time, and what outlives its run is
 * what the next ones read. */
#include "engine/model/shapes_impl.h"

/* A block grows by more than it has to: a loop's values may grow in each turn. */
#define MORE_MAX    ((size_t)8 << 20)
#define MORE(bytes) ((bytes) / 4 < MORE_MAX ? (bytes) / 4 : MORE_MAX)
/* Results of a small variant would hold a large block. */
#define FAR_TOO_LARGE(bytes) ((bytes) + ((size_t)1 << 20))

static bool lies_in(const struct ifd_tensor *tensor, const struct ifd_shared_block *block)
{
    return ifd_tensor_lies_in(tensor, block->data, block->bytes);
}

/* Is something in it that is to be read? A caller may hand in what the last run left. */
static bool is_read(const struct ifd_shapes_of *shapes, const struct ifd_shared_block *block)
{
    bool is = false;
    for (uint32_t i = 0; !is && i < shapes->live_count; i++) {
        is = lies_in(&shapes->live[i], block);
    }
    for (uint32_t k = 0; k < shapes->io_count; k++) {
        for (uint32_t i = 0; !is && i < shapes->model->info.input_count; i++) {
            is = lies_in(&shapes->io[k].input[i], block);
        }
    }
    return is;
}

/* Where the last run left it. */
static bool was_lent(const struct ifd_shapes_of *shapes, const struct ifd_tensor *tensor)
{
    const struct ifd_shared_block *block = shapes->shared;
    while (block && !lies_in(tensor, block)) {
        block = block->next;
    }
    return block;
}

void ifd_shared_forget(const struct ifd_shapes_of *shapes, const struct ifd_io *io,
                       uint32_t io_count)
{
    for (uint32_t k = 0; k < io_count; k++) {
        for (uint32_t i = 0; io[k].output && i < shapes->model->info.output_count; i++) {
            struct ifd_tensor *output = &io[k].output[i];
            output->data = was_lent(shapes, output) ? NULL : output->data;
        }
    }
}

static void drop_block(struct ifd_shapes_of *shapes, struct ifd_shared_block **link)
{
    struct ifd_shared_block *block = *link;
    *link = block->next;
    shapes->shared_bytes -= block->bytes;
    ifd_release_tensor(shapes->alloc, block->data, block->bytes);
    ifd_release(shapes->alloc, block, sizeof(*block));
}

void ifd_shared_finish(struct ifd_shapes_of *shapes)
{
    while (shapes->shared) {
        drop_block(shapes, &shapes->shared);
    }
}

/* The smallest block that fits and is free; NULL: there is none. Else the largest free one that
 * does not fit goes. */
static struct ifd_shared_block *find_block(struct ifd_shapes_of *shapes, size_t bytes)
{
    struct ifd_shared_block *best = NULL, **small = NULL;
    for (struct ifd_shared_block **link = &shapes->shared; *link; link = &(*link)->next) {
        struct ifd_shared_block *block = *link;
        if (is_read(shapes, block)) {
            continue;
        }
        if (block->bytes < bytes) {
            small = !small || block->bytes > (*small)->bytes ? link : small;
        } else if (block->bytes / 16 <= FAR_TOO_LARGE(bytes) &&
                   (!best || block->bytes < best->bytes)) {
            best = block;
        }
    }
    if (!best && small) {
        drop_block(shapes, small);
    }
    return best;
}

static void drop_free_blocks(struct ifd_shapes_of *shapes)
{
    struct ifd_shared_block **link = &shapes->shared;
    while (*link) {
        if (is_read(shapes, *link)) {
            link = &(*link)->next;
        } else {
            drop_block(shapes, link);
        }
    }
}

static enum ifd_code take_block(struct ifd_shapes_of *shapes, size_t bytes,
                                struct ifd_shared_block **ret, struct ifd_err *err)
{
    struct ifd_shared_block *block = ifd_acquire_zeroed(shapes->alloc, 1, sizeof(*block));
    if (block) {
        block->data = ifd_acquire_tensor(shapes->alloc, bytes);
    }
    if (!block || !block->data) {
        ifd_release(shapes->alloc, block, sizeof(*block));
        return ifd_fail(err, IFD_NOMEM, "no memory for tensors of %zu bytes", bytes);
    }
    block->bytes = bytes;
    block->next = shapes->shared;
    shapes->shared = block;
    shapes->shared_bytes += bytes;
    *ret = block;
    return IFD_OK;
}

/* Small values that are read later leave their blocks. Errors: NOMEM. */
static enum ifd_code copy_small(struct ifd_shapes_of *shapes, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    for (const struct ifd_shared_block *block = shapes->shared; block; block = block->next) {
        size_t bytes = 0;
        for (uint32_t i = 0; i < shapes->live_count; i++) {
            bytes += lies_in(&shapes->live[i], block) ? shapes->live[i].bytes : 0;
        }
        for (uint32_t i = 0; i < shapes->live_count && bytes <= block->bytes / 2; i++) {
            if (code == IFD_OK && lies_in(&shapes->live[i], block)) {
                code = ifd_kept_copy(&shapes->kept, &shapes->live[i], err);
            }
        }
    }
    return code;
}

static bool fits(const struct ifd_shapes_of *shapes, size_t bytes)
{
    const size_t limit = shapes->model->shape_bytes;
    return bytes <= limit && ifd_variants_bytes(shapes) <= limit - bytes;
}

/* With room to grow, if there is. A copy of what is small costs less than a plan that goes. */
static enum ifd_code add_block(struct ifd_shapes_of *shapes, size_t bytes,
                               struct ifd_shared_block **ret, struct ifd_err *err)
{
    size_t more = 0;
    if (ifd_size_add(bytes, MORE(bytes), &more) && more < shapes->model->shape_bytes / 4 &&
        fits(shapes, more) && ifd_variants_make_room(shapes, more, 0, NULL) == IFD_OK) {
        return take_block(shapes, more, ret, err);
    }
    enum ifd_code code = IFD_TOO_LARGE;
    if (fits(shapes, bytes)) {
        code = ifd_variants_make_room(shapes, bytes, 0, NULL);
    }
    if (code != IFD_OK) {
        code = copy_small(shapes, err);
        drop_free_blocks(shapes);
        code = code == IFD_OK ? ifd_variants_make_room(shapes, bytes, 0, err) : code;
    }
    return code == IFD_OK ? take_block(shapes, bytes, ret, err) : code;
}

/* The block that an instance has had since it ran last. */
static bool has_block(const struct ifd_shapes_of *shapes, const struct ifd_instance *instance)
{
    const struct ifd_shared_block *block = shapes->shared;
    while (block && block->data != instance->arena) {
        block = block->next;
    }
    return block && block->bytes >= instance->borrowed_bytes && !is_read(shapes, block);
}

enum ifd_code ifd_shared_lend(struct ifd_shapes_of *shapes, struct ifd_instance *instance,
                              struct ifd_err *err)
{
    if (!instance->borrows_arena || has_block(shapes, instance)) {
        return IFD_OK;
    }
    struct ifd_shared_block *block = find_block(shapes, instance->borrowed_bytes);
    const enum ifd_code code =
        block ? IFD_OK : add_block(shapes, instance->borrowed_bytes, &block, err);
    if (code == IFD_OK) {
        ifd_instance_place(instance, block->data);
    }
    return code;
}

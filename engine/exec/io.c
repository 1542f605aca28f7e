/* The callers' side of a run: checks their tensors, gathers inputs, scatters outputs, copies only
 * where it must. */
#include "engine/exec/exec_impl.h"

#include <stdio.h>
#include <string.h>

/* "[1,224,224,3]"; a batched port shows its free dimension as -1. exec must not include
 * ir/shape.h. */
struct shape_text {
    char s[IFD_MAX_RANK * 21 + 3];
};

static struct shape_text shape_text(const struct ifd_shape *shape, bool is_batched)
{
    struct shape_text text = {"["};
    size_t at = 1;
    for (uint32_t i = 0; i < shape->rank && i < IFD_MAX_RANK; i++) {
        const long long dim = is_batched && i == 0 ? IFD_DIM_ANY : (long long)shape->dim[i];
        const int n = snprintf(text.s + at, sizeof(text.s) - at, "%s%lld", i > 0 ? "," : "", dim);
        at += n > 0 ? (size_t)n : 0;
    }
    text.s[at] = ']';
    return text;
}

/* ---- checks ---- */

static bool has_shape(const struct ifd_shape *shape, const struct ifd_port *port, int64_t batch)
{
    if (shape->rank != port->desc.shape.rank) {
        return false;
    }
    for (uint32_t i = 0; i < shape->rank; i++) {
        const int64_t wanted = port->batched && i == 0 ? batch : port->desc.shape.dim[i];
        if (shape->dim[i] != wanted) {
            return false;
        }
    }
    return true;
}

/* Memory of the instance: its arena, its store. */
static bool is_own(const struct ifd_instance *instance, const void *data)
{
    const uintptr_t p = (uintptr_t)data;
    const uintptr_t arena = (uintptr_t)instance->arena;
    const uintptr_t store = (uintptr_t)instance->store;
    return (p >= arena && p < arena + instance->arena_bytes) ||
           (instance->store && p >= store && p < store + instance->store_bytes);
}

static enum ifd_code check_input(const struct ifd_instance *instance, const struct ifd_port *port,
                                 const struct ifd_tensor *tensor, int64_t batch,
                                 struct ifd_err *err)
{
    const size_t element = ifd_dtype_bytes(port->desc.dtype);
    const size_t wanted = ifd_port_sample_bytes(port) * (size_t)batch;
    if (tensor->dtype != port->desc.dtype) {
        return ifd_fail(err, IFD_INVALID, "input \"%s\": type %s, expected %s", port->name,
                        ifd_dtype_name(tensor->dtype), ifd_dtype_name(port->desc.dtype));
    }
    if (!has_shape(&tensor->shape, port, batch)) {
        return ifd_fail(err, IFD_INVALID,
                        "input \"%s\": shape %s, expected %s with a batch of %lld", port->name,
                        shape_text(&tensor->shape, false).s,
                        shape_text(&port->desc.shape, port->batched).s, (long long)batch);
    }
    if (tensor->bytes != wanted || tensor->capacity < tensor->bytes) {
        return ifd_fail(err, IFD_INVALID, "input \"%s\": %zu bytes (capacity %zu), expected %zu",
                        port->name, tensor->bytes, tensor->capacity, wanted);
    }
    if ((!tensor->data && wanted > 0) || (uintptr_t)tensor->data % element != 0) {
        return ifd_fail(err, IFD_INVALID, "input \"%s\": data is %s", port->name,
                        tensor->data ? "not aligned to its element" : "missing");
    }
    if (is_own(instance, tensor->data)) {
        return ifd_fail(err, IFD_INVALID,
                        "input \"%s\": lies in the instance's own memory, which a run overwrites",
                        port->name);
    }
    return IFD_OK;
}

static bool is_wanted(const struct ifd_io *io, uint32_t output)
{
    return !io->output_wanted || io->output_wanted[output];
}

static enum ifd_code check_output(const struct ifd_instance *instance, const struct ifd_port *port,
                                  const struct ifd_tensor *tensor, int64_t batch,
                                  struct ifd_err *err)
{
    const size_t wanted = ifd_port_sample_bytes(port) * (size_t)batch;
    if (!tensor->data || is_own(instance, tensor->data)) {
        return IFD_OK;
    }
    if (tensor->capacity < wanted) {
        return ifd_fail(err, IFD_TOO_LARGE,
                        "output \"%s\": %zu bytes, more than its capacity of %zu", port->name,
                        wanted, tensor->capacity);
    }
    if ((uintptr_t)tensor->data % ifd_dtype_bytes(port->desc.dtype) != 0) {
        return ifd_fail(err, IFD_INVALID, "output \"%s\": data is not aligned to its element",
                        port->name);
    }
    return IFD_OK;
}

static enum ifd_code check_caller(const struct ifd_instance *instance, const struct ifd_io *io,
                                  struct ifd_err *err)
{
    const struct ifd_model_info *info = instance->info;
    if ((!io->input && info->input_count > 0) || (!io->output && info->output_count > 0)) {
        return ifd_fail(err, IFD_INVALID, "no tensors, expected %u inputs and %u outputs",
                        info->input_count, info->output_count);
    }
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < info->input_count; i++) {
        code = check_input(instance, &info->input[i], &io->input[i], io->batch, err);
    }
    for (uint32_t i = 0; code == IFD_OK && i < info->output_count; i++) {
        if (is_wanted(io, i)) {
            code = check_output(instance, &info->output[i], &io->output[i], io->batch, err);
        }
    }
    return code;
}

enum ifd_code ifd_io_check(const struct ifd_instance *instance, const struct ifd_io *io,
                           uint32_t io_count, int64_t *ret_batch, struct ifd_err *err)
{
    if (io_count == 0 || (io_count > 1 && !instance->info->batch_is_free)) {
        return ifd_fail(err, IFD_INVALID, "%u requests in one run, expected 1%s", io_count,
                        instance->info->batch_is_free ? " or more"
                                                      : ": the model's batch is not free");
    }
    int64_t batch = 0;
    for (uint32_t k = 0; k < io_count; k++) {
        if (io[k].batch < 1 || io[k].batch > (int64_t)instance->max_batch - batch) {
            return ifd_fail(err, IFD_INVALID,
                            "request %u: a batch of %lld after %lld, expected 1 to %u in all", k,
                            (long long)io[k].batch, (long long)batch, instance->max_batch);
        }
        batch += io[k].batch;
        const enum ifd_code code = check_caller(instance, &io[k], err);
        if (code != IFD_OK) {
            return code;
        }
    }
    *ret_batch = batch;
    return IFD_OK;
}

/* ---- where a chunk lies among the callers ---- */

/* What a caller has of a chunk. */
struct share {
    const struct ifd_io *io;
    int64_t io_first;     /* first sample of this caller in the whole batch */
    int64_t offset;       /* among the caller's samples */
    int64_t chunk_offset; /* in the chunk */
    int64_t count;
};

/* Steps through the callers that have samples in a chunk: false at the end. *share begins
 * zeroed. */
static bool next_share(const struct ifd_callers *callers, struct ifd_chunk chunk,
                       struct share *share)
{
    const struct ifd_io *end = callers->io + callers->count;
    const struct ifd_io *io = share->io ? share->io + 1 : callers->io;
    int64_t first = share->io ? share->io_first + share->io->batch : 0;
    while (io < end && first + io->batch <= chunk.first) {
        first += io->batch;
        io++;
    }
    if (io == end || first >= chunk.first + chunk.count) {
        return false;
    }
    const int64_t begin = first > chunk.first ? first : chunk.first;
    const int64_t last = first + io->batch < chunk.first + chunk.count ? first + io->batch
                                                                       : chunk.first + chunk.count;
    *share = (struct share){.io = io,
                            .io_first = first,
                            .offset = begin - first,
                            .chunk_offset = begin - chunk.first,
                            .count = last - begin};
    return true;
}

/* Can a backend read or write this memory in place? */
static bool is_direct(const void *data, size_t bytes, size_t capacity)
{
    return (uintptr_t)data % IFD_TENSOR_ALIGN == 0 && capacity >= bytes &&
           capacity - bytes >= IFD_TENSOR_PAD;
}

/* The tensor that holds all of a chunk and can be used in place; NULL if there is none. */
static void *direct_memory(const struct share *share, struct ifd_chunk chunk,
                           const struct ifd_tensor *tensor, size_t sample_bytes)
{
    const size_t skipped = (size_t)share->offset * sample_bytes;
    if (share->count != chunk.count || !tensor->data) {
        return NULL;
    }
    uint8_t *data = (uint8_t *)tensor->data + skipped;
    return is_direct(data, (size_t)chunk.count * sample_bytes, tensor->capacity - skipped) ? data
                                                                                           : NULL;
}

/* ---- inputs ---- */

static void *bind_input(const struct ifd_callers *callers, struct ifd_chunk chunk, uint32_t port,
                        size_t sample_bytes, void *place)
{
    struct share share = {0};
    while (next_share(callers, chunk, &share)) {
        const struct ifd_tensor *tensor = &share.io->input[port];
        void *direct = direct_memory(&share, chunk, tensor, sample_bytes);
        if (direct) {
            return direct;
        }
        const size_t bytes = (size_t)share.count * sample_bytes;
        if (bytes > 0) {
            memcpy((uint8_t *)place + (size_t)share.chunk_offset * sample_bytes,
                   (const uint8_t *)tensor->data + (size_t)share.offset * sample_bytes, bytes);
        }
    }
    return place;
}

/* ---- outputs ---- */

/* The first caller decides: a chunk of several callers is never contiguous. */
static void *bind_output(const struct ifd_instance *instance, const struct ifd_callers *callers,
                         struct ifd_chunk chunk, uint32_t port, size_t sample_bytes, void *place)
{
    struct share share = {0};
    if (!next_share(callers, chunk, &share) || !is_wanted(share.io, port)) {
        return place;
    }
    const struct ifd_tensor *tensor = &share.io->output[port];
    if (is_own(instance, tensor->data)) {
        return place;
    }
    void *direct = direct_memory(&share, chunk, tensor, sample_bytes);
    return direct ? direct : place;
}

/* Where a caller finds its result: in its own memory or in the store. NULL: where the run leaves
 * it, since one chunk is the whole batch. */
static uint8_t *target(const struct ifd_instance *instance, const struct ifd_callers *callers,
                       struct ifd_chunk chunk, const struct share *share, uint32_t port,
                       size_t sample_bytes)
{
    const struct ifd_tensor *tensor = &share->io->output[port];
    if (tensor->data && !is_own(instance, tensor->data)) {
        return (uint8_t *)tensor->data + (size_t)share->offset * sample_bytes;
    }
    if (chunk.count == callers->batch) {
        return NULL;
    }
    return instance->store + instance->store_offset[port] +
           (size_t)(share->io_first + share->offset) * sample_bytes;
}

static void scatter(const struct ifd_instance *instance, const struct ifd_callers *callers,
                    struct ifd_chunk chunk, uint32_t port, size_t sample_bytes)
{
    struct share share = {0};
    while (next_share(callers, chunk, &share)) {
        const uint8_t *from =
            (const uint8_t *)instance->output[port] + (size_t)share.chunk_offset * sample_bytes;
        uint8_t *to = is_wanted(share.io, port)
                          ? target(instance, callers, chunk, &share, port, sample_bytes)
                          : NULL;
        const size_t bytes = (size_t)share.count * sample_bytes;
        if (to && to != from && bytes > 0) {
            memcpy(to, from, bytes);
        }
    }
}

/* ---- public within the folder ---- */

void ifd_io_bind(struct ifd_instance *instance, const struct ifd_executable *executable,
                 const struct ifd_callers *callers, struct ifd_chunk chunk)
{
    const struct ifd_model_info *info = instance->info;
    const struct ifd_plan *plan = &executable->plan;
    for (uint32_t i = 0; i < info->input_count; i++) {
        const struct ifd_plan_value *value = &plan->value[plan->input[i]];
        uint8_t *place = instance->arena + value->offset;
        instance->input[i] =
            value->bytes > 0
                ? bind_input(callers, chunk, i, ifd_port_sample_bytes(&info->input[i]), place)
                : place;
    }
    for (uint32_t i = 0; i < info->output_count; i++) {
        instance->output[i] =
            bind_output(instance, callers, chunk, i, ifd_port_sample_bytes(&info->output[i]),
                        instance->arena + plan->value[plan->output[i].value].offset);
    }
}

void ifd_io_collect(struct ifd_instance *instance, const struct ifd_callers *callers,
                    struct ifd_chunk chunk)
{
    for (uint32_t i = 0; i < instance->info->output_count; i++) {
        scatter(instance, callers, chunk, i, ifd_port_sample_bytes(&instance->info->output[i]));
    }
}

void ifd_io_describe(const struct ifd_instance *instance, const struct ifd_callers *callers)
{
    const struct ifd_model_info *info = instance->info;
    int64_t first = 0;
    for (uint32_t k = 0; k < callers->count; first += callers->io[k].batch, k++) {
        for (uint32_t i = 0; i < info->output_count; i++) {
            if (!is_wanted(&callers->io[k], i)) {
                continue;
            }
            const struct ifd_port *port = &info->output[i];
            const size_t sample_bytes = ifd_port_sample_bytes(port);
            struct ifd_tensor *tensor = &callers->io[k].output[i];
            tensor->dtype = port->desc.dtype;
            tensor->shape = port->desc.shape;
            if (port->batched) {
                tensor->shape.dim[0] = callers->io[k].batch;
            }
            tensor->bytes = sample_bytes * (size_t)callers->io[k].batch;
            if (tensor->data && !is_own(instance, tensor->data)) {
                continue;
            }
            uint8_t *base = instance->is_split ? instance->store + instance->store_offset[i]
                                               : instance->output[i];
            tensor->data = base + sample_bytes * (size_t)first;
            tensor->capacity = tensor->bytes;
        }
    }
}

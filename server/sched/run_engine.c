/* Runs jobs on an instance of the engine. */
#include <string.h>

#include "engine/base/clock.h"
#include "server/sched/batch.h"
#include "server/sched/runners.h"

struct engine_runner {
    struct ifd_runner base;
    const struct ifd_alloc *alloc;
    const struct ifd_clock *clock;
    const struct ifd_model_info *info;
    struct ifd_instance *instance;
    int64_t max_batch;
    struct ifd_tensor *part; /* inputs, then outputs, of some samples of a job */
    struct ifd_io io[IFD_BATCH_ITEMS_MAX];
};

static int64_t batch_of(const struct engine_runner *runner, const struct ifd_job *job)
{
    for (uint32_t i = 0; i < runner->info->input_count; i++) {
        if (runner->info->input[i].batched && job->input[i].shape.rank > 0) {
            return job->input[i].shape.dim[0];
        }
    }
    return 1;
}

/* Have all inputs with a batch that of the first? Where dimension 0 is a size like others they need
 * not. */
static enum ifd_code check_batch(const struct engine_runner *runner, const struct ifd_job *job,
                                 int64_t batch, struct ifd_err *err)
{
    for (uint32_t i = 0; i < runner->info->input_count; i++) {
        const struct ifd_port *port = &runner->info->input[i];
        const struct ifd_shape *shape = &job->input[i].shape;
        if (port->batched && shape->rank > 0 && shape->dim[0] != batch) {
            return ifd_fail(err, IFD_INVALID,
                            "input \"%s\": a batch of %lld, expected %lld as in other inputs",
                            port->name, (long long)shape->dim[0], (long long)batch);
        }
    }
    return IFD_OK;
}

/* Bytes of an output port for a batch; 0 if only the run decides. */
static size_t known_bytes(const struct ifd_port *port, int64_t batch)
{
    size_t bytes = ifd_dtype_bytes(port->desc.dtype);
    for (uint32_t d = 0; d < port->desc.shape.rank; d++) {
        int64_t dim = d == 0 && port->batched ? batch : port->desc.shape.dim[d];
        if (dim < 0 || !ifd_size_mul(bytes, (size_t)dim, &bytes)) {
            return 0;
        }
    }
    return bytes;
}

static size_t slot_bytes(size_t bytes)
{
    return (bytes + IFD_TENSOR_PAD + IFD_TENSOR_ALIGN - 1) / IFD_TENSOR_ALIGN * IFD_TENSOR_ALIGN;
}

/* Has output i texts of a run? */
static bool makes_texts(const struct engine_runner *runner, uint32_t i)
{
    return runner->info->output[i].desc.dtype == IFD_STR &&
           (runner->info->makes_texts || runner->info->has_open_dims);
}

/* Lets the engine write into the job's memory, if all sizes are known before the run. */
static enum ifd_code place_outputs(struct engine_runner *runner, struct ifd_job *job, int64_t batch,
                                   struct ifd_err *err)
{
    size_t total = 0;
    bool is_known = true;
    for (uint32_t i = 0; i < job->output_count; i++) {
        job->output[i] = (struct ifd_tensor){0};
        if (job->wanted[i]) {
            size_t bytes = known_bytes(&runner->info->output[i], batch);
            is_known = is_known && bytes > 0 && !makes_texts(runner, i);
            total += slot_bytes(bytes);
        }
    }
    if (!is_known || total == 0) {
        return IFD_OK;
    }
    uint8_t *memory = ifd_job_memory(job, total, runner->alloc);
    if (!memory) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %zu bytes of outputs", total);
    }
    for (uint32_t i = 0; i < job->output_count; i++) {
        if (job->wanted[i]) {
            size_t slot = slot_bytes(known_bytes(&runner->info->output[i], batch));
            job->output[i].data = memory;
            job->output[i].capacity = slot;
            memory += slot;
        }
    }
    return IFD_OK;
}

/* Of all outputs of a job: one text that a run has may be many elements. */
#define TEXTS_MAX ((size_t)256 << 20)

/* Room for the texts of a tensor: those that a run makes lie in the instance's memory. More than
 * TEXTS_MAX if there are more. */
static size_t text_bytes(const struct ifd_tensor *tensor)
{
    const struct ifd_str *text = tensor->data;
    size_t bytes = 0;
    for (size_t i = 0; tensor->dtype == IFD_STR && i < tensor->bytes / sizeof(*text); i++) {
        if (text[i].size > TEXTS_MAX - bytes) {
            return TEXTS_MAX + 1;
        }
        bytes += text[i].size;
    }
    return bytes > 0 ? slot_bytes(bytes) : 0;
}

static void keep_texts(struct ifd_tensor *tensor, char *memory)
{
    struct ifd_str *text = tensor->data;
    for (size_t i = 0; tensor->dtype == IFD_STR && i < tensor->bytes / sizeof(*text); i++) {
        if (text[i].size > 0) {
            memcpy(memory, text[i].data, text[i].size);
        }
        text[i].data = memory;
        memory += text[i].size;
    }
}

/* Copies outputs out of the instance's memory before the next run overwrites them. */
static enum ifd_code keep_outputs(struct engine_runner *runner, struct ifd_job *job,
                                  struct ifd_err *err)
{
    size_t total = 0, texts = 0;
    for (uint32_t i = 0; i < job->output_count; i++) {
        const size_t more = job->wanted[i] ? text_bytes(&job->output[i]) : 0;
        if (more > TEXTS_MAX - texts) {
            return ifd_fail(err, IFD_TOO_LARGE, "outputs have more than %zu bytes of texts",
                            TEXTS_MAX);
        }
        texts += more;
        total += job->wanted[i] ? slot_bytes(job->output[i].bytes) : 0;
    }
    total += texts;
    uint8_t *memory = ifd_job_memory(job, total, runner->alloc);
    if (!memory) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %zu bytes of outputs", total);
    }
    for (uint32_t i = 0; i < job->output_count; i++) {
        if (job->wanted[i]) {
            size_t bytes = job->output[i].bytes;
            if (bytes > 0) {
                memcpy(memory, job->output[i].data, bytes);
            }
            job->output[i].data = memory;
            job->output[i].capacity = slot_bytes(bytes);
            memory += slot_bytes(bytes);
            const size_t behind = text_bytes(&job->output[i]);
            keep_texts(&job->output[i], (char *)memory);
            memory += behind;
        }
    }
    return IFD_OK;
}

static bool is_in_job(const struct ifd_job *job)
{
    for (uint32_t i = 0; i < job->output_count; i++) {
        const uint8_t *data = job->output[i].data;
        if (job->wanted[i] &&
            !(job->memory && data >= job->memory && data < job->memory + job->memory_bytes)) {
            return false;
        }
    }
    return true;
}

/* The samples [first, first + count) of a tensor. */
static struct ifd_tensor part_of(const struct ifd_tensor *whole, size_t sample_bytes, int64_t first,
                                 int64_t count)
{
    struct ifd_tensor part = *whole;
    size_t skipped = sample_bytes * (size_t)first;
    if (part.data) {
        part.data = (uint8_t *)part.data + skipped;
        part.capacity -= skipped;
    }
    part.shape.dim[0] = count;
    part.bytes = sample_bytes * (size_t)count;
    return part;
}

static bool is_unwanted(const void *context)
{
    const struct ifd_job *job = context;
    return atomic_load_explicit(&job->is_unwanted, memory_order_relaxed);
}

static enum ifd_code run_part(struct engine_runner *runner, struct ifd_job *job, int64_t first,
                              int64_t count, struct ifd_err *err)
{
    struct ifd_tensor *input = runner->part, *output = runner->part + job->input_count;
    for (uint32_t i = 0; i < job->input_count; i++) {
        input[i] = part_of(&job->input[i], known_bytes(&runner->info->input[i], 1), first, count);
    }
    for (uint32_t i = 0; i < job->output_count; i++) {
        output[i] =
            part_of(&job->output[i], known_bytes(&runner->info->output[i], 1), first, count);
    }
    const struct ifd_io io = {.input = input,
                              .output = output,
                              .output_wanted = job->wanted,
                              .batch = count,
                              .deadline_ns = job->run_deadline_ns,
                              .is_over = is_unwanted,
                              .is_over_context = job};
    return ifd_instance_run(runner->instance, &io, 1, err);
}

/* Runs a job with more samples than the instance has memory for, in several runs, and one without
 * samples in none: samples are independent where dimension 0 is a batch. */
static enum ifd_code run_in_parts(struct engine_runner *runner, struct ifd_job *job, int64_t batch,
                                  struct ifd_err *err)
{
    enum ifd_code code = place_outputs(runner, job, batch, err);
    for (int64_t first = 0; first < batch && !code; first += runner->max_batch) {
        int64_t left = batch - first;
        code =
            run_part(runner, job, first, left < runner->max_batch ? left : runner->max_batch, err);
    }
    job->computed_ns = ifd_now_ns(runner->clock);
    for (uint32_t i = 0; i < job->output_count && !code; i++) {
        const struct ifd_port *port = &runner->info->output[i];
        job->output[i].dtype = port->desc.dtype;
        job->output[i].shape = port->desc.shape;
        job->output[i].shape.dim[0] = batch;
        job->output[i].bytes = known_bytes(port, batch);
        if (job->wanted[i] && !job->output[i].data && batch > 0) {
            code = ifd_fail(err, IFD_UNSUPPORTED, "output \"%s\": a batch of %lld, more than %lld",
                            port->name, (long long)batch, (long long)runner->max_batch);
        }
    }
    return code;
}

static enum ifd_code run_jobs(struct engine_runner *runner, struct ifd_job *const *job,
                              uint32_t count, struct ifd_err *err)
{
    const bool is_open = runner->info->has_open_dims; /* there a batch is a size like others */
    for (uint32_t i = 0; i < count; i++) {
        const int64_t batch = batch_of(runner, job[i]);
        struct ifd_err apart = {0};
        enum ifd_code code = check_batch(runner, job[i], batch, is_open ? &apart : err);
        if (code && !is_open) {
            return code;
        }
        if (count == 1 && (batch > runner->max_batch || batch == 0) && !is_open) {
            return run_in_parts(runner, job[i], batch, err);
        }
        code = place_outputs(runner, job[i], code ? IFD_DIM_ANY : batch, err);
        if (code) {
            return code;
        }
        runner->io[i] = (struct ifd_io){.input = job[i]->input,
                                        .output = job[i]->output,
                                        .output_wanted = job[i]->wanted,
                                        .batch = batch,
                                        .deadline_ns = job[i]->run_deadline_ns,
                                        .is_over = is_unwanted,
                                        .is_over_context = job[i]};
    }
    enum ifd_code code = ifd_instance_run(runner->instance, runner->io, count, err);
    job[0]->computed_ns = ifd_now_ns(runner->clock);
    for (uint32_t i = 0; i < count && !code; i++) {
        if (!is_in_job(job[i])) {
            code = keep_outputs(runner, job[i], err);
        }
    }
    return code;
}

static enum ifd_code run(struct ifd_runner *self, struct ifd_job *const *job, uint32_t count,
                         struct ifd_err *err)
{
    struct engine_runner *runner = (struct engine_runner *)self;
    if (!job[0]->step_ns) {
        return run_jobs(runner, job, count, err);
    }
    ifd_instance_profile(runner->instance, true);
    const enum ifd_code code = run_jobs(runner, job, count, err);
    ifd_instance_step_ns(runner->instance, job[0]->step_ns, job[0]->step_count);
    ifd_instance_profile(runner->instance, false);
    return code;
}

static size_t part_bytes(const struct ifd_model_info *info)
{
    return ((size_t)info->input_count + info->output_count) * sizeof(struct ifd_tensor);
}

static void expect(struct ifd_runner *self)
{
    ifd_instance_expect(((struct engine_runner *)self)->instance);
}

static void rest(struct ifd_runner *self)
{
    ifd_instance_rest(((struct engine_runner *)self)->instance);
}

static void destroy(struct ifd_runner *self)
{
    struct engine_runner *runner = (struct engine_runner *)self;
    ifd_instance_destroy(runner->instance);
    ifd_release(runner->alloc, runner->part, part_bytes(runner->info));
    ifd_release(runner->alloc, runner, sizeof(*runner));
}

enum ifd_code ifd_runner_engine(struct ifd_model *model, uint32_t threads, uint32_t max_batch,
                                const struct ifd_alloc *alloc, struct ifd_runner **ret_runner,
                                struct ifd_err *err)
{
    struct engine_runner *runner = ifd_acquire_zeroed(alloc, 1, sizeof(*runner));
    if (!runner) {
        return ifd_fail(err, IFD_NOMEM, "no memory for an instance");
    }
    *runner = (struct engine_runner){.base = {.run = run, .destroy = destroy},
                                     .alloc = alloc,
                                     .clock = ifd_clock_system(),
                                     .info = ifd_model_info(model),
                                     .max_batch = max_batch};
    runner->part = ifd_acquire_zeroed(alloc, 1, part_bytes(runner->info));
    if (!runner->part) {
        ifd_release(alloc, runner, sizeof(*runner));
        return ifd_fail(err, IFD_NOMEM, "no memory for an instance");
    }
    const struct ifd_instance_options options = {.threads = threads, .max_batch = max_batch};
    enum ifd_code code = ifd_instance_create(model, &options, &runner->instance, err);
    if (code) {
        destroy(&runner->base);
        return code;
    }
    runner->base.bytes = ifd_instance_bytes(runner->instance);
    runner->base.device_bytes = ifd_instance_device_bytes(runner->instance);
    runner->base.threads = threads;
    runner->base.may_linger = runner->info->has_open_dims || runner->info->has_loops;
    runner->base.expect = threads > 1 ? expect : NULL;
    runner->base.rest = threads > 1 ? rest : NULL;
    *ret_runner = &runner->base;
    return IFD_OK;
}

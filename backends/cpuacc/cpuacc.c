/* CpuAcc's descriptor: opens the kernels of this CPU, compiles partitions into steps, runs them. */
#include "backends/cpuacc/cpuacc.h"

#include "backends/cpuacc/schedule/team.h"
#include "backends/cpuacc/compile.h"
#include "backends/cpuacc/schedule/threads.h"
#include "engine/base/team.h"
#include "engine/base/thread.h"

#include <stdatomic.h>

#define ARENA_BYTES_MAX ((size_t)1 << 30)

struct ifd_device {
    const struct ifd_host *host;
    struct ifd_kernels kernels;
};

struct ifd_partition {
    const struct ifd_alloc *alloc;
    struct ifd_arena arena;                     /* steps and their parameters */
    const struct ifd_acc_driver *const *driver; /* as lowered */
    const struct ifd_acc_step *step;
    uint32_t step_count;
    bool is_parallel; /* some step is worth more than one thread */
    size_t team_bytes;
    const struct ifd_acc_pack_job *job; /* step[job->step] says where each one's content is */
    uint32_t job_count;
    const uint8_t *packed; /* what the partition that this one was compiled like does not have */
    size_t packed_bytes;
    bool owns_packed; /* not that of an earlier start */
    bool forgets;     /* the sources of its jobs are gone */
    bool exact;       /* as lowered */
};

/* What the threads of one run are told. */
struct task {
    const struct ifd_partition *partition;
    const struct ifd_binding *binding;
    struct ifd_acc_team *team; /* at the start of the run's scratch, */
    uint8_t *scratch;          /* which goes on here */
    struct ifd_acc_outcome outcome;
};

/* ---- steps ---- */

static const void *resolve(const struct ifd_acc_place *place, const struct ifd_acc_frame *frame)
{
    switch (place->where) {
    case IFD_ACC_CONSTANT:
        return place->data;
    case IFD_ACC_INPUT:
        return (const uint8_t *)frame->binding->input[place->slot] + place->offset;
    case IFD_ACC_OUTPUT:
        return (const uint8_t *)frame->binding->output[place->slot] + place->offset;
    case IFD_ACC_SCRATCH:
        return frame->scratch + place->offset;
    case IFD_ACC_ABSENT:
        break;
    }
    return NULL;
}

const void *ifd_acc_in(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                       uint32_t index)
{
    return resolve(&step->in[index], frame);
}

void *ifd_acc_out(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    return (void *)resolve(&step->out, frame); /* outputs are never constants */
}

void *ifd_acc_work(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    return frame->scratch + step->work + frame->thread * step->work_stride;
}

struct ifd_acc_range ifd_acc_share(const struct ifd_acc_frame *frame, size_t count, size_t unit)
{
    if (frame->threads == 1) {
        return (struct ifd_acc_range){0, count};
    }
    const size_t units = (count + unit - 1) / unit;
    size_t begin = units * frame->piece.begin / frame->pieces * unit;
    size_t end = units * frame->piece.end / frame->pieces * unit;
    begin = begin < count ? begin : count;
    end = end < count ? end : count;
    return (struct ifd_acc_range){begin, end};
}

/* ---- run ---- */

static void run_steps(void *arg, uint32_t index, uint32_t count)
{
    struct task *task = arg;
    const struct ifd_partition *partition = task->partition;
    const struct ifd_binding *binding = task->binding;
    struct ifd_acc_worker worker = ifd_acc_worker_init(task->team, index, count);
    struct ifd_acc_frame frame = {
        .binding = binding, .scratch = task->scratch, .outcome = &task->outcome};
    uint64_t *step_ns = index == 0 ? binding->step_ns : NULL;
    uint64_t before = step_ns ? binding->now_ns() : 0;
    for (uint32_t i = 0; i < partition->step_count; i++) {
        const struct ifd_acc_step *step = &partition->step[i];
        if (!step->run) {
            continue; /* the chain before it has done it */
        }
        frame.packed = step->block;
        ifd_acc_worker_step(&worker, step, &frame);
        if (step_ns) {
            const uint64_t now = binding->now_ns();
            step_ns[i] += now - before;
            before = now;
        }
    }
}

static enum ifd_code cpuacc_run(struct ifd_partition *partition, const struct ifd_binding *binding,
                                struct ifd_err *err)
{
    const uint32_t threads = partition->is_parallel ? binding->team->count : 1;
    struct task task = {.partition = partition,
                        .binding = binding,
                        .team = ifd_acc_team_init(binding->scratch, threads),
                        .scratch = (uint8_t *)binding->scratch + partition->team_bytes,
                        .outcome = {IFD_OK, err}};
    if (threads == 1) {
        run_steps(&task, 0, 1);
    } else {
        binding->team->run(binding->team, run_steps, &task);
    }
    return task.outcome.code;
}

/* ---- compile ---- */

static void cpuacc_release(struct ifd_partition *partition)
{
    if (!partition) {
        return;
    }
    if (partition->owns_packed) {
        ifd_release_tensor(partition->alloc, (void *)(uintptr_t)partition->packed,
                           partition->packed_bytes);
    }
    ifd_arena_finish(&partition->arena);
    ifd_release(partition->alloc, partition, sizeof(*partition));
}

/* The job of an older partition that made the same content, or NULL. Nodes come in the same order, so the search is short. */
static const struct ifd_acc_pack_job *find_made(const struct ifd_partition *like,
                                                const struct ifd_acc_pack_job *job, uint32_t first)
{
    for (uint32_t i = 0; like && i < like->job_count; i++) {
        const struct ifd_acc_pack_job *made = &like->job[(first + i) % like->job_count];
        if (made->pack == job->pack && made->source == job->source && made->bytes == job->bytes) {
            return made;
        }
    }
    return NULL;
}

/* Steps whose content like has already point to it; the jobs that are left get new offsets, one behind the other. */
static enum ifd_code share(const struct ifd_partition *like, struct ifd_acc_lowering *lowering,
                           struct ifd_err *err)
{
    uint32_t left = 0;
    size_t bytes = 0;
    for (uint32_t i = 0; i < lowering->job_count; i++) {
        struct ifd_acc_pack_job *job = &lowering->job[i];
        const struct ifd_acc_pack_job *made = find_made(like, job, i);
        if (made) {
            lowering->step[job->step].block = like->step[made->step].block;
            lowering->step[job->step].packed = like->step[made->step].packed;
            continue;
        }
        if (like && like->forgets) {
            return ifd_fail(err, IFD_UNSUPPORTED,
                            "CpuAcc: step %u packs weights anew, but they are gone", job->step);
        }
        job->offset = bytes;
        lowering->step[job->step].packed = bytes;
        bytes += job->bytes;
        lowering->job[left++] = *job;
    }
    lowering->job_count = left;
    lowering->packed_bytes = bytes;
    return IFD_OK;
}

/* Threads that pack together: each takes the next job that nobody has begun. */
struct packing {
    const struct ifd_acc_lowering *lowering;
    uint8_t *packed, *workspace; /* workspace_stride bytes for each thread */
    size_t workspace_stride;
    atomic_uint next;
    struct ifd_mutex forgetting;
};

static void run_jobs(void *arg, uint32_t index, uint32_t count)
{
    struct packing *packing = arg;
    const struct ifd_acc_lowering *lowering = packing->lowering;
    const struct ifd_partition_view *view = lowering->view;
    uint8_t *workspace = packing->workspace + index * packing->workspace_stride;
    (void)count;
    for (uint32_t i = 0; (i = atomic_fetch_add(&packing->next, 1)) < lowering->job_count;) {
        const struct ifd_acc_pack_job *job = &lowering->job[i];
        job->pack(lowering->kernels, job->params, workspace, packing->packed + job->offset);
        if (view->release_constant) { /* at once: memory peaks here */
            ifd_mutex_lock(&packing->forgetting);
            view->release_constant(view->release_context, job->source);
            ifd_mutex_unlock(&packing->forgetting);
        }
    }
}

/* One more thread pays from here on: it is some 50 µs until it runs. */
#define PACK_BYTES_MIN ((size_t)2 << 20)

/* As many threads as the model may have run the jobs: nobody else waits for this model yet. */
static enum ifd_code pack_jobs(const struct ifd_partition *partition,
                               const struct ifd_acc_lowering *lowering, uint8_t *packed,
                               struct ifd_err *err)
{
    const size_t most = lowering->packed_bytes / PACK_BYTES_MIN + 1;
    uint32_t threads = lowering->view->max_threads;
    threads = threads < most ? threads : (uint32_t)most;
    threads = threads < lowering->job_count ? threads : lowering->job_count;
    struct packing packing = {.lowering = lowering, .packed = packed};
    struct ifd_team *team = NULL;
    size_t bytes = 0;
    if (!ifd_size_align(lowering->workspace_bytes + 1, IFD_TENSOR_ALIGN,
                        &packing.workspace_stride) ||
        !ifd_size_mul(packing.workspace_stride, threads, &bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "CpuAcc: %zu bytes to pack with overflow",
                        lowering->workspace_bytes);
    }
    packing.workspace = ifd_acquire_tensor(partition->alloc, bytes);
    if (!packing.workspace) {
        return ifd_fail(err, IFD_NOMEM, "CpuAcc: no memory for %zu bytes to pack with", bytes);
    }
    const enum ifd_code code = ifd_team_create(threads, partition->alloc, &team, err);
    if (code == IFD_OK) {
        ifd_mutex_init(&packing.forgetting);
        team->run(team, run_jobs, &packing);
        ifd_mutex_finish(&packing.forgetting);
    }
    ifd_team_destroy(team);
    ifd_release_tensor(partition->alloc, packing.workspace, bytes);
    return code;
}

/* Makes the packed weights, or takes those of an earlier start. */
static enum ifd_code pack(struct ifd_partition *partition, const struct ifd_acc_lowering *lowering,
                          struct ifd_err *err)
{
    const struct ifd_partition_view *view = lowering->view;
    enum ifd_code code = IFD_OK;
    partition->packed_bytes = lowering->packed_bytes;
    if (view->packed.size == lowering->packed_bytes) {
        partition->packed = view->packed.data;
        for (uint32_t i = 0; i < lowering->job_count && view->release_constant; i++) {
            view->release_constant(view->release_context, lowering->job[i].source);
        }
    } else {
        uint8_t *packed = ifd_acquire_tensor(partition->alloc, lowering->packed_bytes);
        if (!packed) {
            return ifd_fail(err, IFD_NOMEM, "CpuAcc: no memory for %zu bytes of packed weights",
                            lowering->packed_bytes);
        }
        partition->packed = packed;
        partition->owns_packed = true;
        code = pack_jobs(partition, lowering, packed, err);
    }
    for (uint32_t i = 0; i < lowering->job_count; i++) {
        lowering->step[lowering->job[i].step].block = partition->packed;
    }
    return code;
}

/* Tells every step which weights come next. */
static void link_weights(struct ifd_acc_lowering *lowering)
{
    const struct ifd_packed *later = NULL;
    for (uint32_t i = lowering->step_count; i > 0; i--) {
        struct ifd_acc_step *step = &lowering->step[i - 1];
        step->later = later;
        if (step->block && step->run && step->is_gemm_f32) {
            later = (const struct ifd_packed *)(const void *)(step->block + step->packed);
        }
    }
}

/* Of a model's weights, so large a part may be spent on what is only a little faster. */
#define SPARE_PART 16

static size_t constant_bytes(const struct ifd_partition_view *view)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < view->value_count; i++) {
        bytes += view->value[i].role == IFD_VALUE_CONSTANT ? view->value[i].data.size : 0;
    }
    return bytes;
}

static enum ifd_code cpuacc_compile(struct ifd_device *device,
                                    const struct ifd_partition_view *view,
                                    struct ifd_partition *like,
                                    struct ifd_partition **ret_partition,
                                    struct ifd_partition_info *ret_info, struct ifd_err *err)
{
    const struct ifd_alloc *alloc = device->host->alloc;
    struct ifd_partition *partition = ifd_acquire_zeroed(alloc, 1, sizeof(*partition));
    if (!partition) {
        return ifd_fail(err, IFD_NOMEM, "CpuAcc: no memory for a partition");
    }
    partition->alloc = alloc;
    ifd_arena_init(&partition->arena, alloc, ARENA_BYTES_MAX);
    struct ifd_acc_lowering lowering = {.view = view,
                                        .kernels = &device->kernels,
                                        .host = device->host,
                                        .driver = like ? like->driver : NULL,
                                        .arena = &partition->arena,
                                        .spare_bytes = constant_bytes(view) / SPARE_PART};
    size_t scratch = 0;
    /* plans for several batch sizes share their weights, which know how sums are rounded */
    lowering.exact = like ? like->exact : ifd_acc_rounds_exactly(&lowering);
    enum ifd_code code = ifd_acc_lower(&lowering, &scratch, err);
    if (code == IFD_OK) {
        code = ifd_acc_plan_threads(&lowering, &partition->is_parallel, err);
    }
    if (code == IFD_OK) {
        code = share(like, &lowering, err);
    }
    if (code == IFD_OK && lowering.packed_bytes > 0) {
        code = pack(partition, &lowering, err);
    }
    if (code != IFD_OK) {
        cpuacc_release(partition);
        return code;
    }
    link_weights(&lowering);
    partition->team_bytes = ifd_acc_team_bytes(view->max_threads);
    partition->driver = lowering.driver;
    partition->step = lowering.step;
    partition->step_count = lowering.step_count;
    partition->job = lowering.job;
    partition->job_count = lowering.job_count;
    partition->forgets = view->release_constant != NULL;
    partition->exact = lowering.exact;
    *ret_info = (struct ifd_partition_info){
        .scratch_bytes = partition->team_bytes + scratch,
        .step_count = lowering.step_count,
        .constant_bytes = partition->packed_bytes,
        .packed = {.data = partition->packed, .size = partition->packed_bytes},
        .exact = lowering.exact,
        .precision = lowering.precision,
        .precision_why_not = lowering.precision_why_not};
    *ret_partition = partition;
    return IFD_OK;
}

static void cpuacc_describe(struct ifd_partition *partition, uint32_t step,
                            struct ifd_step_info *ret)
{
    *ret = partition->step[step].info;
}

/* ---- device ---- */

static enum ifd_code cpuacc_open(const struct ifd_host *host, struct ifd_device **ret_device,
                                 struct ifd_err *err)
{
    struct ifd_device *device = ifd_acquire_zeroed(host->alloc, 1, sizeof(*device));
    if (!device) {
        return ifd_fail(err, IFD_NOMEM, "CpuAcc: no memory for the device");
    }
    device->host = host;
    ifd_kernels_select(host->cpu.flags, &device->kernels);
    *ret_device = device;
    return IFD_OK;
}

static void cpuacc_close(struct ifd_device *device)
{
    if (device) {
        ifd_release(device->host->alloc, device, sizeof(*device));
    }
}

static uint32_t cpuacc_cost(struct ifd_device *device, const struct ifd_node_view *node,
                            struct ifd_err *reason)
{
    (void)device;
    return ifd_acc_driver(node, reason) ? 1 : 0;
}

const struct ifd_backend ifd_backend_cpuacc = {
    .abi = IFD_BACKEND_ABI,
    .bytes = sizeof(struct ifd_backend),
    .name = "CpuAcc",
    .open = cpuacc_open,
    .cost = cpuacc_cost,
    .compile = cpuacc_compile,
    .run = cpuacc_run,
    .describe = cpuacc_describe,
    .release = cpuacc_release,
    .close = cpuacc_close,
};

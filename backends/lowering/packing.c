/* Packs constants: shares them, takes them from an earlier start, or runs jobs on several
 * threads. */
#include "backends/lowering/packing.h"

#include "engine/base/team.h"
#include "engine/base/thread.h"

#include <stdatomic.h>

enum ifd_code ifd_low_add_pack(struct ifd_low_packed *packed, struct ifd_lowering *lowering,
                               const struct ifd_low_pack_job *job, size_t workspace_bytes,
                               struct ifd_err *err)
{
    struct ifd_low_pack_job *jobs = ifd_low_grow(lowering, packed->job, packed->job_count,
                                                 &packed->job_capacity, sizeof(*jobs));
    size_t size = 0, end = 0;
    if (!jobs) {
        return ifd_arena_fail(lowering->arena, 0, err);
    }
    if (!ifd_size_add(job->bytes, IFD_TENSOR_PAD, &size) ||
        !ifd_size_align(size, IFD_TENSOR_ALIGN, &size) ||
        !ifd_size_add(packed->bytes, size, &end)) {
        return ifd_fail(err, IFD_TOO_LARGE, "packed weights of %zu bytes overflow", job->bytes);
    }
    packed->job = jobs;
    jobs[packed->job_count] = *job;
    jobs[packed->job_count++].bytes = size;
    packed->bytes = end;
    if (packed->workspace_bytes < workspace_bytes) {
        packed->workspace_bytes = workspace_bytes;
    }
    return IFD_OK;
}

/* ---- sharing ---- */

/* The job of an older partition that made the same content, or NULL. Nodes come in the same order,
 * so the search is short. */
static const struct ifd_low_pack_job *find_made(const struct ifd_low_packed *older,
                                                const struct ifd_low_pack_job *job, uint32_t first)
{
    for (uint32_t i = 0; older && i < older->job_count; i++) {
        const struct ifd_low_pack_job *made = &older->job[(first + i) % older->job_count];
        if (made->pack == job->pack && made->source == job->source && made->bytes == job->bytes) {
            return made;
        }
    }
    return NULL;
}

/* Steps of an unrolled loop lie close together. */
#define TWIN_DISTANCE 64

/* The job shortly before that makes the same content, or NULL. */
static const struct ifd_low_pack_job *find_twin(const struct ifd_low_packed *packed, uint32_t index)
{
    const struct ifd_low_pack_job *job = &packed->job[index];
    const uint32_t first = index > TWIN_DISTANCE ? index - TWIN_DISTANCE : 0;
    for (uint32_t i = index; job->same && i-- > first;) {
        const struct ifd_low_pack_job *made = &packed->job[i];
        if (made->pack == job->pack && made->source == job->source && made->bytes == job->bytes &&
            !made->block && job->same(made->params, job->params)) {
            return made;
        }
    }
    return NULL;
}

/* Jobs take the content that older has, or a job before; the others get offsets, one after the
 * other. ret_left: how many of these there are. */
static enum ifd_code share(struct ifd_low_packed *packed, const struct ifd_low_packed *older,
                           uint32_t *ret_left, struct ifd_err *err)
{
    uint32_t left = 0;
    size_t bytes = 0;
    for (uint32_t i = 0; i < packed->job_count; i++) {
        struct ifd_low_pack_job *job = &packed->job[i];
        const struct ifd_low_pack_job *made = find_made(older, job, i);
        if (made) {
            job->block = made->block;
            job->offset = made->offset;
            continue;
        }
        const struct ifd_low_pack_job *twin = find_twin(packed, i);
        if (twin) {
            job->is_twin = true;
            job->offset = twin->offset;
            continue;
        }
        if (older && older->is_released) {
            return ifd_fail(err, IFD_UNSUPPORTED, "step %u would pack weights that are released",
                            job->step);
        }
        job->offset = bytes;
        bytes += job->bytes;
        left++;
    }
    packed->bytes = bytes;
    *ret_left = left;
    return IFD_OK;
}

/* ---- packing ---- */

/* Threads that pack together: each takes the next job that nobody has begun. */
struct work {
    const struct ifd_low_packed *packed;
    const struct ifd_partition_view *view;
    const void *context;
    uint8_t *to, *workspace; /* workspace_stride bytes for each thread */
    size_t workspace_stride;
    atomic_uint next;
    struct ifd_mutex releasing;
};

static void release_source(struct work *work, const struct ifd_low_pack_job *job)
{
    if (work->view->release_constant) { /* at once: memory peaks here */
        ifd_mutex_lock(&work->releasing);
        work->view->release_constant(work->view->release_context, job->source);
        ifd_mutex_unlock(&work->releasing);
    }
}

static void run_jobs(void *arg, uint32_t index, uint32_t count)
{
    struct work *work = arg;
    uint8_t *workspace = work->workspace + index * work->workspace_stride;
    (void)count;
    for (uint32_t i = 0; (i = atomic_fetch_add(&work->next, 1)) < work->packed->job_count;) {
        const struct ifd_low_pack_job *job = &work->packed->job[i];
        if (!job->block && !job->is_twin) {
            job->pack(work->context, job->params, workspace, work->to + job->offset);
            release_source(work, job);
        }
    }
}

/* Bytes per thread: starting one takes some 50 µs. */
#define PACK_BYTES_MIN ((size_t)2 << 20)

static uint32_t choose_threads(const struct ifd_low_packed *packed, uint32_t most, uint32_t jobs)
{
    const size_t paying = packed->bytes / PACK_BYTES_MIN + 1;
    const uint32_t threads = most < paying ? most : (uint32_t)paying;
    return threads < jobs ? threads : jobs;
}

/* Runs the jobs on as many threads as the model may have: nothing else waits for this model yet. */
static enum ifd_code run_all(struct work *work, uint32_t threads, const struct ifd_alloc *alloc,
                             struct ifd_err *err)
{
    struct ifd_team *team = NULL;
    size_t bytes = 0;
    if (!ifd_size_align(work->packed->workspace_bytes + 1, IFD_TENSOR_ALIGN,
                        &work->workspace_stride) ||
        !ifd_size_mul(work->workspace_stride, threads, &bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "%zu bytes of workspace per thread overflow",
                        work->packed->workspace_bytes);
    }
    work->workspace = ifd_acquire_tensor(alloc, bytes);
    if (!work->workspace) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %zu bytes of workspace", bytes);
    }
    const enum ifd_code code = ifd_team_create(threads, alloc, &team, err);
    if (code == IFD_OK) {
        ifd_mutex_init(&work->releasing);
        team->run(team, run_jobs, work);
        ifd_mutex_finish(&work->releasing);
    }
    ifd_team_destroy(team);
    ifd_release_tensor(alloc, work->workspace, bytes);
    return code;
}

static void take_earlier(struct ifd_low_packed *packed, const struct ifd_partition_view *view)
{
    packed->data = view->packed.data;
    for (uint32_t i = 0; i < packed->job_count && view->release_constant; i++) {
        if (!packed->job[i].block) {
            view->release_constant(view->release_context, packed->job[i].source);
        }
    }
}

enum ifd_code ifd_low_pack(struct ifd_low_packed *packed, const struct ifd_low_packed *older,
                           const struct ifd_partition_view *view, const void *context,
                           const struct ifd_alloc *alloc, struct ifd_err *err)
{
    uint32_t left = 0;
    enum ifd_code code = share(packed, older, &left, err);
    packed->is_released = view->release_constant != NULL;
    if (code != IFD_OK || left == 0) {
        return code;
    }
    if (view->packed.size == packed->bytes) {
        take_earlier(packed, view);
    } else {
        uint8_t *data = ifd_acquire_tensor(alloc, packed->bytes);
        if (!data) {
            return ifd_fail(err, IFD_NOMEM, "no memory for %zu bytes of packed weights",
                            packed->bytes);
        }
        packed->data = data;
        packed->is_owned = true;
        struct work work = {.packed = packed, .view = view, .context = context, .to = data};
        code = run_all(&work, choose_threads(packed, view->max_threads, left), alloc, err);
    }
    for (uint32_t i = 0; i < packed->job_count; i++) {
        struct ifd_low_pack_job *job = &packed->job[i];
        job->block = job->block ? job->block : packed->data;
    }
    return code;
}

void ifd_low_release_packed(struct ifd_low_packed *packed, const struct ifd_alloc *alloc)
{
    if (packed->is_owned) {
        ifd_release_tensor(alloc, (void *)(uintptr_t)packed->data, packed->bytes);
    }
}

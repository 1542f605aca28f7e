/* Helpers of queue and workers for jobs. */
#include "server/sched/job.h"

#include <string.h>

void *ifd_job_memory(struct ifd_job *job, size_t bytes, const struct ifd_alloc *alloc)
{
    if (job->memory && job->memory_bytes >= bytes) {
        return job->memory;
    }
    ifd_release_tensor(alloc, job->memory, job->memory_bytes);
    job->memory = ifd_acquire_tensor(alloc, bytes);
    job->memory_bytes = job->memory ? bytes : 0;
    return job->memory;
}

static bool same_sample(const struct ifd_tensor *a, const struct ifd_tensor *b)
{
    if (!a->data != !b->data || a->dtype != b->dtype || a->shape.rank != b->shape.rank) {
        return false;
    }
    for (uint32_t d = 1; d < a->shape.rank; d++) {
        if (a->shape.dim[d] != b->shape.dim[d]) {
            return false;
        }
    }
    return true;
}

bool ifd_job_fits(const struct ifd_job *a, const struct ifd_job *b)
{
    if (a->is_alone || b->is_alone) {
        return false;
    }
    for (uint32_t i = 0; i < a->input_count; i++) {
        if (!same_sample(&a->input[i], &b->input[i])) {
            return false;
        }
    }
    return true;
}

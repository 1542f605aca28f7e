/* Runner of backend "identity": outputs are the inputs. */
#include "engine/base/clock.h"
#include "engine/base/thread.h"
#include "server/sched/runners.h"

struct identity {
    struct ifd_runner base;
    const struct ifd_alloc *alloc;
    uint32_t delay_ms;
};

/* Nobody signals: only the time ends the wait. */
static void delay(uint32_t delay_ms)
{
    struct ifd_mutex mutex;
    struct ifd_cond never;
    uint64_t until_ns = ifd_monotonic_ns() + (uint64_t)delay_ms * 1000000;
    ifd_mutex_init(&mutex);
    ifd_cond_init(&never);
    ifd_mutex_lock(&mutex);
    while (ifd_cond_wait_until(&never, &mutex, until_ns)) {
    }
    ifd_mutex_unlock(&mutex);
    ifd_cond_finish(&never);
    ifd_mutex_finish(&mutex);
}

static enum ifd_code run(struct ifd_runner *self, struct ifd_job *const *job, uint32_t count,
                         struct ifd_err *err)
{
    const struct identity *identity = (const struct identity *)self;
    (void)err;
    if (identity->delay_ms > 0) {
        delay(identity->delay_ms);
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < job[i]->output_count; k++) {
            job[i]->output[k] = job[i]->input[k];
        }
    }
    return IFD_OK;
}

static void destroy(struct ifd_runner *self)
{
    struct identity *identity = (struct identity *)self;
    ifd_release(identity->alloc, identity, sizeof(*identity));
}

enum ifd_code ifd_runner_identity(uint32_t delay_ms, const struct ifd_alloc *alloc,
                                  struct ifd_runner **ret_runner, struct ifd_err *err)
{
    struct identity *identity = ifd_acquire_zeroed(alloc, 1, sizeof(*identity));
    if (!identity) {
        return ifd_fail(err, IFD_NOMEM, "no memory for an instance");
    }
    *identity = (struct identity){.base = {.run = run,
                                           .destroy = destroy,
                                           .threads = 1,
                                           .is_instant = delay_ms == 0,
                                           .waits = delay_ms > 0},
                                  .alloc = alloc,
                                  .delay_ms = delay_ms};
    *ret_runner = &identity->base;
    return IFD_OK;
}

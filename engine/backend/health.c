/* Degraded or not, with pauses that double. */
#include "engine/backend/health.h"

#define PAUSE_LEAST_NS ((uint64_t)1000000000)
#define PAUSE_MOST_NS  ((uint64_t)64000000000)

void ifd_health_init(struct ifd_health *health)
{
    *health = (struct ifd_health){.pause_ns = PAUSE_LEAST_NS};
    ifd_mutex_init(&health->lock);
}

void ifd_health_finish(struct ifd_health *health)
{
    ifd_mutex_finish(&health->lock);
}

/* The lock is held. */
static void pause(struct ifd_health *health, uint64_t now_ns)
{
    health->retry_ns = now_ns + health->pause_ns;
    health->pause_ns = health->pause_ns < PAUSE_MOST_NS / 2 ? 2 * health->pause_ns : PAUSE_MOST_NS;
}

enum ifd_code ifd_health_admit(struct ifd_health *health, uint64_t now_ns, struct ifd_err *err)
{
    if (!atomic_load_explicit(&health->is_degraded, memory_order_relaxed)) {
        return IFD_OK;
    }
    ifd_mutex_lock(&health->lock);
    const bool is_time = now_ns >= health->retry_ns;
    if (is_time) {
        pause(health, now_ns);
    } else if (err) {
        *err = health->reason;
        err->code = IFD_UNAVAILABLE;
    }
    ifd_mutex_unlock(&health->lock);
    return is_time ? IFD_OK : IFD_UNAVAILABLE;
}

bool ifd_health_fail(struct ifd_health *health, uint64_t now_ns, const struct ifd_err *reason)
{
    ifd_mutex_lock(&health->lock);
    const bool is_new = !atomic_load_explicit(&health->is_degraded, memory_order_relaxed);
    if (is_new) {
        pause(health, now_ns); /* a trial that failed has its pause */
    }
    health->failures++;
    health->reason = *reason;
    atomic_store_explicit(&health->is_degraded, true, memory_order_relaxed);
    ifd_mutex_unlock(&health->lock);
    return is_new;
}

bool ifd_health_pass(struct ifd_health *health)
{
    if (!atomic_load_explicit(&health->is_degraded, memory_order_relaxed)) {
        return false;
    }
    ifd_mutex_lock(&health->lock);
    const bool was_degraded = atomic_load_explicit(&health->is_degraded, memory_order_relaxed);
    health->pause_ns = PAUSE_LEAST_NS;
    atomic_store_explicit(&health->is_degraded, false, memory_order_relaxed);
    ifd_mutex_unlock(&health->lock);
    return was_degraded;
}

void ifd_health_read(struct ifd_health *health, uint64_t *ret_failures, struct ifd_err *ret_reason)
{
    ifd_mutex_lock(&health->lock);
    *ret_failures = health->failures;
    *ret_reason = health->reason;
    ifd_mutex_unlock(&health->lock);
}

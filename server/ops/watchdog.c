/* Sends a probe through the pool, and a ping when it is back. */
#include "server/ops/watchdog.h"

struct ifd_watchdog {
    struct ifd_completion probe; /* first: its address is the watchdog's */
    struct ifd_watchdog_options options;
    struct ifd_timer *timer;
    bool is_away; /* the probe */
    bool is_late; /* its delay was logged */
};

static void came_back(struct ifd_completion *probe)
{
    struct ifd_watchdog *dog = (struct ifd_watchdog *)probe;
    ifd_notify_send(dog->options.notify, "WATCHDOG=1");
    dog->is_away = dog->is_late = false;
}

static void on_timer(void *arg)
{
    struct ifd_watchdog *dog = arg;
    if (!dog->is_away) {
        dog->is_away = true;
        ifd_pool_probe(dog->options.pool, &dog->probe);
    } else if (!dog->is_late) {
        dog->is_late = true;
        ifd_log_warn(dog->options.log, "workers are late, watchdog is not pinged", "period_ms=%llu",
                     (unsigned long long)(dog->options.period_us / 1000));
    }
}

enum ifd_code ifd_watchdog_create(const struct ifd_watchdog_options *options,
                                  struct ifd_watchdog **ret_dog, struct ifd_err *err)
{
    struct ifd_watchdog *dog = ifd_acquire_zeroed(options->alloc, 1, sizeof(*dog));
    if (!dog) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the watchdog");
    }
    dog->options = *options;
    dog->probe.fn = came_back;
    enum ifd_code code = ifd_timer_create(options->loop, on_timer, dog, &dog->timer, err);
    if (code) {
        ifd_release(options->alloc, dog, sizeof(*dog));
        return code;
    }
    uint64_t step_ms = options->period_us / 4000;
    ifd_timer_start(dog->timer, 0, step_ms > 0 ? step_ms : 1);
    *ret_dog = dog;
    return IFD_OK;
}

void ifd_watchdog_destroy(struct ifd_watchdog *dog)
{
    if (!dog) {
        return;
    }
    ifd_timer_destroy(dog->timer);
    ifd_release(dog->options.alloc, dog, sizeof(*dog));
}

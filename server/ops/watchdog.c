/* Sends a probe through every queue, and a ping when it is back. */
#include "server/ops/watchdog.h"

#include "server/serve/served.h"

struct ifd_watchdog {
    struct ifd_watchdog_options options;
    struct ifd_timer *timer;
    uint32_t away; /* probes on their way */
    bool is_late;  /* their delay was logged */
};

struct probe {
    struct ifd_completion completion; /* first: its address is the probe's */
    struct ifd_watchdog *dog;
};

static void came_back(struct ifd_completion *completion)
{
    struct probe *probe = (struct probe *)completion;
    struct ifd_watchdog *dog = probe->dog;
    ifd_release(dog->options.alloc, probe, sizeof(*probe));
    dog->away--;
    if (dog->away == 0) {
        ifd_notify_send(dog->options.notify, "WATCHDOG=1");
        dog->is_late = false;
    }
}

static struct probe *make_probe(struct ifd_watchdog *dog)
{
    struct probe *probe = ifd_acquire_zeroed(dog->options.alloc, 1, sizeof(*probe));
    if (probe) {
        probe->completion.fn = came_back;
        probe->dog = dog;
        dog->away++;
    }
    return probe;
}

/* Without memory a probe is missing; without any probe there is no ping. */
static void send_probes(struct ifd_watchdog *dog)
{
    struct probe *own = make_probe(dog);
    struct ifd_repo_walk at = {.model = NULL};
    while (ifd_repo_next(dog->options.repo, &at) && at.model) {
        struct ifd_served *served = at.version->served;
        struct probe *probe = served ? make_probe(dog) : NULL;
        if (probe) {
            ifd_workers_probe(served->workers, &probe->completion);
        }
    }
    if (own) { /* a server without models is alive */
        ifd_completions_push(dog->options.completions, &own->completion);
    }
}

static void on_timer(void *arg)
{
    struct ifd_watchdog *dog = arg;
    if (dog->away == 0) {
        send_probes(dog);
    } else if (!dog->is_late) {
        dog->is_late = true;
        ifd_log_warn(dog->options.log, "workers are late, watchdog is not pinged",
                     "queues=%u period_ms=%llu", dog->away,
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

/* What a model waits for, in words. */
#include "server/repo/repo_impl.h"

#include <stdio.h>

#define SECOND_NS ((uint64_t)1000000000)

static double seconds(uint64_t ns)
{
    return (double)ns / (double)SECOND_NS;
}

/* The operation that runs, or waits for a thread. */
static void tell_op(struct ifd_repo_op *op, uint64_t now_ns, char *text, size_t size)
{
    const char *what = op->kind != IFD_REPO_LOAD     ? "unloading"
                       : atomic_load(&op->has_begun) ? "loading"
                                                     : "waits for a thread that loads models";
    (void)snprintf(text, size, "%s, for %.0f s by now", what, seconds(now_ns - op->since_ns));
}

bool ifd_repo_tell_pending(const struct ifd_repo *repo, const struct ifd_repo_model *model,
                           char *text, size_t size)
{
    const uint64_t now_ns = ifd_now_ns(repo->options.clock);
    struct ifd_watcher_pending pending = {0};
    if (model->first_op) {
        tell_op(model->first_op, now_ns, text, size);
        return true;
    }
    if (repo->watch) {
        pending = ifd_watcher_pending(repo->watch, model->name, now_ns);
    }
    switch (pending.kind) {
    case IFD_WATCHER_WAITS_NOT:
        return false;
    case IFD_WATCHER_WAITS_UPLOAD:
        (void)snprintf(text, size, "waits while \"%.250s\" is there, for %.0f s by now",
                       pending.file, seconds(pending.since_ns));
        break;
    case IFD_WATCHER_WAITS_SETTLE:
        (void)snprintf(text, size, "settles: unchanged for %.1f s, taken after %.1f s",
                       seconds(pending.since_ns), seconds(repo->options.settle_ns));
        break;
    case IFD_WATCHER_WAITS_DWELL:
        (void)snprintf(text, size, "was reloaded just now: taken in %.0f s at the earliest",
                       seconds(pending.left_ns));
        break;
    }
    return true;
}

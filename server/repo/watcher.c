/* Turns fingerprints into loads and unloads. */
#include "server/repo/watcher.h"

#include <stdio.h>
#include <string.h>

#define RETRY_FIRST_NS ((uint64_t)1000000000)
#define RETRY_LAST_NS  ((uint64_t)60 * 1000000000)
#define HOUR_NS        ((uint64_t)3600 * 1000000000)
/* Retries of bad content: they help only if it was read badly. */
#define BAD_RETRIES_MAX 5
#define NAME_BYTES      (sizeof(((struct entry *)NULL)->name))

struct entry {
    char name[256];
    char unfinished[512]; /* ifd_scan_model's; "": none */
    bool is_present, is_loading, was_tried, will_retry;
    uint64_t roots;                       /* ifd_scan_model's */
    uint64_t awaits_since_ns;             /* a change waits for this file; 0: none does */
    uint64_t seen;                        /* the fingerprint of the last scan */
    uint64_t unsummed, unsummed_since_ns; /* its part that has to settle */
    uint32_t unsummed_scans;              /* scans in a row that had it */
    uint64_t tried, tried_unsummed;       /* both of the content that serves, or that failed */
    uint64_t earliest_ns;                 /* earliest load of a change: dwell after a swap */
    uint64_t retry_ns;                    /* next load of failed content, if will_retry */
    uint64_t hour_ns;                     /* start of the count of swaps */
    uint32_t attempts, bad_attempts;      /* failures of a content; bad: its own fault */
    uint32_t absent_scans, swaps;
    uint64_t absent_ns; /* the last of these scans */
};

struct ifd_watcher {
    struct ifd_watcher_options options;
    struct entry **entry;
    uint32_t count, capacity;
    uint64_t unlisted; /* ifd_scan's, of the last */
};

bool ifd_watcher_is_transient(enum ifd_code code)
{
    return code == IFD_IO || code == IFD_NOMEM || code == IFD_UNAVAILABLE || code == IFD_BUSY ||
           code == IFD_CANCELLED;
}

enum ifd_code ifd_watcher_create(const struct ifd_watcher_options *options,
                                 struct ifd_watcher **ret_watch, struct ifd_err *err)
{
    struct ifd_watcher *watch = ifd_acquire_zeroed(options->alloc, 1, sizeof(*watch));
    if (!watch) {
        return ifd_fail(err, IFD_NOMEM, "no memory to watch the repositories");
    }
    watch->options = *options;
    *ret_watch = watch;
    return IFD_OK;
}

void ifd_watcher_destroy(struct ifd_watcher *watch)
{
    if (!watch) {
        return;
    }
    const struct ifd_alloc *alloc = watch->options.alloc;
    for (uint32_t i = 0; i < watch->count; i++) {
        ifd_release(alloc, watch->entry[i], sizeof(*watch->entry[i]));
    }
    ifd_release(alloc, watch->entry, watch->capacity * sizeof(*watch->entry));
    ifd_release(alloc, watch, sizeof(*watch));
}

static struct entry *find(const struct ifd_watcher *watch, const char *name)
{
    for (uint32_t i = 0; i < watch->count; i++) {
        if (strcmp(watch->entry[i]->name, name) == 0) {
            return watch->entry[i];
        }
    }
    return NULL;
}

static struct entry *find_or_add(struct ifd_watcher *watch, const char *name)
{
    const struct ifd_alloc *alloc = watch->options.alloc;
    struct entry *entry = find(watch, name);
    if (entry || strlen(name) >= NAME_BYTES) {
        return entry;
    }
    if (watch->count == watch->capacity) {
        uint32_t more = watch->capacity > 0 ? watch->capacity * 2 : 16;
        struct entry **grown = ifd_acquire_zeroed(alloc, more, sizeof(*grown));
        if (!grown) {
            return NULL;
        }
        if (watch->count > 0) {
            memcpy(grown, watch->entry, watch->count * sizeof(*grown));
        }
        ifd_release(alloc, watch->entry, watch->capacity * sizeof(*grown));
        watch->entry = grown;
        watch->capacity = more;
    }
    entry = ifd_acquire_zeroed(alloc, 1, sizeof(*entry));
    if (entry) {
        memcpy(entry->name, name, strlen(name) + 1);
        watch->entry[watch->count++] = entry;
    }
    return entry;
}

/* True if a repository that had the model is not listed. */
static bool is_hidden(const struct ifd_watcher *watch, const struct entry *entry)
{
    return (entry->roots & watch->unlisted) != 0;
}

static bool is_changed(const struct entry *entry)
{
    return entry->is_present && (!entry->was_tried || entry->seen != entry->tried);
}

static void see_unfinished(struct entry *entry, const char *path, uint64_t now_ns)
{
    if (path[0] == '\0' || !is_changed(entry)) {
        entry->awaits_since_ns = 0;
    } else if (entry->awaits_since_ns == 0 ||
               strncmp(entry->unfinished, path, sizeof(entry->unfinished) - 1) != 0) {
        entry->awaits_since_ns = now_ns;
    }
    (void)snprintf(entry->unfinished, sizeof(entry->unfinished), "%s", path);
}

static void see(struct entry *entry, const struct ifd_scan_model *model, uint64_t now_ns)
{
    if (!entry->is_present || entry->unsummed != model->unsummed) {
        entry->unsummed = model->unsummed;
        entry->unsummed_since_ns = now_ns;
        entry->unsummed_scans = 0;
    }
    entry->unsummed_scans++;
    entry->seen = model->fingerprint;
    entry->roots = model->roots;
    entry->is_present = true;
    entry->absent_scans = 0;
    see_unfinished(entry, model->unfinished ? model->unfinished : "", now_ns);
}

/* Handles absent models; drops unneeded entries, so that names may come and go for years. */
static void forget_absent(struct ifd_watcher *watch)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < watch->count; i++) {
        struct entry *entry = watch->entry[i];
        if (entry->absent_scans > 0) {
            entry->is_present = false;
            entry->unsummed_scans = 0;
            entry->awaits_since_ns = 0;
        }
        if (!entry->is_present && !entry->was_tried && !entry->is_loading) {
            ifd_release(watch->options.alloc, entry, sizeof(*entry));
        } else {
            watch->entry[kept++] = entry;
        }
    }
    watch->count = kept;
}

/* A notice may bring scans close together: one more counts after the time between two polls, so
 * that a folder that is written anew is not unloaded meanwhile. */
static void count_absence(const struct ifd_watcher *watch, struct entry *entry, uint64_t now_ns)
{
    if (entry->absent_scans == 0 || now_ns - entry->absent_ns >= watch->options.poll_ns) {
        entry->absent_scans++;
        entry->absent_ns = now_ns;
    }
}

enum ifd_code ifd_watcher_scanned(struct ifd_watcher *watch, const struct ifd_scan *scan,
                                  uint64_t now_ns, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    /* A lost mount looks like an empty folder. */
    bool tells_absence = scan->is_complete && scan->count > 0;
    watch->unlisted = scan->unlisted;
    for (uint32_t i = 0; i < watch->count && tells_absence; i++) {
        count_absence(watch, watch->entry[i], now_ns);
    }
    for (uint32_t i = 0; i < scan->count; i++) {
        struct entry *entry = find_or_add(watch, scan->model[i].name);
        if (entry && !is_hidden(watch, entry)) {
            see(entry, &scan->model[i], now_ns);
        } else if (!entry && strlen(scan->model[i].name) < NAME_BYTES) {
            code = ifd_fail(err, IFD_NOMEM, "no memory to watch model \"%s\"", scan->model[i].name);
        }
    }
    forget_absent(watch);
    return code;
}

static bool is_settled(const struct ifd_watcher *watch, const struct entry *entry, uint64_t now_ns)
{
    bool is_known =
        entry->unsummed == 0 || (entry->was_tried && entry->unsummed == entry->tried_unsummed);
    bool is_still =
        entry->unsummed_scans >= 2 && now_ns - entry->unsummed_since_ns >= watch->options.settle_ns;
    return entry->unfinished[0] == '\0' && (is_known || is_still);
}

bool ifd_watcher_next(struct ifd_watcher *watch, uint64_t now_ns, struct ifd_watcher_action *ret)
{
    for (uint32_t i = 0; i < watch->count; i++) {
        struct entry *entry = watch->entry[i];
        if (entry->is_loading || is_hidden(watch, entry)) {
            continue;
        }
        if (entry->absent_scans >= watch->options.absent_scans && entry->was_tried) {
            entry->was_tried = entry->will_retry = false;
            entry->earliest_ns = 0;
            *ret = (struct ifd_watcher_action){.act = IFD_WATCHER_UNLOAD, .name = entry->name};
            return true;
        }
        bool is_due = is_changed(entry)
                          ? is_settled(watch, entry, now_ns) && now_ns >= entry->earliest_ns
                          : entry->is_present && entry->will_retry && now_ns >= entry->retry_ns;
        if (is_due) {
            entry->is_loading = true;
            *ret = (struct ifd_watcher_action){.act = IFD_WATCHER_LOAD, .name = entry->name};
            return true;
        }
    }
    return false;
}

/* Sets the time of the next swap; true if there were too many, so that it is later than the
 * dwell. */
static bool count_swap(const struct ifd_watcher *watch, struct entry *entry, uint64_t now_ns)
{
    const uint32_t most = watch->options.swaps_per_hour;
    if (entry->swaps == 0 || now_ns - entry->hour_ns >= HOUR_NS) {
        entry->hour_ns = now_ns;
        entry->swaps = 0;
    }
    entry->swaps++;
    entry->earliest_ns = now_ns + watch->options.dwell_ns;
    if (most == 0 || entry->swaps < most || entry->earliest_ns >= entry->hour_ns + HOUR_NS) {
        return false;
    }
    entry->earliest_ns = entry->hour_ns + HOUR_NS;
    return true;
}

/* Sets when the same content is tried again, if at all: after 1 s, 2 s, … 60 s. */
static void count_failure(struct entry *entry, enum ifd_code code, uint64_t now_ns)
{
    const uint32_t doublings = entry->attempts < 6 ? entry->attempts : 6;
    const uint64_t wait_ns = RETRY_FIRST_NS << doublings;
    entry->attempts++;
    entry->bad_attempts += !ifd_watcher_is_transient(code);
    entry->will_retry = entry->bad_attempts <= BAD_RETRIES_MAX;
    entry->retry_ns = now_ns + (wait_ns < RETRY_LAST_NS ? wait_ns : RETRY_LAST_NS);
}

bool ifd_watcher_loaded(struct ifd_watcher *watch, const char *name,
                        const struct ifd_scan_model *seen, enum ifd_code code, uint64_t now_ns)
{
    struct entry *entry = find_or_add(watch, name);
    if (!entry) {
        return false;
    }
    entry->is_loading = false;
    entry->was_tried = true;
    /* A load that ended before it saw the folder counts for the last scan. */
    const bool is_blind = code && seen->fingerprint == 0;
    const uint64_t tried = is_blind ? entry->seen : seen->fingerprint;
    if (entry->tried != tried || !code) {
        entry->attempts = entry->bad_attempts = 0;
    }
    if (!entry->is_present && !is_blind) {
        see(entry, seen, now_ns); /* before the first scan */
    }
    entry->tried = tried;
    entry->awaits_since_ns = is_changed(entry) ? entry->awaits_since_ns : 0;
    entry->tried_unsummed = is_blind ? entry->unsummed : seen->unsummed;
    if (!code) {
        entry->will_retry = false;
        return count_swap(watch, entry, now_ns);
    }
    count_failure(entry, code, now_ns);
    return false;
}

const char *ifd_watcher_awaits(const struct ifd_watcher *watch, const char *name,
                               uint64_t *ret_since_ns)
{
    const struct entry *entry = find(watch, name);
    if (!entry || entry->is_loading || entry->awaits_since_ns == 0) {
        return NULL;
    }
    *ret_since_ns = entry->awaits_since_ns;
    return entry->unfinished;
}

static uint64_t until(uint64_t at_ns, uint64_t now_ns)
{
    return at_ns > now_ns ? at_ns - now_ns : 0;
}

struct ifd_watcher_pending ifd_watcher_pending(const struct ifd_watcher *watch, const char *name,
                                               uint64_t now_ns)
{
    const struct entry *entry = find(watch, name);
    struct ifd_watcher_pending pending = {.kind = IFD_WATCHER_WAITS_NOT};
    if (!entry || entry->is_loading || !is_changed(entry) || is_hidden(watch, entry)) {
        return pending;
    }
    if (entry->awaits_since_ns > 0) {
        pending.kind = IFD_WATCHER_WAITS_UPLOAD;
        pending.file = entry->unfinished;
        pending.since_ns = now_ns - entry->awaits_since_ns;
    } else if (now_ns < entry->earliest_ns) {
        pending.kind = IFD_WATCHER_WAITS_DWELL;
        pending.left_ns = entry->earliest_ns - now_ns;
    } else {
        pending.kind = IFD_WATCHER_WAITS_SETTLE;
        pending.since_ns = now_ns - entry->unsummed_since_ns;
    }
    return pending;
}

uint64_t ifd_watcher_retry_ns(const struct ifd_watcher *watch, const char *name, uint64_t now_ns)
{
    const struct entry *entry = find(watch, name);
    return entry && entry->is_loading     ? 0
           : !entry || !entry->will_retry ? UINT64_MAX
                                          : until(entry->retry_ns, now_ns);
}

uint64_t ifd_watcher_wait_ns(const struct ifd_watcher *watch, uint64_t now_ns)
{
    uint64_t wait_ns = watch->options.poll_ns;
    for (uint32_t i = 0; i < watch->count; i++) {
        const struct entry *entry = watch->entry[i];
        uint64_t need_ns = wait_ns;
        if (entry->is_loading || is_hidden(watch, entry)) {
            continue;
        }
        if (is_changed(entry)) {
            const uint64_t held_ns = until(entry->earliest_ns, now_ns);
            const uint64_t settle_ns = entry->unfinished[0] ? wait_ns : watch->options.settle_ns;
            need_ns = settle_ns > held_ns ? settle_ns : held_ns;
        } else if (entry->is_present && entry->will_retry) {
            need_ns = until(entry->retry_ns, now_ns);
        }
        wait_ns = need_ns < wait_ns ? need_ns : wait_ns;
    }
    return wait_ns;
}

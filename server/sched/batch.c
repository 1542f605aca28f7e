/* The batching decision. */
#include "server/sched/batch.h"

static bool is_preferred(const struct ifd_batch_rules *rules, int64_t total)
{
    for (uint32_t i = 0; i < rules->preferred_count; i++) {
        if (rules->preferred[i] == total) {
            return true;
        }
    }
    return false;
}

struct ifd_batch_choice ifd_batch_choose(const struct ifd_batch_rules *rules,
                                         const struct ifd_batch_item *item, uint32_t count,
                                         uint64_t now_ns, bool is_hurried)
{
    if (!rules->is_dynamic) {
        return (struct ifd_batch_choice){.take = 1};
    }
    int64_t total = 0;
    uint32_t take = 0, take_preferred = 0;
    uint64_t oldest_ns = item[0].queued_ns; /* not always item 0: priorities come before age */
    while (take < count && item[take].fits_first &&
           (take == 0 || item[take].batch <= rules->max_batch - total)) {
        total += item[take].batch;
        oldest_ns = item[take].queued_ns < oldest_ns ? item[take].queued_ns : oldest_ns;
        take++;
        if (is_preferred(rules, total)) {
            take_preferred = take;
        }
    }
    /* A full batch leaves; so does one in front of a request that does not fit. */
    bool is_final = take < count || total >= rules->max_batch || count == IFD_BATCH_ITEMS_MAX;
    const bool is_endless = rules->max_delay_ns > UINT64_MAX - oldest_ns;
    const uint64_t until_ns = is_endless ? UINT64_MAX : oldest_ns + rules->max_delay_ns;
    bool is_overdue = rules->max_delay_ns > 0 && now_ns >= until_ns;
    if (take_preferred > 0 && !is_overdue && !is_hurried) {
        return (struct ifd_batch_choice){.take = take_preferred};
    }
    if (is_final || is_hurried || is_overdue || rules->max_delay_ns == 0) {
        return (struct ifd_batch_choice){.take = take};
    }
    return (struct ifd_batch_choice){.wait_until_ns = until_ns};
}

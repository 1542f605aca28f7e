/* The priority level of a request: its queue policy, bound and deadline. */
#include "server/serve/served.h"
#include "server/serve/service_impl.h"

/* Deadline for the start of the run from the level's policy or the client's timeout, or for the end
 * of a wait that begins now from the server's default; 0: none. *ret_is_default: the latter. */
static uint64_t deadline_of(const struct ifd_service *service, const struct ifd_model_desc *desc,
                            const struct ifd_queue_policy_info *policy,
                            const struct ifd_infer_request *request, bool *ret_is_default)
{
    uint64_t timeout_us = policy->default_timeout_us;
    /* A model without dynamic_batching has no policy that could forbid the client's timeout. */
    bool may_shorten = !desc->dynamic_batching || policy->allow_timeout_override;
    if (may_shorten && request->timeout_us > 0 &&
        (timeout_us == 0 || request->timeout_us < timeout_us)) {
        timeout_us = request->timeout_us;
    }
    *ret_is_default = timeout_us == 0;
    if (*ret_is_default && service->options.config->default_timeout_ms > 0) {
        timeout_us = (uint64_t)service->options.config->default_timeout_ms * 1000;
        /* a request may wait for others to share its run */
        timeout_us = desc->max_queue_delay_us < UINT64_MAX - timeout_us
                         ? timeout_us + desc->max_queue_delay_us
                         : UINT64_MAX;
    }
    if (timeout_us == 0 || timeout_us > UINT64_MAX / 2000) {
        return 0;
    }
    return (*ret_is_default ? ifd_monotonic_ns() : request->handled_ns) + timeout_us * 1000;
}

enum ifd_code ifd_service_level(const struct ifd_model_desc *desc, uint64_t priority,
                                uint32_t *ret_level, struct ifd_err *err)
{
    if (desc->priority_levels == 0) {
        *ret_level = 0;
        return IFD_OK;
    }
    if (priority > desc->priority_levels) {
        return ifd_fail(err, IFD_INVALID, "priority %llu is not between 1 and %u",
                        (unsigned long long)priority, desc->priority_levels);
    }
    uint64_t level = priority > 0 ? priority : desc->default_priority_level;
    *ret_level = (uint32_t)(level > 0 ? level - 1 : 0);
    return IFD_OK;
}

/* Queue policy of a priority level. */
static const struct ifd_queue_policy_info *policy_of(const struct ifd_version *version,
                                                     uint32_t level,
                                                     struct ifd_queue_bound **ret_bound)
{
    const struct ifd_model_desc *desc = &version->desc;
    const struct ifd_served *served = version->served;
    *ret_bound = NULL;
    for (uint32_t i = 0; i < desc->level_policy_count; i++) {
        if (desc->level_policy[i].priority == level + 1) {
            *ret_bound = served->bound[i].capacity > 0 ? &served->bound[i] : NULL;
            return &desc->level_policy[i].policy;
        }
    }
    return &desc->queue_policy;
}

struct service_terms ifd_service_terms(const struct ifd_service *service,
                                       const struct ifd_infer_request *request, uint32_t level)
{
    const struct ifd_version *version = (struct ifd_version *)request->model;
    struct service_terms terms = {0};
    const struct ifd_queue_policy_info *policy = policy_of(version, level, &terms.bound);
    terms.deadline_ns = deadline_of(service, &version->desc, policy, request, &terms.is_default);
    terms.rejects = policy->reject;
    return terms;
}

uint64_t ifd_service_deadline(const struct ifd_service *service,
                              const struct ifd_infer_request *request, bool *ret_is_default)
{
    const struct ifd_version *version = (struct ifd_version *)request->model;
    uint32_t level = 0;
    *ret_is_default = false;
    if (ifd_service_level(&version->desc, request->priority, &level, NULL)) {
        return 0; /* submit will say so */
    }
    const struct service_terms terms = ifd_service_terms(service, request, level);
    *ret_is_default = terms.rejects && terms.is_default;
    return terms.rejects ? terms.deadline_ns : 0;
}

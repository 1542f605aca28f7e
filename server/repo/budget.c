/* A counter that several loads share. */
#include "server/repo/budget.h"

enum ifd_code ifd_budget_hold(struct ifd_budget *budget, uint64_t *held, uint64_t bytes,
                              struct ifd_err *err)
{
    if (!budget) {
        return IFD_OK;
    }
    uint64_t used = atomic_load(&budget->used_bytes);
    do {
        uint64_t others = used - *held;
        if (bytes > *held &&
            (others > budget->limit_bytes || bytes > budget->limit_bytes - others)) {
            uint64_t left = others < budget->limit_bytes ? budget->limit_bytes - others : 0;
            atomic_fetch_add(&budget->refusals, 1);
            return ifd_fail(err, IFD_NOMEM,
                            "%llu bytes of memory needed, %llu of %llu are left (--memory-budget)",
                            (unsigned long long)bytes, (unsigned long long)left,
                            (unsigned long long)budget->limit_bytes);
        }
    } while (!atomic_compare_exchange_weak(&budget->used_bytes, &used, used - *held + bytes));
    *held = bytes;
    return IFD_OK;
}

uint64_t ifd_budget_left(struct ifd_budget *budget)
{
    const uint64_t used = atomic_load(&budget->used_bytes);
    return used < budget->limit_bytes ? budget->limit_bytes - used : 0;
}

void ifd_budget_give_back(struct ifd_budget *budget, uint64_t *held)
{
    if (budget) {
        atomic_fetch_sub(&budget->used_bytes, *held);
        *held = 0;
    }
}

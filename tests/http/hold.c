#include "tests/http/hold.h"

void hold_init(struct hold *hold)
{
    ifd_mutex_init(&hold->mutex);
    ifd_cond_init(&hold->changed);
    hold->is_held = hold->is_let_go = false;
}

void hold_finish(struct hold *hold)
{
    ifd_cond_finish(&hold->changed);
    ifd_mutex_finish(&hold->mutex);
}

static void set(struct hold *hold, bool *flag)
{
    ifd_mutex_lock(&hold->mutex);
    *flag = true;
    ifd_cond_broadcast(&hold->changed);
    ifd_mutex_unlock(&hold->mutex);
}

static void wait_for(struct hold *hold, const bool *flag)
{
    ifd_mutex_lock(&hold->mutex);
    while (!*flag) {
        ifd_cond_wait(&hold->changed, &hold->mutex);
    }
    ifd_mutex_unlock(&hold->mutex);
}

void hold_here(struct hold *hold)
{
    set(hold, &hold->is_held);
    wait_for(hold, &hold->is_let_go);
}

void hold_wait(struct hold *hold)
{
    wait_for(hold, &hold->is_held);
}

void hold_let_go(struct hold *hold)
{
    set(hold, &hold->is_let_go);
}

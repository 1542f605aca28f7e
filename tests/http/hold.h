/** A place where a thread of the server waits as long as the test likes. */
#ifndef INFERD_TESTS_HTTP_HOLD_H
#define INFERD_TESTS_HTTP_HOLD_H

#include <stdbool.h>

#include "engine/base/thread.h"

struct hold {
    struct ifd_mutex mutex;
    struct ifd_cond changed;
    bool is_held, is_let_go;
};

void hold_init(struct hold *hold);
void hold_finish(struct hold *hold);
/** Returns after hold_let_go. Thread: the one that is held. */
void hold_here(struct hold *hold);
/** Returns when a thread is held. */
void hold_wait(struct hold *hold);
void hold_let_go(struct hold *hold);

#endif

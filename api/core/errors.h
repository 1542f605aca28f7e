/** What a code means for the client's next attempt; each protocol has its own table of statuses.
 *  Thread: any. */
#ifndef INFERD_API_CORE_ERRORS_H
#define INFERD_API_CORE_ERRORS_H

#include "inferd/status.h"

/** Whether the same request may succeed a moment later. */
bool ifd_code_may_retry(enum ifd_code code);

#endif

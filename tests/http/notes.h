/** What a server's log says, for tests that wait for it. One log at a time. */
#ifndef INFERD_TESTS_HTTP_NOTES_H
#define INFERD_TESTS_HTTP_NOTES_H

#include <stdbool.h>

#include "engine/base/log.h"

/** For live_options.log. Thread: any. */
void notes_take(void *context, enum ifd_log_level level, const char *sentence, const char *fields);
/** Waits until one says so; false if none ever does. */
bool notes_have(const char *text);
/** While nothing is under way: forgets them; and all since then, a line each. */
void notes_clear(void);
const char *notes_text(void);

#endif

/** The log sink of the program: one line per event on a descriptor, key=value. */
#ifndef INFERD_SERVER_OBS_LOG_STDERR_H
#define INFERD_SERVER_OBS_LOG_STDERR_H

#include "engine/base/log.h"

/** A log that writes "2026-01-31T12:00:00.123Z info sentence key=value" to fd with one write() each, so that lines of
 *  several threads do not mix. Lines are cut at 1,500 bytes. fd must stay open. */
struct ifd_log ifd_log_to_fd(int fd, enum ifd_log_level level);

#endif

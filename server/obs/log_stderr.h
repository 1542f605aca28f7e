/** The log sink of the program: one line per event on a descriptor, as text or as JSON.
 *
 *      2026-01-31T12:00:00.123Z info model loaded model=m version=1
 *      <6>model loaded model=m version=1                     (the journal adds the time)
 *      {"time":"2026-01-31T12:00:00.123Z","level":"info","event":"model loaded","model":"m",
 *       "version":1}                                          (one line) */
#ifndef INFERD_SERVER_OBS_LOG_STDERR_H
#define INFERD_SERVER_OBS_LOG_STDERR_H

#include "engine/base/log.h"

enum ifd_log_format { IFD_LOG_TEXT, IFD_LOG_JSON, IFD_LOG_JOURNAL };

/** A log that writes each line to fd with one write(), so that lines of several threads do not mix.
 *  A line is lost if fd, a pipe or socket, accepts nothing for 10 ms. levels: see ifd_log.levels.
 *  fd is below 256 and stays open. */
struct ifd_log ifd_log_to_fd(int fd, enum ifd_log_format format, unsigned levels);

/** Is fd the stream that JOURNAL_STREAM names ("device:inode" in decimal, set by systemd)? NULL:
 *  no. */
bool ifd_log_is_journal(int fd, const char *journal_stream);

#endif

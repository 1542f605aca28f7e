/** The log sink of the program: one line per event on a descriptor, as text or as JSON.
 *
 *      2026-01-31T12:00:00.123Z info model loaded name=m version=1
 *      <6>model loaded name=m version=1                                 (a journal has times and levels of its own)
 *      {"time":"2026-01-31T12:00:00.123Z","level":"info","event":"model loaded","name":"m","version":1} */
#ifndef INFERD_SERVER_OBS_LOG_STDERR_H
#define INFERD_SERVER_OBS_LOG_STDERR_H

#include "engine/base/log.h"

enum ifd_log_format { IFD_LOG_TEXT, IFD_LOG_JSON, IFD_LOG_JOURNAL };

/** A log that writes each line to fd with one write(), so that lines of several threads do not mix. A line is lost if fd, a
 *  pipe or socket, takes nothing for 10 ms. levels: see ifd_log.levels. fd must stay open; below 256. */
struct ifd_log ifd_log_to_fd(int fd, enum ifd_log_format format, unsigned levels);

/** Is fd what JOURNAL_STREAM ("device:inode" in decimal, as systemd sets it) says? NULL: no. */
bool ifd_log_is_journal(int fd, const char *journal_stream);

#endif

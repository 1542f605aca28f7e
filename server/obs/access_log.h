/** One structured line per answered request. Thread: any. */
#ifndef INFERD_SERVER_OBS_ACCESS_LOG_H
#define INFERD_SERVER_OBS_ACCESS_LOG_H

#include "engine/base/log.h"

struct ifd_access {
    const char *method;
    struct ifd_str path;
    int status; /* 0: the client went away before an answer */
    size_t body_bytes, answer_bytes;
    uint64_t took_ns;
};

/** Written at debug level: --log-verbose turns it on. */
void ifd_access_log(const struct ifd_log *log, const struct ifd_access *access);

#endif

/** Log sink: a level, a sentence, fields. Passed explicitly; libraries below server/ use only
 *  debug.
 *
 *      ifd_log_info(log, "server started", "port=%u took_ms=%llu", port, ms);
 *
 *  A format of NULL: no fields. Values are quoted and escaped here (engine/base/escape.h) unless
 *  they hold only printable ASCII without blanks, quotes, backslashes and "=", so that no value
 *  forges a field or a line. Thread: any (the sink locks). */
#ifndef INFERD_ENGINE_BASE_LOG_H
#define INFERD_ENGINE_BASE_LOG_H

#include <stdatomic.h>

#include "inferd/types.h"

enum ifd_log_level { IFD_LOG_ERROR, IFD_LOG_WARN, IFD_LOG_INFO, IFD_LOG_DEBUG };

/** Set of a level and all more severe ones. */
#define IFD_LOG_UP_TO(level) ((2u << (level)) - 1)

struct ifd_log {
    atomic_uint levels; /* a bit per level that is written; may change at any time */
    void *context;
    /** sentence: a literal without a full stop; fields: "key=value key=\"a value\"" or "". */
    void (*write)(void *context, enum ifd_log_level level, const char *sentence,
                  const char *fields);
};

/** Bytes of fields at most, with the NUL; what does not fit is cut. */
#define IFD_LOG_FIELDS_BYTES 1024

/** fields_format: "key=value key=value"; a value is one of printf's %s %d %u %zu %lld %llu, or a
 *  literal. */
void ifd_log_error(const struct ifd_log *log, const char *sentence, const char *fields_format, ...)
    IFD_PRINTF(3, 4);
void ifd_log_warn(const struct ifd_log *log, const char *sentence, const char *fields_format, ...)
    IFD_PRINTF(3, 4);
void ifd_log_info(const struct ifd_log *log, const char *sentence, const char *fields_format, ...)
    IFD_PRINTF(3, 4);
void ifd_log_debug(const struct ifd_log *log, const char *sentence, const char *fields_format, ...)
    IFD_PRINTF(3, 4);

/** Is a line of this level written? NULL: no. */
static inline bool ifd_log_takes(const struct ifd_log *log, enum ifd_log_level level)
{
    return log && (log->levels & (1u << level)) != 0;
}

/** "error", "warn", "info", "debug". Static. */
const char *ifd_log_level_name(enum ifd_log_level level);

#endif

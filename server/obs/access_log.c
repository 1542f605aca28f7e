/* Access lines. */
#include "server/obs/access_log.h"

#include <stdio.h>

void ifd_access_log(const struct ifd_log *log, const struct ifd_access *access)
{
    if (!log || log->level < IFD_LOG_DEBUG) {
        return;
    }
    char path[256], quoted[320];
    (void)snprintf(path, sizeof(path), "%.*s", (int)access->path.size, access->path.data);
    ifd_log_debug(log, "request answered",
                  "method=%s path=%s status=%d body_bytes=%zu answer_bytes=%zu took_us=%llu",
                  access->method, ifd_log_quote(path, quoted, sizeof(quoted)), access->status,
                  access->body_bytes, access->answer_bytes,
                  (unsigned long long)(access->took_ns / 1000));
}

/** SIGHUP: reloads settings and tokens, reopens the access log, scans the folders. Reading and
 *  opening happen off the loop. A failure is logged and changes nothing. Further signals meanwhile
 *  cause one more reload. Thread: loop. */
#ifndef INFERD_SERVER_OPS_REREAD_H
#define INFERD_SERVER_OPS_REREAD_H

#include "engine/base/log.h"
#include "inferd/alloc.h"
#include "server/auth/tokens.h"
#include "server/config/config.h"
#include "server/obs/access_log.h"

struct ifd_reread {
    const struct ifd_alloc *alloc;
    struct ifd_log *log;
    struct ifd_config *config; /* changes only if everything could be read */
    int argc;                  /* the command line, as ifd_config_parse takes it */
    char **argv;
    struct ifd_access_log *access_log; /* may be NULL */
    struct ifd_tokens **tokens;        /* tokens of the file in config; NULL: there are none */
    struct ifd_metric_set *metrics;    /* counts results; may be NULL */
    /** As in struct ifd_repo_host. */
    enum ifd_code (*run_off_loop)(void *context, void (*work)(void *arg), void (*done)(void *arg),
                                  void *arg, struct ifd_err *err);
    /** config may have changed; appliers: what ifd_config_update returned. */
    void (*applied)(void *context, unsigned appliers);
    void (*ended)(void *context); /* after success and failure */
    void *context;
    bool is_running, is_asked_again;
    bool is_over; /* a running reload changes nothing any more */
};

void ifd_reread_begin(struct ifd_reread *reread);

#endif

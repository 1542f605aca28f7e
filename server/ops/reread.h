/** SIGHUP: settings and tokens are read again, the access log is opened anew, and folders are
 *  looked at. Reading and opening happen off the loop; what cannot be read or opened is logged, and
 *  everything stays as it was. Signals that come while one is being obeyed become one more. Thread:
 *  loop. */
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
    struct ifd_config *config; /* changed when everything could be read */
    int argc;                  /* the command line, as ifd_config_parse takes it */
    char **argv;
    struct ifd_access_log *access_log; /* may be NULL */
    struct ifd_tokens **tokens;        /* of the file that config names; NULL: there are none */
    struct ifd_metric_set *metrics;    /* counts what came of it; may be NULL */
    /** As in struct ifd_repo_host. */
    enum ifd_code (*run_off_loop)(void *context, void (*work)(void *arg), void (*done)(void *arg),
                                  void *arg, struct ifd_err *err);
    /** config may have changed; appliers: what ifd_config_update returned. */
    void (*applied)(void *context, unsigned appliers);
    void (*ended)(void *context); /* whatever came of it */
    void *context;
    bool is_running, is_asked_again;
    bool is_over; /* what still runs changes nothing any more */
};

void ifd_reread_begin(struct ifd_reread *reread);

#endif

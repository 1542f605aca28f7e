/** Loads one model, all versions that its policy wants. Everything here may take long. Thread: any
 *  but the loop; the load owns the struct until it is over. */
#ifndef INFERD_SERVER_REPO_LOAD_MODEL_H
#define INFERD_SERVER_REPO_LOAD_MODEL_H

#include "server/repo/repo.h"
#include "server/repo/scan.h"

/** A version that serves already, as the loop thread knew it when the load began. */
struct ifd_live_version {
    int64_t number;
    uint64_t digest;
    bool is_finite; /* see struct ifd_version */
};

struct ifd_loaded_version {
    int64_t number;
    struct ifd_version *version; /* NULL: the one that serves stays */
};

struct ifd_model_load {
    /* set before */
    const struct ifd_repo_options *options;
    const char *name;
    /* config and files of the request; root and name are set here */
    struct ifd_source request;
    const struct ifd_live_version *live;
    uint32_t live_count;
    bool is_asked; /* requested by a client: ignores the quarantine */

    /* the result */
    struct ifd_loaded_version *version; /* ascending; ifd_release'd by the caller */
    uint32_t version_count, version_capacity;
    bool is_unknown;            /* no repository has this model */
    struct ifd_scan_model seen; /* the folder, before anything was read */
    /* Failure of the newest version that failed; failed versions are UNAVAILABLE with the
     * reason. */
    enum ifd_code code;
    struct ifd_err err;
    int64_t failed_number; /* the failed version; 0: all */
    /* The only failure is that a version does not match its SHA256SUMS, as during an upload: it is
     * ignored. */
    bool is_passed_over;
    /* All that serves stays: its replacement failed, or only older versions remain. */
    bool keeps_live;
};

void ifd_load_model(struct ifd_model_load *load);
/** Returns OK, or UNAVAILABLE if options->is_stopping. */
IFD_NODISCARD enum ifd_code ifd_load_check_stop(const struct ifd_repo_options *options,
                                                struct ifd_err *err);

#endif

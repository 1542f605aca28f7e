/** Loading one model, all versions that its policy wants, off the loop: everything here may take
 *  long. Thread: any but the loop; the struct belongs to the load until it is over. */
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
    struct ifd_version *version; /* NULL: the one that serves has the same content and stays */
};

struct ifd_model_load {
    /* set before */
    const struct ifd_repo_options *options;
    const char *name;
    /* config and files that the request brought; root and name are set here */
    struct ifd_source request;
    const struct ifd_live_version *live;
    uint32_t live_count;
    bool is_asked; /* somebody wants it tried, quarantine or not */

    /* the result */
    struct ifd_loaded_version *version; /* ascending; ifd_release'd by the caller */
    uint32_t version_count, version_capacity;
    bool is_unknown;            /* no repository has this model */
    struct ifd_scan_model seen; /* the folder, before anything was read */
    /* The failure that is told, of the newest version that has one; versions that did not load are
     * UNAVAILABLE with the reason. */
    enum ifd_code code;
    struct ifd_err err;
    int64_t failed_number; /* the version it was about; 0: all */
    /* The failure is only that a version does not match its SHA256SUMS, as while it is being
     * uploaded: it is not considered, and the other versions are all that there is. */
    bool is_passed_over;
    /* What serves goes on, all of it: something in its place failed, or what is left is older. */
    bool keeps_live;
};

void ifd_load_model(struct ifd_model_load *load);
/** OK, or UNAVAILABLE: options->is_stopping. */
IFD_NODISCARD enum ifd_code ifd_load_check_stop(const struct ifd_repo_options *options,
                                                struct ifd_err *err);

#endif

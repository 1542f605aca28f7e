/** A model and its versions in the repository. Changed only on the loop thread, except a version
 *  that is being loaded: only the load thread has it. */
#ifndef INFERD_SERVER_REPO_MODEL_H
#define INFERD_SERVER_REPO_MODEL_H

#include "inferd/engine.h"
#include "server/model/desc.h"
#include "server/repo/sealed.h"
#include "server/repo/source.h"

/** One version. Immutable after loading, except state, reason and refs. */
struct ifd_version {
    const char *name; /* of the model */
    int64_t number;
    char number_text[24];
    enum ifd_model_state state;
    char reason[IFD_ERR_TEXT_BYTES];
    uint32_t refs; /* requests that hold it */

    struct ifd_arena arena; /* name, description, labels, and additions of the server */
    struct ifd_model_desc desc;
    const struct ifd_source *source; /* while it is being loaded; NULL afterwards */
    uint64_t digest;                 /* of config, model files and labels */
    uint64_t held_bytes;             /* of the memory budget */
    /* Answers to made-up inputs are finite; must be finite, because those of the version that it
     * replaces are. */
    bool is_finite, has_to_be_finite;
    struct ifd_sealed sealed; /* the memory of file */
    struct ifd_bytes file;    /* size 0: a model without a file */
    /* Files beside it that its constants lie in, and their memory. */
    struct ifd_external_file *external;
    struct ifd_sealed *external_sealed;
    uint32_t external_count;
    struct ifd_model *engine; /* NULL: identity */
    void *served;             /* struct ifd_served; NULL: it does not run */
    bool has_stand_in;        /* UNAVAILABLE, and other versions of the model serve instead */
    struct ifd_version *next; /* of those that drain */
};

struct ifd_repo_op; /* operations.c: a load or unload that waits */

struct ifd_repo_model {
    const char *name;
    struct ifd_version **version; /* ascending; one per number */
    uint32_t version_count, version_capacity;
    const char **ready; /* numbers of those that are READY, as text, ascending */
    uint32_t ready_count;
    bool is_loading;
    bool is_listed; /* a repository had it at the start */
    /* should serve: loaded at the start, or later with success, and not unloaded since */
    bool is_wanted;
    /* why there is no version; "" if it was never loaded */
    char reason[IFD_ERR_TEXT_BYTES];
    /* Why older content serves in place of newer; "": it does not. failed_number 0: no version in
     * particular. */
    char failed_reason[IFD_ERR_TEXT_BYTES];
    int64_t failed_number;
    enum ifd_code failed_code;
    /* Failed loads in a row of a folder with this fingerprint; 0: the last load succeeded. */
    uint32_t failed_attempts;
    uint64_t failed_fingerprint;
    /* Logged: since when newer content waits for a file (0: it does not), and that this is long. */
    uint64_t awaits_since_ns;
    bool is_wait_long;
    bool is_pending;                        /* newer content waits for something */
    struct ifd_repo_op *first_op, *last_op; /* the first runs */
};

#endif

/** A model and its versions as the repository knows them. Changed on the loop thread only, except while a version is being
 *  loaded: then the loader alone has it. */
#ifndef INFERD_SERVER_REPO_MODEL_H
#define INFERD_SERVER_REPO_MODEL_H

#include "inferd/engine.h"
#include "server/repo/manifest.h"

enum ifd_version_state {
    IFD_VERSION_LOADING,
    IFD_VERSION_READY,
    IFD_VERSION_UNAVAILABLE, /* reason says why */
    IFD_VERSION_UNLOADING
};

/** One version. Immutable after loading, except state, reason and refs. */
struct ifd_version {
    const char *name; /* of the model */
    int64_t number;
    char number_text[24];
    enum ifd_version_state state;
    char reason[IFD_ERR_TEXT_BYTES];
    uint32_t refs; /* requests that hold it; the only reference count of the product */

    struct ifd_arena arena; /* manifest, labels, and what the server adds */
    struct ifd_manifest manifest;
    const char *dir;          /* of the model */
    struct ifd_bytes file;    /* size 0: a model without a file */
    struct ifd_model *engine; /* NULL: identity */
    void *served;             /* the server's own: how the version runs */
};

struct ifd_repo_model {
    const char *name, *dir;
    struct ifd_version **version; /* ascending */
    uint32_t version_count;
    bool is_loading;
    char reason[IFD_ERR_TEXT_BYTES]; /* why there is no version at all; "" otherwise */
};

#endif

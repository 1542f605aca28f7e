/** Plugins: backends in shared objects, found in folders when an engine is made.
 *
 *  Every file NAME.so of a folder is opened, in the order of the names. It is taken if it exports
 *  ifd_backend_query (inferd/backend.h), offers this version of the ABI and has a name that no
 *  backend before it has; else the file keeps a row with the reason, so that a user can be told.
 *  A plugin is code of this process: a folder that every user may write in is refused.
 *  Thread: one at a time. */
#ifndef INFERD_ENGINE_BACKEND_LOADER_H
#define INFERD_ENGINE_BACKEND_LOADER_H

#include "engine/base/arena.h"
#include "inferd/backend.h"

/** A file that was opened. */
struct ifd_plugin {
    const char *path;
    const char *file;                  /* the path's last part */
    void *library;                     /* of the dynamic linker; NULL: it could not be opened */
    const struct ifd_backend *backend; /* in the library; NULL: not taken */
    struct ifd_err reason;             /* why not */
};

struct ifd_plugins {
    struct ifd_arena arena;
    struct ifd_plugin *plugin;
    uint32_t count;
};

/** Where to look. The texts may go when ifd_plugins_load returns. */
struct ifd_plugin_search {
    const char *const *folders;
    uint32_t folder_count;
    /** First look in ../lib/inferd/backends, seen from the folder of the program; that it does not
     *  exist is no error. */
    bool beside_program;
    const struct ifd_backend *const *builtin; /* their names are taken */
    uint32_t builtin_count;
};

/** Most files of all folders together. */
#define IFD_PLUGIN_FILES_MAX 64

/** Errors: INVALID (a folder that cannot be read or that every user may write in, too many files),
 *  NOMEM. Nothing is left on error. */
IFD_NODISCARD enum ifd_code ifd_plugins_load(const struct ifd_plugin_search *search,
                                             const struct ifd_alloc *alloc, struct ifd_plugins *ret,
                                             struct ifd_err *err);

/** Closes the shared objects. No device of theirs may be open. Zeroed plugins are fine. */
void ifd_plugins_unload(struct ifd_plugins *plugins);

#endif

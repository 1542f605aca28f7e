/** The files beside a model's file that its constants lie in, opened beneath its folder. Thread:
 *  any. */
#ifndef INFERD_ENGINE_TOOLS_EXTERNALS_H
#define INFERD_ENGINE_TOOLS_EXTERNALS_H

#include "engine/base/file.h"
#include "inferd/engine.h"

struct ifd_externals {
    struct ifd_external_file *file;
    uint32_t count;
    const struct ifd_alloc *alloc;
    struct ifd_file *held;
    char **name;
};

/** path: of the model's file, content: what it holds. On error nothing is left. Errors: as
 *  ifd_model_externals and ifd_file_open; INVALID (a name that leads out of the folder). */
IFD_NODISCARD enum ifd_code ifd_externals_open(const char *path, struct ifd_bytes content,
                                               size_t limit_bytes, const struct ifd_alloc *alloc,
                                               struct ifd_externals *ret, struct ifd_err *err);
/** A zeroed one is fine. */
void ifd_externals_close(struct ifd_externals *externals);

#endif

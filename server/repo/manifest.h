/** Reads a model's config (config.pbtxt or config.json) into its description, with the names and
 *  meanings of Triton's model_config.proto.
 *
 *  A field that has no meaning here is a warning; one whose meaning would be lost (ensembles,
 *  decoupled models) is an error. complete.h adds what the config leaves out from the model file.
 *  Thread: any. */
#ifndef INFERD_SERVER_REPO_MANIFEST_H
#define INFERD_SERVER_REPO_MANIFEST_H

#include "engine/base/arena.h"
#include "server/model/desc.h"

/** Receives warnings about a config, one sentence each. */
struct ifd_manifest_warnings {
    void (*warn)(void *context, const char *text);
    void *context;
};

/** Sets the defaults of a model without a config. */
void ifd_manifest_init(struct ifd_model_desc *manifest);

/** Reads text (file_name names it in messages) over the defaults. Errors: CORRUPT, INVALID (a value
 *  out of range), UNSUPPORTED, TOO_LARGE, NOMEM; all with the line. */
IFD_NODISCARD enum ifd_code ifd_manifest_read(struct ifd_str text, const char *file_name,
                                              struct ifd_arena *arena,
                                              const struct ifd_manifest_warnings *warnings,
                                              struct ifd_model_desc *ret, struct ifd_err *err);

#endif

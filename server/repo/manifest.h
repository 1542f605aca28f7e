/** Reads a model's config (config.pbtxt or config.json) into its description, with the names and
 *  meanings of Triton's model_config.proto.
 *
 *  Fields without a meaning here are named in a warning; fields whose meaning would be lost
 *  (ensembles, sequences, reshape) are an error. What the config leaves out is filled in from the
 *  model file later (complete.h). Thread: any. */
#ifndef INFERD_SERVER_REPO_MANIFEST_H
#define INFERD_SERVER_REPO_MANIFEST_H

#include "engine/base/arena.h"
#include "server/model/desc.h"

/** Hears what is odd in a config, one sentence a time. */
struct ifd_manifest_warnings {
    void (*warn)(void *context, const char *text);
    void *context;
};

/** Defaults: what a model without a config has. */
void ifd_manifest_init(struct ifd_model_desc *manifest);

/** Reads text (file_name names it in messages) over the defaults. Errors: CORRUPT, INVALID (a value
 *  out of range), UNSUPPORTED, TOO_LARGE, NOMEM; all with the line. */
IFD_NODISCARD enum ifd_code ifd_manifest_read(struct ifd_str text, const char *file_name,
                                              struct ifd_arena *arena,
                                              const struct ifd_manifest_warnings *warnings,
                                              struct ifd_model_desc *ret, struct ifd_err *err);

/** Value of a parameter; NULL if it is not there. */
const char *ifd_manifest_parameter(const struct ifd_model_desc *manifest, const char *key);

#endif

/** Loading one version: config, file, engine, labels checked. Everything here may take long.
 *  Thread: any but the loop. */
#ifndef INFERD_SERVER_REPO_LOAD_VERSION_H
#define INFERD_SERVER_REPO_LOAD_VERSION_H

#include "server/repo/repo.h"

/** Reads the config of a model, if there is one (config.pbtxt, else config.json, or what the source
 *  has instead), into arena. digest goes on over its bytes; NULL: this is a load's first look at
 *  the config, and what is odd in it is logged. Errors: what the reader says; INVALID if its name
 *  is another than name. */
IFD_NODISCARD enum ifd_code ifd_version_read_config(const struct ifd_repo_options *options,
                                                    const struct ifd_source *source,
                                                    const char *name, struct ifd_arena *arena,
                                                    uint64_t *digest, struct ifd_model_desc *ret,
                                                    struct ifd_err *err);

/** Reads what a version consists of: config, model file; version->digest tells whether it is the
 *  same as another. On error, what was made is given back by ifd_version_stop. */
IFD_NODISCARD enum ifd_code ifd_version_read(const struct ifd_repo_options *options,
                                             struct ifd_version *version, struct ifd_err *err);
/** Makes what was read runnable. On error as above. */
IFD_NODISCARD enum ifd_code ifd_version_start(const struct ifd_repo_options *options,
                                              struct ifd_version *version, struct ifd_err *err);
void ifd_version_stop(const struct ifd_repo_options *options, struct ifd_version *version);
/** Gives back a version that nobody holds. */
void ifd_version_destroy(const struct ifd_repo_options *options, struct ifd_version *version);

/** Backend "identity": no file, no engine. */
bool ifd_manifest_is_identity(const struct ifd_model_desc *manifest);

#endif

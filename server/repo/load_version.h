/** Loads one version: config, file, engine. Everything here may take long. Thread: any but the
 *  loop. */
#ifndef INFERD_SERVER_REPO_LOAD_VERSION_H
#define INFERD_SERVER_REPO_LOAD_VERSION_H

#include "server/repo/repo.h"

/** Reads the config of a model, if there is one (config.pbtxt, else config.json, or that of the
 *  source), into arena. Continues digest over its bytes; NULL: this is the first read of a load,
 *  and warnings are logged. Errors: those of the reader; INVALID if it has another name. */
IFD_NODISCARD enum ifd_code ifd_version_read_config(const struct ifd_repo_options *options,
                                                    const struct ifd_source *source,
                                                    const char *name, struct ifd_arena *arena,
                                                    uint64_t *digest, struct ifd_model_desc *ret,
                                                    struct ifd_err *err);

/** Reads config and model file of a version and sets version->digest. After an error the caller
 *  calls ifd_version_stop. */
IFD_NODISCARD enum ifd_code ifd_version_read(const struct ifd_repo_options *options,
                                             struct ifd_version *version, struct ifd_err *err);
/** Makes the version run. After an error as above. */
IFD_NODISCARD enum ifd_code ifd_version_start(const struct ifd_repo_options *options,
                                              struct ifd_version *version, struct ifd_err *err);
void ifd_version_stop(const struct ifd_repo_options *options, struct ifd_version *version);
/** Destroys a version that no request holds. */
void ifd_version_destroy(const struct ifd_repo_options *options, struct ifd_version *version);

/** Backend "identity": no file, no engine. */
bool ifd_manifest_is_identity(const struct ifd_model_desc *manifest);

#endif

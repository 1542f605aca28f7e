/** Loading one version: config, file, engine, labels checked. Everything here may take long. Thread: any but the loop. */
#ifndef INFERD_SERVER_REPO_LOADER_H
#define INFERD_SERVER_REPO_LOADER_H

#include "server/repo/repo.h"

/** Reads the config of the model in dir, if there is one (config.pbtxt, else config.json), into arena.
 *  Errors: what the reader says; INVALID if its name is another than the folder's. */
IFD_NODISCARD enum ifd_code ifd_load_manifest(const struct ifd_repo_options *options,
                                              const char *dir, const char *name,
                                              struct ifd_arena *arena, struct ifd_manifest *ret,
                                              struct ifd_err *err);

/** Makes the version that its manifest, name, number and dir describe: reads its file and starts it.
 *  On error what was made is given back by ifd_unload_version. */
IFD_NODISCARD enum ifd_code ifd_load_version(const struct ifd_repo_options *options,
                                             struct ifd_version *version, struct ifd_err *err);
void ifd_unload_version(const struct ifd_repo_options *options, struct ifd_version *version);

/** Backend "identity": no file, no engine. */
bool ifd_manifest_is_identity(const struct ifd_manifest *manifest);

#endif

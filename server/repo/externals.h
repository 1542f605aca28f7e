/** The files that constants of a version's model lie in, below the folder of the model's file.
 *  Thread: the load's. */
#ifndef INFERD_SERVER_REPO_EXTERNALS_H
#define INFERD_SERVER_REPO_EXTERNALS_H

#include "server/repo/repo.h"

/** Reads those that version->file names, after version->desc.default_model_filename is known, and
 *  continues version->digest over them. Errors: INVALID (a path that leads out of the folder),
 *  NOT_FOUND, TOO_LARGE, IO, NOMEM; of the file as ifd_model_externals. */
IFD_NODISCARD enum ifd_code ifd_externals_read(const struct ifd_repo_options *options,
                                               struct ifd_version *version, struct ifd_err *err);
/** Their memory cannot be changed any more. */
IFD_NODISCARD enum ifd_code ifd_externals_seal(struct ifd_version *version, struct ifd_err *err);
void ifd_externals_release(struct ifd_version *version);
/** Bytes of all of them. */
uint64_t ifd_externals_bytes(const struct ifd_version *version);

#endif

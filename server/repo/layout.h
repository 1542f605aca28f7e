/** What lies in a repository folder: models, their versions, their files. Reads names only; nothing is opened but folders.
 *
 *      DIR/NAME/config.pbtxt | config.json      optional
 *      DIR/NAME/VERSION/model.tflite            VERSION: a number without leading zeros
 *
 *  Names that begin with '.' are passed over, and so are folders with neither a config nor a version. Thread: any. */
#ifndef INFERD_SERVER_REPO_LAYOUT_H
#define INFERD_SERVER_REPO_LAYOUT_H

#include "engine/base/arena.h"

/** Models of one repository at most; versions of one model at most. */
#define IFD_LAYOUT_NAMES_MAX 4096

struct ifd_layout_names {
    const char **name;
    uint32_t count;
};

/** Names of the folders in dir that may be models, sorted. Errors: NOT_FOUND, IO, TOO_LARGE, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_layout_models(const char *dir, struct ifd_arena *arena,
                                              struct ifd_layout_names *ret, struct ifd_err *err);

/** Version numbers of the model in dir, ascending. Errors: as above. */
IFD_NODISCARD enum ifd_code ifd_layout_versions(const char *dir, struct ifd_arena *arena,
                                                int64_t **ret_version, uint32_t *ret_count,
                                                struct ifd_err *err);

/** Path of the model file in a version's folder: file_name, or if that is "" model.tflite, or else the only *.tflite.
 *  Errors: NOT_FOUND (says what was looked for and what is there), UNSUPPORTED (only other formats are there). */
IFD_NODISCARD enum ifd_code ifd_layout_file(const char *dir, const char *file_name,
                                            struct ifd_arena *arena, const char **ret_path,
                                            struct ifd_err *err);

/** "dir/name" in the arena; NULL without memory. */
const char *ifd_layout_join(struct ifd_arena *arena, const char *dir, const char *name);

/** May name be part of a path inside a model's folder: relative, without "..", not empty? */
bool ifd_layout_is_inside(const char *name);

#endif

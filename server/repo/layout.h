/** Finds versions and files in a model's folder. Reads names only.
 *
 *      DIR/NAME/config.pbtxt | config.json      optional
 *      DIR/NAME/VERSION/model.tflite            or model.onnx
 *
 *  VERSION is a number without leading zeros.
 *  Ignores names that begin with '.' and folders with neither a config nor a version. Thread:
 *  any. */
#ifndef INFERD_SERVER_REPO_LAYOUT_H
#define INFERD_SERVER_REPO_LAYOUT_H

#include "server/repo/source.h"

/** Names of the folders below root that may be models, sorted. Errors: as ifd_folder_list. */
IFD_NODISCARD enum ifd_code ifd_layout_models(int root, struct ifd_arena *arena,
                                              struct ifd_folder_names *ret, struct ifd_err *err);

/** Calls fn for each model file that lies where no model is looked for: in the repository itself,
 *  or in a folder without versions. wanted is where it would be found. Both are memory of the
 *  arena. Errors: as above. */
IFD_NODISCARD enum ifd_code ifd_layout_strays(int root, struct ifd_arena *arena,
                                              void (*fn)(void *context, const char *path,
                                                         const char *wanted),
                                              void *context, struct ifd_err *err);

/** "…/mobilenet.tflite": "mobilenet", the model that the file makes by itself, and
 *  "1/model.tflite", its place in that model's folder. Errors: INVALID (another extension, a name
 *  that no model can have). */
IFD_NODISCARD enum ifd_code ifd_layout_name(const char *path, struct ifd_str *ret_name,
                                            const char **ret_file, struct ifd_err *err);

/** Version numbers of a model, ascending. Errors: as above. */
IFD_NODISCARD enum ifd_code ifd_layout_versions(const struct ifd_source *source,
                                                struct ifd_arena *arena, int64_t **ret_version,
                                                uint32_t *ret_count, struct ifd_err *err);

/** Path of the model file in version's folder: file_name, or if that is "" model.tflite or
 *  model.onnx, or else the only *.tflite or *.onnx. Errors: NOT_FOUND (says what was expected and
 *  what exists), UNSUPPORTED (only other formats are there). */
IFD_NODISCARD enum ifd_code ifd_layout_file(const struct ifd_source *source, const char *version,
                                            const char *file_name, struct ifd_arena *arena,
                                            const char **ret_path, struct ifd_err *err);

#endif

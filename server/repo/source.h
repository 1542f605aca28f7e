/** Source of a load: a folder in a repository, or files of the request. Thread: any. */
#ifndef INFERD_SERVER_REPO_SOURCE_H
#define INFERD_SERVER_REPO_SOURCE_H

#include "server/repo/folder.h"

struct ifd_source_file {
    struct ifd_str path; /* below the model's folder */
    struct ifd_bytes content;
};

/** Owns nothing. */
struct ifd_source {
    int root;         /* of the repository */
    const char *name; /* of the model: its folder below root */
    /* file_count > 0: the whole folder, root is not used */
    const struct ifd_source_file *file;
    uint32_t file_count;
    struct ifd_str config; /* data not NULL: JSON instead of the config file */
};

/** As ifd_folder_read; path is below the model's folder. */
IFD_NODISCARD enum ifd_code ifd_source_read(const struct ifd_source *source, const char *path,
                                            size_t limit_bytes, const struct ifd_alloc *alloc,
                                            struct ifd_bytes *ret, struct ifd_err *err);
/** Bytes of a file; 0 if it is missing. */
size_t ifd_source_size(const struct ifd_source *source, const char *path);
/** As ifd_folder_list; dir "" is the model's folder itself. */
IFD_NODISCARD enum ifd_code ifd_source_list(const struct ifd_source *source, const char *dir,
                                            struct ifd_arena *arena, struct ifd_folder_names *ret,
                                            struct ifd_err *err);
/** True if path is a folder; path is directly in the model's folder. */
bool ifd_source_is_folder(const struct ifd_source *source, const char *path);

#endif

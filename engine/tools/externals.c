/* Opens what a model's constants lie in beside its file. */
#include "engine/tools/externals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/beneath.h"
#include "engine/base/str.h"

struct opening {
    struct ifd_externals *externals;
    const char *path; /* of the model's file */
    size_t limit_bytes;
};

static enum ifd_code open_folder(const char *path, int *ret_fd, struct ifd_err *err)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    const size_t size = slash ? (size_t)(slash - path) + 1 : 0;
    if (size >= sizeof(folder)) {
        return ifd_fail(err, IFD_TOO_LARGE, "path \"%.60s…\" is too long", path);
    }
    memcpy(folder, path, size);
    folder[size] = '\0';
    *ret_fd = open(size > 0 ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd >= 0 ? IFD_OK
                        : ifd_fail(err, IFD_IO, "cannot open the folder of \"%s\": %s", path,
                                   strerror(errno));
}

static enum ifd_code open_one(const struct opening *o, int folder, const char *name,
                              struct ifd_err *err)
{
    struct ifd_externals *e = o->externals;
    if (!ifd_path_is_inside(ifd_str(name))) {
        return ifd_fail(err, IFD_INVALID,
                        "constants lie in \"%.100s\": not a path inside the model's folder", name);
    }
    const int fd = ifd_open_beneath(folder, name, O_RDONLY | O_NONBLOCK);
    if (fd < 0) {
        const enum ifd_code code = errno == ENOENT          ? IFD_NOT_FOUND
                                   : ifd_is_bad_link(errno) ? IFD_INVALID
                                                            : IFD_IO;
        return ifd_fail(err, code, "constants lie in \"%.100s\", beside the model's file: %s", name,
                        ifd_is_bad_link(errno) ? "it leads out of the folder" : strerror(errno));
    }
    const uint32_t i = e->count;
    enum ifd_code code = ifd_file_open_fd(fd, name, o->limit_bytes, e->alloc, &e->held[i], err);
    (void)close(fd);
    if (code == IFD_OK) {
        e->count++;
        e->name[i] = ifd_acquire_zeroed(e->alloc, strlen(name) + 1, 1);
        if (!e->name[i]) {
            return ifd_fail(err, IFD_NOMEM, "no memory for a name");
        }
        memcpy(e->name[i], name, strlen(name));
        e->file[i] = (struct ifd_external_file){.name = e->name[i], .content = e->held[i].content};
    }
    return code;
}

static enum ifd_code open_all(void *context, const struct ifd_external_names *names,
                              struct ifd_err *err)
{
    const struct opening *o = context;
    struct ifd_externals *e = o->externals;
    int folder = -1;
    e->file = ifd_acquire_zeroed(e->alloc, IFD_EXTERNAL_FILES_MAX, sizeof(*e->file));
    e->held = ifd_acquire_zeroed(e->alloc, IFD_EXTERNAL_FILES_MAX, sizeof(*e->held));
    e->name = ifd_acquire_zeroed(e->alloc, IFD_EXTERNAL_FILES_MAX, sizeof(*e->name));
    if (!e->file || !e->held || !e->name) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the names of %u files", names->count);
    }
    enum ifd_code code = open_folder(o->path, &folder, err);
    for (uint32_t i = 0; i < names->count && code == IFD_OK; i++) {
        code = open_one(o, folder, names->name[i], err);
    }
    if (folder >= 0) {
        (void)close(folder);
    }
    return code;
}

enum ifd_code ifd_externals_open(const char *path, struct ifd_bytes content, size_t limit_bytes,
                                 const struct ifd_alloc *alloc, struct ifd_externals *ret,
                                 struct ifd_err *err)
{
    struct ifd_externals externals = {.alloc = alloc};
    struct opening o = {.externals = &externals, .path = path, .limit_bytes = limit_bytes};
    const enum ifd_code code = ifd_model_externals(content, alloc, open_all, &o, err);
    if (code != IFD_OK) {
        ifd_externals_close(&externals);
        return code;
    }
    *ret = externals;
    return IFD_OK;
}

void ifd_externals_close(struct ifd_externals *externals)
{
    struct ifd_externals *e = externals;
    for (uint32_t i = 0; i < e->count; i++) {
        if (e->name[i]) {
            ifd_release(e->alloc, e->name[i], strlen(e->name[i]) + 1);
        }
        ifd_file_close(&e->held[i]);
    }
    if (e->alloc) {
        ifd_release(e->alloc, e->file, IFD_EXTERNAL_FILES_MAX * sizeof(*e->file));
        ifd_release(e->alloc, e->held, IFD_EXTERNAL_FILES_MAX * sizeof(*e->held));
        ifd_release(e->alloc, e->name, IFD_EXTERNAL_FILES_MAX * sizeof(*e->name));
    }
    *e = (struct ifd_externals){0};
}

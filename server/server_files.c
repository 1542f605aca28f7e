/* "inferd serve MODEL.tflite": a model file is served by itself, as version 1 of a model that has
 * its name. */
#include <string.h>
#include <sys/stat.h>

#include "engine/base/file.h"
#include "engine/base/str.h"
#include "engine/tools/externals.h"
#include "server/repo/layout.h"
#include "server/server_impl.h"

/* A file that is being loaded, with those beside it that its constants lie in. */
struct load {
    struct ifd_server *server;
    struct ifd_source_file *file; /* in the arena */
    struct ifd_bytes content;
    struct ifd_externals externals;
    struct ifd_arena arena;
};

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

enum ifd_code ifd_server_sort_repositories(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_config *config = server->options.config;
    const struct ifd_config_list *all = &config->repositories;
    server->folder = ifd_acquire_zeroed(server->options.alloc, all->count, sizeof(char *));
    if (!server->folder && all->count > 0) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the repositories");
    }
    for (uint32_t i = 0; i < all->count; i++) {
        if (!is_file(all->item[i])) {
            server->folder[server->folder_count++] = all->item[i];
        } else if (config->control_mode == IFD_CONTROL_POLL) {
            return ifd_fail(err, IFD_INVALID,
                            "%.150s is a file, and --model-control-mode=poll watches folders: put "
                            "it into one, as NAME/1/model.tflite",
                            all->item[i]);
        }
    }
    return IFD_OK;
}

static void drop(struct load *load)
{
    const struct ifd_alloc *alloc = load->server->options.alloc;
    ifd_externals_close(&load->externals);
    ifd_release_tensor(alloc, (void *)(uintptr_t)load->content.data, load->content.size);
    ifd_arena_finish(&load->arena);
    ifd_release(alloc, load, sizeof(*load));
}

static void loaded(void *arg, enum ifd_code code, const struct ifd_err *err)
{
    (void)code, (void)err; /* the repository logs it */
    drop(arg);
}

/* The files as those of the model's folder. */
static enum ifd_code list_files(struct load *load, const char *file, struct ifd_err *err)
{
    const uint32_t count = load->externals.count;
    load->file = ifd_arena_take_array(&load->arena, count + (size_t)1, sizeof(*load->file));
    if (!load->file) {
        return ifd_arena_fail(&load->arena, count * sizeof(*load->file), err);
    }
    load->file[0] = (struct ifd_source_file){.path = ifd_str(file), .content = load->content};
    for (uint32_t i = 0; i < count; i++) {
        const struct ifd_external_file *from = &load->externals.file[i];
        const char *path = ifd_folder_join(&load->arena, "1", from->name);
        if (!path) {
            return ifd_arena_fail(&load->arena, strlen(from->name), err);
        }
        load->file[1 + i] =
            (struct ifd_source_file){.path = ifd_str(path), .content = from->content};
    }
    return IFD_OK;
}

/* A model that names no files that are there fails to load, and harms no other. */
static enum ifd_code read_files(struct load *load, const char *path, const char *file,
                                struct ifd_err *err)
{
    const struct ifd_server_options *options = &load->server->options;
    const size_t limit = ifd_config_model_bytes(options->config);
    struct ifd_err reason = {0};
    enum ifd_code code = ifd_file_read(path, limit, options->alloc, &load->content, err);
    if (!code &&
        ifd_externals_open(path, load->content, limit, options->alloc, &load->externals, &reason)) {
        ifd_log_warn(options->log, "files beside a model file are not read", "file=%s reason=%s",
                     path, reason.text);
    }
    return code ? code : list_files(load, file, err);
}

static enum ifd_code load_file(struct ifd_server *server, const char *path, struct ifd_err *err)
{
    const struct ifd_alloc *alloc = server->options.alloc;
    struct ifd_str name;
    const char *file = NULL;
    enum ifd_code code = ifd_layout_name(path, &name, &file, err);
    if (code) {
        return code;
    }
    struct load *load = ifd_acquire_zeroed(alloc, 1, sizeof(*load));
    if (!load) {
        return ifd_fail(err, IFD_NOMEM, "no memory to load %.150s", path);
    }
    load->server = server;
    ifd_arena_init(&load->arena, alloc, 0);
    code = read_files(load, path, file, err);
    if (code) {
        drop(load);
        return code;
    }
    const struct ifd_source source = {
        .root = -1, .file = load->file, .file_count = 1 + load->externals.count};
    ifd_repo_load_at_start(server->repo, name, &source, loaded, load);
    return IFD_OK;
}

enum ifd_code ifd_server_load_files(struct ifd_server *server, struct ifd_err *err)
{
    const struct ifd_config_list *all = &server->options.config->repositories;
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; i < all->count && !code; i++) {
        if (is_file(all->item[i])) {
            code = load_file(server, all->item[i], err);
        }
    }
    return code;
}

/* "inferd serve MODEL.tflite": a model file is served by itself, as version 1 of a model that has
 * its name. */
#include <sys/stat.h>

#include "engine/base/file.h"
#include "engine/base/str.h"
#include "server/repo/layout.h"
#include "server/server_impl.h"

/* A file that is being loaded. */
struct load {
    struct ifd_server *server;
    struct ifd_source_file file;
    struct ifd_bytes content;
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

static void loaded(void *arg, enum ifd_code code, const struct ifd_err *err)
{
    struct load *load = arg;
    const struct ifd_alloc *alloc = load->server->options.alloc;
    (void)code, (void)err; /* the repository logs it */
    ifd_release_tensor(alloc, (void *)(uintptr_t)load->content.data, load->content.size);
    ifd_release(alloc, load, sizeof(*load));
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
    code = ifd_file_read(path, (size_t)server->options.config->max_model_bytes, alloc,
                         &load->content, err);
    if (code) {
        ifd_release(alloc, load, sizeof(*load));
        return code;
    }
    load->server = server;
    load->file = (struct ifd_source_file){.path = ifd_str(file), .content = load->content};
    const struct ifd_source source = {.root = -1, .file = &load->file, .file_count = 1};
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

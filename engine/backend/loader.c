/* Finds and opens shared objects with backends. The only user of dlfcn.h. */
#include "engine/backend/loader.h"

#include "engine/base/str.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER_OF_PROGRAM "../lib/inferd/backends"

struct loader {
    const struct ifd_plugin_search *search;
    struct ifd_plugins *plugins;
};

/* ---- one file ---- */

static bool is_name(const char *name)
{
    const size_t size = name ? strlen(name) : 0;
    return size > 0 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == size;
}

/* Has a backend before it this name? ret_where says which one. */
static bool is_taken(const struct loader *loader, const char *name, const char **ret_where)
{
    for (uint32_t i = 0; i < loader->search->builtin_count; i++) {
        if (strcmp(loader->search->builtin[i]->name, name) == 0) {
            *ret_where = "a built-in backend";
            return true;
        }
    }
    for (uint32_t i = 0; i < loader->plugins->count; i++) {
        const struct ifd_plugin *other = &loader->plugins->plugin[i];
        if (other->backend && strcmp(other->backend->name, name) == 0) {
            *ret_where = other->path;
            return true;
        }
    }
    return false;
}

static enum ifd_code check(const struct loader *loader, const struct ifd_backend *backend,
                           struct ifd_err *err)
{
    const char *where = NULL;
    if (!backend) {
        return ifd_fail(err, IFD_UNSUPPORTED, "it does not offer version %u of the ABI",
                        IFD_BACKEND_ABI);
    }
    if (backend->abi != IFD_BACKEND_ABI) {
        return ifd_fail(err, IFD_UNSUPPORTED, "ABI version %u, expected %u", backend->abi,
                        IFD_BACKEND_ABI);
    }
    if (!is_name(backend->name)) {
        return ifd_fail(err, IFD_UNSUPPORTED,
                        "its backend's name \"%s\" is not made of letters and digits",
                        backend->name ? backend->name : "");
    }
    if (is_taken(loader, backend->name, &where)) {
        return ifd_fail(err, IFD_EXISTS, "its backend's name %s is that of %s", backend->name,
                        where);
    }
    return IFD_OK;
}

static void open_plugin(const struct loader *loader, struct ifd_plugin *plugin)
{
    struct stat info;
    if (stat(plugin->path, &info) != 0 || !S_ISREG(info.st_mode)) {
        (void)ifd_fail(&plugin->reason, IFD_UNSUPPORTED, "it is not a regular file");
        return;
    }
    plugin->library = dlopen(plugin->path, RTLD_NOW | RTLD_LOCAL);
    if (!plugin->library) {
        (void)ifd_fail(&plugin->reason, IFD_UNSUPPORTED, "%s", dlerror());
        return;
    }
    /* POSIX lets a function's address travel through void *; C needs the copy. */
    void *symbol = dlsym(plugin->library, "ifd_backend_query");
    ifd_backend_query_fn query = NULL;
    memcpy(&query, &symbol, sizeof(query));
    if (!query) {
        (void)ifd_fail(&plugin->reason, IFD_UNSUPPORTED,
                       "it does not export ifd_backend_query: it is not a backend");
        return;
    }
    const struct ifd_backend *backend = query(IFD_BACKEND_ABI);
    if (check(loader, backend, &plugin->reason) == IFD_OK) {
        plugin->backend = backend;
    }
}

/* ---- a folder ---- */

static bool is_shared_object(const char *file)
{
    const size_t size = strlen(file);
    return size > 3 && strcmp(file + size - 3, ".so") == 0;
}

static enum ifd_code add_file(struct loader *loader, const char *folder, const char *file,
                              struct ifd_err *err)
{
    struct ifd_plugins *plugins = loader->plugins;
    char path[PATH_MAX];
    if (!ifd_str_format(path, sizeof(path), "%s/%s", folder, file)) {
        return ifd_fail(err, IFD_INVALID, "backend path \"%s\": too long", folder);
    }
    const char *copy = ifd_arena_text(&plugins->arena, path, strlen(path));
    if (!copy) {
        return ifd_arena_fail(&plugins->arena, strlen(path), err);
    }
    struct ifd_plugin plugin = {.path = copy, .file = copy + strlen(folder) + 1};
    open_plugin(loader, &plugin);
    plugins->plugin[plugins->count++] = plugin;
    return IFD_OK;
}

/* Names of the shared objects in an open folder, sorted. */
static enum ifd_code list(struct loader *loader, DIR *folder, const char *ret_file[],
                          uint32_t *ret_count, struct ifd_err *err)
{
    const uint32_t room = IFD_PLUGIN_FILES_MAX - loader->plugins->count;
    uint32_t count = 0;
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (!is_shared_object(entry->d_name)) {
            continue;
        }
        const size_t size = strlen(entry->d_name);
        const char *file = ifd_arena_text(&loader->plugins->arena, entry->d_name, size);
        if (!file) {
            return ifd_arena_fail(&loader->plugins->arena, size, err);
        }
        if (count == room) {
            return ifd_fail(err, IFD_INVALID, "more than %d plugins", IFD_PLUGIN_FILES_MAX);
        }
        uint32_t at = count++;
        for (; at > 0 && strcmp(ret_file[at - 1], file) > 0; at--) {
            ret_file[at] = ret_file[at - 1];
        }
        ret_file[at] = file;
    }
    *ret_count = count;
    return IFD_OK;
}

static DIR *open_folder(const char *folder, struct ifd_err *err)
{
    struct stat info;
    DIR *stream = opendir(folder);
    if (!stream || fstat(dirfd(stream), &info) != 0) {
        (void)ifd_fail(err, IFD_INVALID, "backend path \"%s\": %s", folder, strerror(errno));
    } else if (info.st_mode & S_IWOTH) {
        (void)ifd_fail(err, IFD_INVALID, "backend path \"%s\": every user may write in it", folder);
    } else {
        return stream;
    }
    if (stream) {
        (void)closedir(stream);
    }
    return NULL;
}

static enum ifd_code add_folder(struct loader *loader, const char *folder, struct ifd_err *err)
{
    const char *file[IFD_PLUGIN_FILES_MAX];
    uint32_t count = 0;
    DIR *stream = open_folder(folder, err);
    if (!stream) {
        return IFD_INVALID;
    }
    enum ifd_code code = list(loader, stream, file, &count, err);
    (void)closedir(stream);
    for (uint32_t i = 0; code == IFD_OK && i < count; i++) {
        code = add_file(loader, folder, file[i], err);
    }
    return code;
}

/* "/usr/bin/inferd" gives "/usr/bin/../lib/inferd/backends"; false if the program is unknown. */
static bool folder_of_program(char *path, size_t size)
{
    char program[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length <= 0) {
        return false;
    }
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (!slash) {
        return false;
    }
    *slash = '\0';
    return ifd_str_format(path, size, "%s/" FOLDER_OF_PROGRAM, program);
}

/* ---- public ---- */

enum ifd_code ifd_plugins_load(const struct ifd_plugin_search *search,
                               const struct ifd_alloc *alloc, struct ifd_plugins *ret,
                               struct ifd_err *err)
{
    char folder[PATH_MAX];
    *ret = (struct ifd_plugins){0};
    if (!search->beside_program && search->folder_count == 0) {
        return IFD_OK;
    }
    struct loader loader = {.search = search, .plugins = ret};
    ifd_arena_init(&ret->arena, alloc, 0);
    ret->plugin = ifd_arena_take_array(&ret->arena, IFD_PLUGIN_FILES_MAX, sizeof(*ret->plugin));
    if (!ret->plugin) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %d plugins", IFD_PLUGIN_FILES_MAX);
    }
    enum ifd_code code = IFD_OK;
    if (search->beside_program && folder_of_program(folder, sizeof(folder)) &&
        access(folder, F_OK) == 0) {
        code = add_folder(&loader, folder, err);
    }
    for (uint32_t i = 0; code == IFD_OK && i < search->folder_count; i++) {
        code = add_folder(&loader, search->folders[i], err);
    }
    if (code != IFD_OK) {
        ifd_plugins_unload(ret);
    }
    return code;
}

void ifd_plugins_unload(struct ifd_plugins *plugins)
{
    for (uint32_t i = plugins->count; i-- > 0;) {
        if (plugins->plugin[i].library) {
            (void)dlclose(plugins->plugin[i].library);
        }
    }
    ifd_arena_finish(&plugins->arena);
    *plugins = (struct ifd_plugins){0};
}

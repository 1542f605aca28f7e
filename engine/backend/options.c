/* Cuts "NAME:KEY=VALUE" and groups the options by backend. */
#include "engine/backend/options.h"

#include <string.h>

/* Adds one option behind those of the same backend. */
static void insert(struct ifd_backend_options *options, const char *backend,
                   struct ifd_backend_option option)
{
    uint32_t at = options->count;
    while (at > 0 && strcmp(options->backend[at - 1], backend) > 0) {
        options->backend[at] = options->backend[at - 1];
        options->option[at] = options->option[at - 1];
        at--;
    }
    options->backend[at] = backend;
    options->option[at] = option;
    options->count++;
}

static enum ifd_code add(struct ifd_backend_options *options, const char *text, struct ifd_err *err)
{
    char *copy = ifd_arena_text(&options->arena, text, strlen(text));
    if (!copy) {
        return ifd_arena_fail(&options->arena, strlen(text), err);
    }
    char *key = strchr(copy, ':');
    char *value = key ? strchr(key, '=') : NULL;
    if (!value || key == copy || value == key + 1) {
        return ifd_fail(err, IFD_INVALID, "backend option \"%s\": expected NAME:KEY=VALUE", text);
    }
    *key++ = *value++ = '\0';
    insert(options, copy, (struct ifd_backend_option){.key = key, .value = value});
    return IFD_OK;
}

enum ifd_code ifd_backend_options_init(struct ifd_backend_options *options,
                                       const char *const *texts, uint32_t count,
                                       const struct ifd_alloc *alloc, struct ifd_err *err)
{
    *options = (struct ifd_backend_options){0};
    ifd_arena_init(&options->arena, alloc, 0);
    options->backend = ifd_arena_take_array(&options->arena, count, sizeof(*options->backend));
    options->option = ifd_arena_take_array(&options->arena, count, sizeof(*options->option));
    enum ifd_code code = IFD_OK;
    if (!options->backend || !options->option) {
        code = ifd_arena_fail(&options->arena, count * sizeof(*options->option), err);
    }
    for (uint32_t i = 0; code == IFD_OK && i < count; i++) {
        code = add(options, texts[i], err);
    }
    if (code != IFD_OK) {
        ifd_backend_options_finish(options);
    }
    return code;
}

void ifd_backend_options_finish(struct ifd_backend_options *options)
{
    ifd_arena_finish(&options->arena);
    *options = (struct ifd_backend_options){0};
}

uint32_t ifd_backend_options_find(const struct ifd_backend_options *options, const char *backend,
                                  uint32_t *ret_count)
{
    uint32_t first = 0, count = 0;
    while (first < options->count && strcmp(options->backend[first], backend) != 0) {
        first++;
    }
    while (first + count < options->count &&
           strcmp(options->backend[first + count], backend) == 0) {
        count++;
    }
    *ret_count = count;
    return first;
}

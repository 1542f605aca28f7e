/* Reads labels. */
#include "server/repo/labels.h"

#include <string.h>

#include "engine/base/str.h"

static uint32_t count_lines(struct ifd_str text)
{
    uint32_t lines = 1;
    for (size_t i = 0; i < text.size && lines <= IFD_LABELS_MAX; i++) {
        lines += text.data[i] == '\n';
    }
    return lines;
}

static enum ifd_code split(struct ifd_str text, const char *path, struct ifd_arena *arena,
                           const char *const **ret_label, uint32_t *ret_count, struct ifd_err *err)
{
    while (text.size > 0 && strchr(" \t\r\n", text.data[text.size - 1])) {
        text.size--;
    }
    uint32_t lines = count_lines(text);
    if (lines > IFD_LABELS_MAX) {
        return ifd_fail(err, IFD_TOO_LARGE, "\"%s\" has more than %d labels", path, IFD_LABELS_MAX);
    }
    const char **label = ifd_arena_take_array(arena, lines, sizeof(*label));
    if (!label) {
        return ifd_arena_fail(arena, lines * sizeof(*label), err);
    }
    uint32_t count = 0;
    for (struct ifd_str rest = text; rest.data && text.size > 0; count++) {
        struct ifd_str line = ifd_str_trim(ifd_str_part(&rest, '\n'));
        if (line.size > 0 && line.data[line.size - 1] == '\r') {
            line.size--;
        }
        label[count] = ifd_arena_text(arena, line.data, line.size);
        if (!label[count]) {
            return ifd_arena_fail(arena, line.size, err);
        }
    }
    *ret_label = label;
    *ret_count = count;
    return IFD_OK;
}

enum ifd_code ifd_labels_read(const struct ifd_source *source, const char *path,
                              struct ifd_arena *arena, const char *const **ret_label,
                              uint32_t *ret_count, struct ifd_err *err)
{
    struct ifd_bytes file = {0};
    enum ifd_code code =
        ifd_source_read(source, path, IFD_LABELS_BYTES_MAX, arena->alloc, &file, err);
    if (code) {
        return code;
    }
    const struct ifd_str text = {.data = (const char *)file.data, .size = file.size};
    code = split(text, path, arena, ret_label, ret_count, err);
    ifd_release_tensor(arena->alloc, (void *)(uintptr_t)file.data, file.size);
    return code;
}

/* The entries of external_data, and the files that they name. */
#include "engine/parse/onnx/beside.h"

#include <string.h>

#include "engine/base/str.h"
#include "engine/parse/onnx/onnx_build.h"
#include "engine/parse/onnx/wire.h"

#define T_EXTERNAL 13 /* of TensorProto */

/* StringStringEntryProto: key (1), value (2) */
static void read_pair(struct ifd_bytes message, struct ifd_str *ret_key, struct ifd_str *ret_value)
{
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    while (ifd_wire_next(&wire, &field)) {
        const struct ifd_str text = {(const char *)field.bytes.data, field.bytes.size};
        if (field.type == IFD_WIRE_BYTES && field.number == 1) {
            *ret_key = text;
        } else if (field.type == IFD_WIRE_BYTES && field.number == 2) {
            *ret_value = text;
        }
    }
}

struct entry {
    struct ifd_str location, offset, length; /* empty: left out */
};

static struct entry read_entry(struct ifd_bytes message)
{
    struct entry entry = {.location = {0}};
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    while (ifd_wire_next(&wire, &field)) {
        if (field.number == T_EXTERNAL && field.type == IFD_WIRE_BYTES) {
            struct ifd_str key = {0}, value = {0};
            read_pair(field.bytes, &key, &value);
            entry.location = ifd_str_equal(key, "location") ? value : entry.location;
            entry.offset = ifd_str_equal(key, "offset") ? value : entry.offset;
            entry.length = ifd_str_equal(key, "length") ? value : entry.length;
        }
    }
    struct ifd_str *location = &entry.location;
    while (location->size > 2 && location->data[0] == '.' && location->data[1] == '/') {
        location->data += 2;
        location->size -= 2;
    }
    return entry;
}

static const struct ifd_external_file *given(const struct ifd_onnx_beside *beside,
                                             struct ifd_str name)
{
    for (uint32_t i = 0; beside && i < beside->count; i++) {
        if (ifd_str_equal(name, beside->file[i].name)) {
            return &beside->file[i];
        }
    }
    return NULL;
}

/* Makes room for one more. */
static enum ifd_code grow(struct ifd_onnx_places *places, struct ifd_arena *arena,
                          struct ifd_err *err)
{
    if (places->count == IFD_EXTERNAL_FILES_MAX) {
        return ifd_fail(err, IFD_TOO_LARGE, "constants in more than %d files",
                        IFD_EXTERNAL_FILES_MAX);
    }
    if (places->count < places->capacity) {
        return IFD_OK;
    }
    const uint32_t capacity = places->capacity * 2 + 4;
    struct ifd_onnx_place *grown = ifd_arena_take_array(arena, capacity, sizeof(*grown));
    if (!grown) {
        return ifd_arena_fail(arena, capacity * sizeof(*grown), err);
    }
    if (places->count > 0) {
        memcpy(grown, places->place, places->count * sizeof(*grown));
    }
    places->place = grown;
    places->capacity = capacity;
    return IFD_OK;
}

/* The file of this name, noted if it is new: a model names it as often as it has constants. */
static enum ifd_code find_place(struct ifd_onnx_places *places, struct ifd_arena *arena,
                                struct ifd_str name, const struct ifd_external_file **ret,
                                struct ifd_err *err)
{
    uint32_t low = 0, high = places->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = ifd_onnx_order(places->place[middle].name, name);
        if (order == 0) {
            *ret = places->place[middle].file;
            return IFD_OK;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    const enum ifd_code code = grow(places, arena, err);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_onnx_place *at = &places->place[low];
    for (uint32_t i = places->count; i > low; i--) {
        places->place[i] = places->place[i - 1];
    }
    *at = (struct ifd_onnx_place){.name = name, .file = given(places->beside, name)};
    places->count++;
    *ret = at->file;
    return IFD_OK;
}

enum ifd_code ifd_onnx_find_beside(struct ifd_onnx_places *places, struct ifd_arena *arena,
                                   struct ifd_bytes message, struct ifd_onnx_tensor *tensor,
                                   struct ifd_err *err)
{
    const struct entry entry = read_entry(message);
    const struct ifd_external_file *file = NULL;
    uint64_t from = 0, size = 0;
    if ((entry.offset.size > 0 && !ifd_str_u64(entry.offset, &from)) ||
        (entry.length.size > 0 && !ifd_str_u64(entry.length, &size))) {
        return ifd_fail(err, IFD_CORRUPT,
                        "offset or length of a constant in another file is no number");
    }
    if (entry.location.size == 0) {
        tensor->location = (struct ifd_str){.data = "?", .size = 1};
        return IFD_OK;
    }
    if (memchr(entry.location.data, '\0', entry.location.size)) {
        return ifd_fail(err, IFD_CORRUPT, "a constant lies in a file whose name has a NUL");
    }
    const enum ifd_code code = find_place(places, arena, entry.location, &file, err);
    if (code != IFD_OK || !file) {
        tensor->location = entry.location;
        return code;
    }
    const struct ifd_bytes content = file->content;
    if (from > content.size || size > content.size - from) {
        return ifd_fail(
            err, IFD_CORRUPT, "%llu bytes from %llu on for a constant, but \"%s\" has %zu",
            (unsigned long long)size, (unsigned long long)from, file->name, content.size);
    }
    size = entry.length.size > 0 ? size : content.size - from;
    tensor->raw = (struct ifd_bytes){.data = content.data ? content.data + from : content.data,
                                     .size = (size_t)size};
    tensor->room = content.size - (size_t)from - (size_t)size;
    tensor->has_raw = true;
    return IFD_OK;
}

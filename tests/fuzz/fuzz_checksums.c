/* Any text as a SHA256SUMS: read, or refused with a reason, both times alike. The names that are
 * read are sorted, unique and inside the folder. */
#include <string.h>

#include "engine/base/str.h"
#include "server/repo/checksums.h"
#include "tests/fuzz/fuzz.h"

#define ARENA_BYTES ((size_t)16 << 20)

static enum ifd_code read_once(struct ifd_str text, uint32_t *ret_count)
{
    struct ifd_arena arena;
    struct ifd_checksums sums = {0};
    struct ifd_err err = {0};
    ifd_arena_init(&arena, ifd_alloc_system(), ARENA_BYTES);
    enum ifd_code code = ifd_checksums_parse(text, "1", &arena, &sums, &err);
    MUST(!code || err.text[0] != '\0');
    for (uint32_t i = 0; i < sums.count; i++) {
        const struct ifd_checksum *row = &sums.file[i];
        MUST(row->has_sum && row->line > 0 && ifd_path_is_inside(ifd_str(row->path)));
        MUST(i == 0 || strcmp(sums.file[i - 1].path, row->path) < 0);
        MUST(strcmp(row->path, IFD_CHECKSUMS_NAME) != 0);
    }
    *ret_count = sums.count;
    ifd_arena_finish(&arena);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct ifd_str text = {.data = (const char *)data, .size = size};
    uint32_t count = 0, again = 0;
    enum ifd_code code = read_once(text, &count);
    MUST(read_once(text, &again) == code && again == count);
    return 0;
}

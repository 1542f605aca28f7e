/* The part of ZIP that models use: one disk, no encryption, members stored or deflated, no
 * ZIP64. */
#include "engine/parse/tflite/archive.h"

#include <string.h>
#include <zlib.h>

#define END_BYTES         22u /* end of central directory, without its comment */
#define END_COMMENT_BYTES 65535u
#define END_SIGNATURE     0x06054b50u
#define ENTRY_BYTES       46u
#define ENTRY_SIGNATURE   0x02014b50u
#define LOCAL_BYTES       30u
#define LOCAL_SIGNATURE   0x04034b50u
#define METHOD_STORED     0u
#define METHOD_DEFLATED   8u
#define FLAG_ENCRYPTED    1u

static uint32_t u16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t u32(const uint8_t *p)
{
    return u16(p) | u16(p + 2) << 16;
}

struct directory {
    size_t base;   /* start of the archive's offsets */
    size_t offset; /* of the first entry, in the file */
    size_t end;
    uint32_t count;
};

/* Finds the end record, which ends the file; a comment may follow it. */
static bool find_end(struct ifd_bytes file, size_t *ret)
{
    if (file.size < END_BYTES) {
        return false;
    }
    size_t last = file.size - END_BYTES;
    size_t first = last > END_COMMENT_BYTES ? last - END_COMMENT_BYTES : 0;
    for (size_t at = last + 1; at-- > first;) {
        const uint8_t *p = file.data + at;
        if (u32(p) == END_SIGNATURE && at + END_BYTES + u16(p + 20) == file.size) {
            *ret = at;
            return true;
        }
    }
    return false;
}

static enum ifd_code open_directory(struct ifd_bytes file, size_t end, struct directory *ret,
                                    struct ifd_err *err)
{
    const uint8_t *p = file.data + end;
    size_t size = u32(p + 12);
    size_t offset = u32(p + 16);
    if (size > end || offset > end - size) {
        return ifd_fail(err, IFD_CORRUPT, "archive: a directory of %zu bytes at %zu lies outside",
                        size, offset);
    }
    /* Some writers count offsets from the file's start, others from the archive's. But the
     * directory always ends where the end record begins. */
    *ret = (struct directory){
        .base = end - size - offset, .offset = end - size, .end = end, .count = u16(p + 10)};
    return IFD_OK;
}

struct member {
    uint32_t method, flags, crc;
    size_t packed_bytes, bytes, local;
};

/* Finds the entry by name; false if there is none, or the directory is damaged before it. */
static bool find_member(struct ifd_bytes file, const struct directory *directory, const char *name,
                        struct member *ret)
{
    size_t name_bytes = strlen(name);
    size_t at = directory->offset;
    for (uint32_t i = 0; i < directory->count && directory->end - at >= ENTRY_BYTES; i++) {
        const uint8_t *p = file.data + at;
        size_t own_name_bytes = u16(p + 28);
        size_t bytes = ENTRY_BYTES + own_name_bytes + u16(p + 30) + u16(p + 32);
        if (u32(p) != ENTRY_SIGNATURE || bytes > directory->end - at) {
            return false;
        }
        if (own_name_bytes == name_bytes && memcmp(p + ENTRY_BYTES, name, name_bytes) == 0) {
            *ret = (struct member){.method = u16(p + 10),
                                   .flags = u16(p + 8),
                                   .crc = u32(p + 16),
                                   .packed_bytes = u32(p + 20),
                                   .bytes = u32(p + 24),
                                   .local = u32(p + 42)};
            return true;
        }
        at += bytes;
    }
    return false;
}

/* Finds a member's data behind its local header. The sizes in that header are ignored. */
static enum ifd_code locate(struct ifd_bytes file, const struct directory *directory,
                            const struct member *member, struct ifd_bytes *ret, struct ifd_err *err)
{
    size_t room = directory->offset - directory->base;
    if (member->local > room || room - member->local < LOCAL_BYTES) {
        return ifd_fail(err, IFD_CORRUPT, "archive: a header at %zu lies outside", member->local);
    }
    const uint8_t *p = file.data + directory->base + member->local;
    room -= member->local + LOCAL_BYTES;
    size_t skip = (size_t)u16(p + 26) + u16(p + 28);
    if (u32(p) != LOCAL_SIGNATURE || skip > room || member->packed_bytes > room - skip) {
        return ifd_fail(err, IFD_CORRUPT, "archive: %zu packed bytes at %zu lie outside",
                        member->packed_bytes, member->local);
    }
    *ret = (struct ifd_bytes){.data = p + LOCAL_BYTES + skip, .size = member->packed_bytes};
    return IFD_OK;
}

static voidpf zlib_take(voidpf scratch, uInt count, uInt size)
{
    return ifd_arena_take_array(scratch, count, size);
}

static void zlib_release(voidpf scratch, voidpf memory)
{
    (void)scratch; /* the arena frees it */
    (void)memory;
}

static enum ifd_code inflate_all(struct ifd_bytes packed, uint8_t *content, size_t bytes,
                                 struct ifd_arena *scratch, struct ifd_err *err)
{
    z_stream stream = {.zalloc = zlib_take,
                       .zfree = zlib_release,
                       .opaque = scratch,
                       .next_in = (z_const Bytef *)packed.data,
                       .avail_in = (uInt)packed.size,
                       .next_out = content,
                       .avail_out = (uInt)bytes};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
        return ifd_fail(err, IFD_NOMEM, "archive: no memory to inflate");
    }
    int result = inflate(&stream, Z_FINISH);
    size_t left = stream.avail_out;
    inflateEnd(&stream);
    if (result == Z_MEM_ERROR) {
        return ifd_fail(err, IFD_NOMEM, "archive: no memory to inflate");
    }
    if (result != Z_STREAM_END || left != 0) {
        return ifd_fail(err, IFD_CORRUPT, "archive: deflated data are damaged");
    }
    return IFD_OK;
}

static enum ifd_code unpack(const struct member *member, struct ifd_bytes packed, uint8_t *content,
                            const struct ifd_alloc *alloc, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    if (member->method == METHOD_DEFLATED) {
        struct ifd_arena scratch;
        ifd_arena_init(&scratch, alloc, 0);
        code = inflate_all(packed, content, member->bytes, &scratch, err);
        ifd_arena_finish(&scratch);
    } else if (packed.size != member->bytes) {
        code = ifd_fail(err, IFD_CORRUPT, "archive: %zu stored bytes, expected %zu", packed.size,
                        member->bytes);
    } else {
        memcpy(content, packed.data, packed.size);
    }
    if (code == IFD_OK && crc32(0, content, (uInt)member->bytes) != member->crc) {
        code = ifd_fail(err, IFD_CORRUPT, "archive: wrong checksum");
    }
    return code;
}

static enum ifd_code read_member(struct ifd_bytes file, const struct directory *directory,
                                 const struct member *member, struct ifd_arena *arena,
                                 struct ifd_bytes *ret, struct ifd_err *err)
{
    if ((member->flags & FLAG_ENCRYPTED) ||
        (member->method != METHOD_STORED && member->method != METHOD_DEFLATED)) {
        return ifd_fail(err, IFD_UNSUPPORTED, "archive: method %u, flags %u", member->method,
                        member->flags);
    }
    struct ifd_bytes packed = {0};
    enum ifd_code code = locate(file, directory, member, &packed, err);
    if (code != IFD_OK) {
        return code;
    }
    uint8_t *content = ifd_arena_take(arena, member->bytes + 1);
    if (!content) {
        return ifd_arena_fail(arena, member->bytes + 1, err);
    }
    code = unpack(member, packed, content, arena->alloc, err);
    if (code == IFD_OK) {
        *ret = (struct ifd_bytes){.data = content, .size = member->bytes};
    }
    return code;
}

enum ifd_code ifd_archive_read(struct ifd_bytes file, const char *name, size_t limit_bytes,
                               struct ifd_arena *arena, struct ifd_bytes *ret, struct ifd_err *err)
{
    size_t end = 0;
    struct directory directory = {0};
    struct member member;
    if (!find_end(file, &end)) {
        *ret = (struct ifd_bytes){0};
        return IFD_OK;
    }
    enum ifd_code code = open_directory(file, end, &directory, err);
    if (code != IFD_OK) {
        return code;
    }
    if (!find_member(file, &directory, name, &member)) {
        *ret = (struct ifd_bytes){0};
        return IFD_OK;
    }
    if (member.bytes > limit_bytes) {
        code = ifd_fail(err, IFD_TOO_LARGE, "archive: %zu bytes, limit %zu", member.bytes,
                        limit_bytes);
    } else {
        code = read_member(file, &directory, &member, arena, ret, err);
    }
    if (code != IFD_OK) {
        ifd_err_prefix(err, "\"%.60s\"", name);
    }
    return code;
}

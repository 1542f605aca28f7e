/* A file: head, table of parts, parts, checksum. Numbers are in this machine's byte order. */
#include "engine/cache/cache.h"

#include "engine/base/build_id.h"
#include "engine/base/file.h"
#include "engine/cache/folder.h"
#include "engine/cache/room.h"
#include "inferd/types.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME_BYTES 32
#define PARTS_MAX  ((size_t)1 << 20)
#define TRAILER    sizeof(uint64_t)

static const char magic[8] = "IFDPACK";

struct head {
    char magic[8];
    uint8_t build[24]; /* that packed it */
    uint64_t name;     /* of the file, so that no file can replace another */
    uint64_t size;     /* of the file */
    uint64_t part_count;
};

struct part {
    uint64_t offset, size;
};

struct ifd_cache {
    const struct ifd_alloc *alloc;
    uint64_t limit_bytes;
    int folder;
    uint8_t key[IFD_MAC_KEY_BYTES];
    uint8_t build[sizeof(((struct head *)0)->build)];
};

enum ifd_code ifd_cache_open(const char *folder, uint64_t limit_bytes,
                             const struct ifd_alloc *alloc, struct ifd_cache **ret_cache,
                             struct ifd_err *err)
{
    struct ifd_cache *cache = ifd_acquire_zeroed(alloc, 1, sizeof(*cache));
    if (!cache) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a cache");
    }
    cache->alloc = alloc;
    cache->limit_bytes = limit_bytes;
    cache->folder = -1;
    enum ifd_code code = IFD_OK;
    if (ifd_build_id(cache->build) == 0) {
        code = ifd_fail(err, IFD_UNAVAILABLE, "the program has no build id");
    }
    if (code == IFD_OK) {
        code = ifd_cache_folder_open(folder, &cache->folder, err);
    }
    if (code == IFD_OK) {
        code = ifd_cache_folder_key(cache->folder, cache->key, err);
    }
    if (code == IFD_OK) {
        code = ifd_cache_make_room(cache->folder, limit_bytes, NULL, err);
        code = code == IFD_TOO_LARGE ? IFD_OK : code; /* can be read, not written */
    }
    if (code != IFD_OK) {
        ifd_cache_close(cache);
        return code;
    }
    *ret_cache = cache;
    return IFD_OK;
}

void ifd_cache_close(struct ifd_cache *cache)
{
    if (!cache) {
        return;
    }
    if (cache->folder >= 0) {
        (void)close(cache->folder);
    }
    ifd_release(cache->alloc, cache, sizeof(*cache));
}

/* ---- files ---- */

uint64_t ifd_cache_name(const struct ifd_cache *cache, const struct ifd_bytes *part, size_t count)
{
    struct ifd_mac mac;
    ifd_mac_start(&mac, cache->key);
    for (size_t i = 0; i < count; i++) {
        ifd_mac_add(&mac, part[i].data, part[i].size);
    }
    return ifd_mac_sum(&mac);
}

static void file_name(uint64_t name, char text[NAME_BYTES])
{
    (void)snprintf(text, NAME_BYTES, "%016" PRIx64, name);
}

static void part_at(const struct ifd_cache_entry *entry, size_t index, struct part *ret)
{
    memcpy(ret, entry->map + sizeof(struct head) + index * sizeof(*ret), sizeof(*ret));
}

/* The offset of the first part behind the table, or of the part behind another: aligned, after
 * padding. False if it overflows. */
static bool next_offset(uint64_t offset, uint64_t size, uint64_t *ret)
{
    uint64_t end = 0;
    if (__builtin_add_overflow(offset, size, &end) ||
        __builtin_add_overflow(end, IFD_TENSOR_PAD + IFD_TENSOR_ALIGN - 1, &end)) {
        return false;
    }
    *ret = end / IFD_TENSOR_ALIGN * IFD_TENSOR_ALIGN;
    return true;
}

static enum ifd_code check_head(const struct ifd_cache *cache, uint64_t name,
                                const struct ifd_cache_entry *entry, const struct head *head,
                                struct ifd_err *err)
{
    if (memcmp(head->magic, magic, sizeof(magic)) != 0) {
        return ifd_fail(err, IFD_CORRUPT, "not a file of packed weights");
    }
    if (memcmp(head->build, cache->build, sizeof(head->build)) != 0) {
        return ifd_fail(err, IFD_UNAVAILABLE, "written by another build");
    }
    if (head->name != name) {
        return ifd_fail(err, IFD_CORRUPT, "written for another model");
    }
    if (head->size != entry->size) {
        return ifd_fail(err, IFD_CORRUPT, "%zu bytes, expected %" PRIu64, entry->size, head->size);
    }
    if (head->part_count > PARTS_MAX ||
        head->part_count * sizeof(struct part) > entry->size - TRAILER - sizeof(*head)) {
        return ifd_fail(err, IFD_CORRUPT, "too short for %" PRIu64 " parts", head->part_count);
    }
    return IFD_OK;
}

/* A larger part is read in chunks: a start should not need memory for all packed weights at
 * once. */
#define CHUNK_BYTES ((size_t)16 << 20)

/* releases: the pages go back to the system; the mapping reads them again when they are used. */
static void add_chunk(struct ifd_mac *mac, const uint8_t *data, size_t size, bool releases)
{
    ifd_mac_add(mac, data, size);
    if (releases) {
        (void)ifd_discard_pages((void *)(uintptr_t)data, size);
    }
}

static void add_part(struct ifd_mac *mac, const uint8_t *data, size_t size, bool releases)
{
    for (; size > CHUNK_BYTES; data += CHUNK_BYTES, size -= CHUNK_BYTES) {
        add_chunk(mac, data, CHUNK_BYTES, releases);
    }
    add_chunk(mac, data, size, releases);
}

/* Parts follow each other, so the sum covers everything but the padding. */
static enum ifd_code check_parts(const struct ifd_cache *cache, const struct ifd_cache_entry *entry,
                                 struct ifd_err *err)
{
    struct ifd_mac mac;
    uint64_t sum = 0, offset = 0;
    const size_t table = entry->part_count * sizeof(struct part);
    ifd_mac_start(&mac, cache->key);
    ifd_mac_add(&mac, entry->map, sizeof(struct head) + table);
    bool fits = next_offset(sizeof(struct head), table, &offset);
    for (size_t i = 0; i < entry->part_count && fits; i++) {
        struct part part;
        part_at(entry, i, &part);
        const uint64_t begin = offset;
        fits = part.offset == begin && next_offset(begin, part.size, &offset) &&
               offset <= entry->size - TRAILER;
        if (fits) {
            add_part(&mac, entry->map + begin, (size_t)part.size, entry->size > CHUNK_BYTES);
        }
    }
    if (!fits || offset != entry->size - TRAILER) {
        return ifd_fail(err, IFD_CORRUPT, "wrong table of parts");
    }
    memcpy(&sum, entry->map + offset, sizeof(sum));
    if (sum != ifd_mac_sum(&mac)) {
        return ifd_fail(err, IFD_CORRUPT, "wrong checksum");
    }
    return IFD_OK;
}

static enum ifd_code check_content(const struct ifd_cache *cache, uint64_t name,
                                   struct ifd_cache_entry *entry, struct ifd_err *err)
{
    struct head head;
    memcpy(&head, entry->map, sizeof(head));
    const enum ifd_code code = check_head(cache, name, entry, &head, err);
    if (code != IFD_OK) {
        return code;
    }
    entry->part_count = (size_t)head.part_count;
    return check_parts(cache, entry, err);
}

enum ifd_code ifd_cache_find(const struct ifd_cache *cache, uint64_t name,
                             struct ifd_cache_entry *ret_entry, struct ifd_err *err)
{
    char text[NAME_BYTES];
    struct stat info;
    int fd = -1;
    file_name(name, text);
    enum ifd_code code = ifd_cache_folder_file(cache->folder, text, false, &fd, &info, err);
    if (code != IFD_OK) {
        return code;
    }
    if (info.st_size < (off_t)(sizeof(struct head) + TRAILER) ||
        (uint64_t)info.st_size > SIZE_MAX / 2) {
        (void)close(fd);
        return ifd_fail(err, IFD_CORRUPT, "wrong size of %lld bytes", (long long)info.st_size);
    }
    struct ifd_cache_entry entry = {.size = (size_t)info.st_size, .file = fd};
    ifd_cache_use(fd);
    void *map = mmap(NULL, entry.size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        code = ifd_fail(err, IFD_UNAVAILABLE, "cannot map %s: %s", text, strerror(errno));
        (void)close(fd);
        return code;
    }
    entry.map = map;
    code = check_content(cache, name, &entry, err);
    if (code != IFD_OK) {
        ifd_cache_entry_finish(&entry);
        return code;
    }
    *ret_entry = entry;
    return IFD_OK;
}

struct ifd_bytes ifd_cache_part(const struct ifd_cache_entry *entry, size_t index)
{
    struct part part;
    part_at(entry, index, &part);
    return (struct ifd_bytes){.data = entry->map + part.offset, .size = (size_t)part.size};
}

void ifd_cache_entry_finish(struct ifd_cache_entry *entry)
{
    if (entry->map) {
        (void)munmap((void *)(uintptr_t)entry->map, entry->size);
        (void)close(entry->file);
    }
    *entry = (struct ifd_cache_entry){0};
}

/* ---- writing ---- */

/* One process at a time writes a file; an old temporary file belongs to a process that died. */
static enum ifd_code open_temporary(const struct ifd_cache *cache, const char *name, int *ret_fd,
                                    struct ifd_err *err)
{
    struct stat info;
    const bool is_there = fstatat(cache->folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && ifd_cache_is_stale(&info)) {
        (void)unlinkat(cache->folder, name, 0);
    }
    const int fd = openat(cache->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST && (!is_there || S_ISREG(info.st_mode))) {
        return ifd_fail(err, IFD_UNAVAILABLE, "another process is writing it");
    }
    if (fd < 0) {
        return ifd_fail(err, IFD_UNAVAILABLE, "cannot create %s: %s", name, strerror(errno));
    }
    *ret_fd = fd;
    return IFD_OK;
}

static bool write_parts(int fd, const struct part *table, const struct ifd_bytes *part,
                        size_t count, uint64_t end)
{
    static const uint8_t zeros[IFD_TENSOR_PAD + IFD_TENSOR_ALIGN] = {0};
    for (size_t i = 0; i < count; i++) {
        const uint64_t next = i + 1 < count ? table[i + 1].offset : end;
        const uint64_t padding = next - table[i].offset - table[i].size;
        if (!ifd_file_write_fd(fd, part[i]) ||
            !ifd_file_write_fd(fd, (struct ifd_bytes){zeros, (size_t)padding})) {
            return false;
        }
    }
    return true;
}

/* Head and table in one block of memory, up to the first part. */
static enum ifd_code make_front(const struct ifd_cache *cache, uint64_t name,
                                const struct ifd_bytes *part, size_t count, uint8_t **ret_front,
                                uint64_t *ret_bytes, uint64_t *ret_end, struct ifd_err *err)
{
    uint64_t first = 0;
    struct head head = {.name = name, .part_count = count};
    memcpy(head.magic, magic, sizeof(magic));
    memcpy(head.build, cache->build, sizeof(head.build));
    if (count > PARTS_MAX || !next_offset(sizeof(head), count * sizeof(struct part), &first)) {
        return ifd_fail(err, IFD_TOO_LARGE, "%zu parts", count);
    }
    uint8_t *front = ifd_acquire_zeroed(cache->alloc, 1, (size_t)first);
    if (!front) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %zu parts", count);
    }
    uint64_t end = first;
    bool fits = true;
    for (size_t i = 0; i < count; i++) {
        const struct part entry = {.offset = end, .size = part[i].size};
        memcpy(front + sizeof(head) + i * sizeof(entry), &entry, sizeof(entry));
        fits = fits && next_offset(end, part[i].size, &end);
    }
    head.size = end + TRAILER;
    memcpy(front, &head, sizeof(head));
    if (!fits) {
        ifd_release(cache->alloc, front, (size_t)first);
        return ifd_fail(err, IFD_TOO_LARGE, "%zu parts", count);
    }
    *ret_front = front;
    *ret_bytes = first;
    *ret_end = end;
    return IFD_OK;
}

static bool write_file(const struct ifd_cache *cache, int fd, const uint8_t *front,
                       uint64_t front_bytes, uint64_t end, const struct ifd_bytes *part,
                       size_t count)
{
    struct ifd_mac mac;
    ifd_mac_start(&mac, cache->key);
    ifd_mac_add(&mac, front, sizeof(struct head) + count * sizeof(struct part));
    for (size_t i = 0; i < count; i++) {
        add_part(&mac, part[i].data, part[i].size, false);
    }
    const uint64_t sum = ifd_mac_sum(&mac);
    const struct part *table = (const void *)(front + sizeof(struct head));
    return ifd_file_write_fd(fd, (struct ifd_bytes){front, (size_t)front_bytes}) &&
           write_parts(fd, table, part, count, end) &&
           ifd_file_write_fd(fd, (struct ifd_bytes){(const uint8_t *)&sum, sizeof(sum)});
}

/* Sets the size of the file before others are counted: of two processes that write at once, each
 * counts the other. */
static enum ifd_code reserve(const struct ifd_cache *cache, int fd, const char *name,
                             uint64_t bytes, struct ifd_err *err)
{
    if (ftruncate(fd, (off_t)bytes) != 0) {
        return ifd_fail(err, IFD_IO, "cannot write %s: %s", name, strerror(errno));
    }
    return ifd_cache_make_room(cache->folder, cache->limit_bytes, name, err);
}

enum ifd_code ifd_cache_write(const struct ifd_cache *cache, uint64_t name,
                              const struct ifd_bytes *part, size_t part_count, struct ifd_err *err)
{
    char text[NAME_BYTES], temporary[NAME_BYTES + 4];
    uint8_t *front = NULL;
    uint64_t front_bytes = 0, end = 0;
    int fd = -1;
    file_name(name, text);
    (void)snprintf(temporary, sizeof(temporary), "%s.new", text);
    enum ifd_code code = make_front(cache, name, part, part_count, &front, &front_bytes, &end, err);
    if (code != IFD_OK) {
        return code;
    }
    if (end + TRAILER > cache->limit_bytes) {
        code = ifd_fail(err, IFD_TOO_LARGE, "%" PRIu64 " bytes, the limit of all files is %" PRIu64,
                        end + TRAILER, cache->limit_bytes);
    }
    if (code == IFD_OK) {
        code = open_temporary(cache, temporary, &fd, err);
    }
    if (code == IFD_OK) {
        code = reserve(cache, fd, text, end + TRAILER, err);
        const bool fits = code == IFD_OK;
        bool ok = fits && write_file(cache, fd, front, front_bytes, end, part, part_count);
        ok = close(fd) == 0 && ok;
        ok = ok && renameat(cache->folder, temporary, cache->folder, text) == 0;
        if (fits && !ok) {
            code = ifd_fail(err, IFD_IO, "cannot write %s: %s", text, strerror(errno));
        }
        if (!ok) {
            (void)unlinkat(cache->folder, temporary, 0);
        }
    }
    ifd_release(cache->alloc, front, (size_t)front_bytes);
    return code;
}

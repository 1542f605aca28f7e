/* SHA256SUMS: reads its lines and checks the files that they name. */
#include "server/repo/checksums.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/str.h"
#include "server/repo/scan.h"

#define SIZE_PREFIX "# size "
#define READ_BYTES  16384
#define DEPTH_MAX   8
/* Digits of a sum in messages; all of them would leave no room for the rest. */
#define SHOWN_DIGITS 16

struct reader {
    const char *dir;
    struct ifd_arena *arena;
    struct ifd_err *err;
    uint32_t line;
};

static enum ifd_code fail_line(const struct reader *r, const char *what)
{
    return ifd_fail(r->err, IFD_CORRUPT, "%s/" IFD_CHECKSUMS_NAME ":%u: %s", r->dir, r->line, what);
}

/* ---- lines ---- */

static enum ifd_code read_path(const struct reader *r, struct ifd_str path,
                               struct ifd_checksum *row)
{
    if (ifd_str_starts(path, "./")) { /* as find writes it */
        path.data += 2;
        path.size -= 2;
    }
    for (size_t i = 0; i < path.size; i++) {
        if ((unsigned char)path.data[i] < ' ') {
            return fail_line(r, "the name has a control character (sha256sum's lines end with LF)");
        }
    }
    if (!ifd_path_is_inside(path)) {
        return ifd_fail(r->err, IFD_CORRUPT,
                        "%s/" IFD_CHECKSUMS_NAME ":%u: \"%.*s\" is not a path inside the folder",
                        r->dir, r->line, path.size < 60 ? (int)path.size : 60, path.data);
    }
    row->line = r->line;
    row->path = ifd_arena_text(r->arena, path.data, path.size);
    return row->path ? IFD_OK : ifd_arena_fail(r->arena, path.size, r->err);
}

/* "# size 4821 model.tflite", which is a comment for sha256sum. */
static enum ifd_code read_size(const struct reader *r, struct ifd_str line,
                               struct ifd_checksum *row)
{
    struct ifd_str rest = {.data = line.data + strlen(SIZE_PREFIX),
                           .size = line.size - strlen(SIZE_PREFIX)};
    struct ifd_str number = ifd_str_part(&rest, ' ');
    if (!rest.data || !ifd_str_u64(number, &row->size_bytes)) {
        return fail_line(r, "not \"" SIZE_PREFIX "BYTES NAME\"");
    }
    row->has_size = true;
    return read_path(r, rest, row);
}

/* "SUM  NAME" or "SUM *NAME". */
static enum ifd_code read_line(const struct reader *r, struct ifd_str line,
                               struct ifd_checksum *row)
{
    if (line.data[0] == '\\') {
        return fail_line(r, "names with line feeds or backslashes are not supported");
    }
    bool is_sum =
        line.size > IFD_SHA256_DIGITS + 2 && line.data[IFD_SHA256_DIGITS] == ' ' &&
        (line.data[IFD_SHA256_DIGITS + 1] == ' ' || line.data[IFD_SHA256_DIGITS + 1] == '*') &&
        ifd_sha256_read(line, row->sha256);
    if (!is_sum) {
        return fail_line(r, "not a line of sha256sum (64 hexadecimal digits, two blanks, name)");
    }
    row->has_sum = true;
    return read_path(r,
                     (struct ifd_str){.data = line.data + IFD_SHA256_DIGITS + 2,
                                      .size = line.size - IFD_SHA256_DIGITS - 2},
                     row);
}

static int compare_rows(const void *a, const void *b)
{
    const struct ifd_checksum *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order != 0 ? order : x->line < y->line ? -1 : x->line > y->line;
}

/* Merges the size and the sum of a file, in sorted rows. */
static enum ifd_code merge_rows(struct reader *r, struct ifd_checksums *sums)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < sums->count; i++) {
        const struct ifd_checksum *row = &sums->file[i];
        struct ifd_checksum *last = kept > 0 ? &sums->file[kept - 1] : NULL;
        if (!last || strcmp(last->path, row->path) != 0) {
            sums->file[kept++] = *row;
            continue;
        }
        if ((last->has_sum && row->has_sum) || (last->has_size && row->has_size)) {
            return ifd_fail(r->err, IFD_CORRUPT,
                            "%s/" IFD_CHECKSUMS_NAME ":%u: \"%.60s\" is listed twice", r->dir,
                            row->line, row->path);
        }
        if (row->has_sum) {
            memcpy(last->sha256, row->sha256, sizeof(last->sha256));
            last->has_sum = true;
        } else {
            last->size_bytes = row->size_bytes;
            last->has_size = true;
        }
    }
    sums->count = kept;
    for (uint32_t i = 0; i < kept; i++) {
        r->line = sums->file[i].line;
        if (!sums->file[i].has_sum) {
            return fail_line(r, "a size, but no sum of this file");
        }
    }
    return IFD_OK;
}

static uint32_t count_lines(struct ifd_str text)
{
    uint32_t lines = 1;
    for (size_t i = 0; i < text.size; i++) {
        lines += text.data[i] == '\n';
    }
    return lines;
}

enum ifd_code ifd_checksums_parse(struct ifd_str text, const char *dir, struct ifd_arena *arena,
                                  struct ifd_checksums *ret, struct ifd_err *err)
{
    struct reader r = {.dir = dir, .arena = arena, .err = err};
    uint32_t lines = count_lines(text);
    if (lines > 2 * IFD_FOLDER_NAMES_MAX) {
        return ifd_fail(err, IFD_TOO_LARGE,
                        "%s/" IFD_CHECKSUMS_NAME ": %u lines, more than the limit of %d", dir,
                        lines, 2 * IFD_FOLDER_NAMES_MAX);
    }
    struct ifd_checksums sums = {.dir = dir,
                                 .file = ifd_arena_take_array(arena, lines, sizeof(*sums.file))};
    enum ifd_code code =
        sums.file ? IFD_OK : ifd_arena_fail(arena, lines * sizeof(*sums.file), err);
    for (struct ifd_str rest = text; rest.data && text.size > 0 && !code;) {
        struct ifd_str line = ifd_str_part(&rest, '\n');
        r.line++;
        bool is_size = ifd_str_starts(line, SIZE_PREFIX);
        if (line.size == 0 || (line.data[0] == '#' && !is_size)) {
            continue;
        }
        struct ifd_checksum *row = &sums.file[sums.count++];
        *row = (struct ifd_checksum){0};
        code = is_size ? read_size(&r, line, row) : read_line(&r, line, row);
        if (!code && strcmp(row->path, IFD_CHECKSUMS_NAME) == 0) {
            sums.count--; /* "sha256sum *" may list its own output, whose sum is never right */
        }
    }
    if (!code && sums.count > 0) {
        qsort(sums.file, sums.count, sizeof(*sums.file), compare_rows);
        code = merge_rows(&r, &sums);
    }
    if (!code) {
        *ret = sums;
    }
    return code;
}

/* ---- which files ---- */

static const struct ifd_checksum *find(const struct ifd_checksums *sums, const char *path)
{
    const struct ifd_checksum wanted = {.path = path};
    for (uint32_t low = 0, high = sums->count; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(wanted.path, sums->file[middle].path);
        if (order == 0) {
            return &sums->file[middle];
        }
        low = order > 0 ? middle + 1 : low;
        high = order > 0 ? high : middle;
    }
    return NULL;
}

/* Checks that every listed file exists and has its size. */
static enum ifd_code check_listed(const struct ifd_checksums *sums, int root,
                                  struct ifd_arena *arena, struct ifd_err *err)
{
    for (uint32_t i = 0; i < sums->count; i++) {
        const struct ifd_checksum *row = &sums->file[i];
        struct stat info;
        const char *path = ifd_folder_join(arena, sums->dir, row->path);
        if (!path) {
            return ifd_arena_fail(arena, strlen(row->path), err);
        }
        if (!ifd_folder_stat(root, path, &info)) {
            const char *bad_link = ifd_folder_bad_link(errno);
            return ifd_fail(err, IFD_CORRUPT,
                            "\"%.40s/" IFD_CHECKSUMS_NAME "\" lists \"%.60s\", which %s", sums->dir,
                            row->path, bad_link ? bad_link : "is not there");
        }
        if (!S_ISREG(info.st_mode)) {
            return ifd_fail(err, IFD_CORRUPT,
                            "\"%.40s/" IFD_CHECKSUMS_NAME
                            "\" lists \"%.60s\", which is not a regular file",
                            sums->dir, row->path);
        }
        if (row->has_size && (uint64_t)info.st_size != row->size_bytes) {
            return ifd_fail(err, IFD_CORRUPT,
                            "\"%.100s\" has %lld bytes, " IFD_CHECKSUMS_NAME " wants %" PRIu64,
                            path, (long long)info.st_size, row->size_bytes);
        }
    }
    return IFD_OK;
}

/* Checks that every existing file is listed. inside: folder below sums->dir; "": all of it. */
static enum ifd_code check_unlisted(const struct ifd_checksums *sums, int root, const char *inside,
                                    unsigned depth, struct ifd_arena *arena, struct ifd_err *err)
{
    struct ifd_folder_names names = {0};
    const char *dir = inside[0] == '\0' ? sums->dir : ifd_folder_join(arena, sums->dir, inside);
    enum ifd_code code = dir ? ifd_folder_list(root, dir, arena, &names, err)
                             : ifd_arena_fail(arena, strlen(inside), err);
    for (uint32_t i = 0; i < names.count && !code; i++) {
        const char *name = names.name[i];
        bool is_ours = depth == 0 && ifd_str_starts(ifd_str(name), IFD_CHECKSUMS_NAME);
        if (is_ours || ifd_scan_is_temporary(name)) {
            continue;
        }
        const char *below = inside[0] == '\0' ? name : ifd_folder_join(arena, inside, name);
        const char *path = ifd_folder_join(arena, dir, name);
        if (!below || !path) {
            return ifd_arena_fail(arena, strlen(name), err);
        }
        if (find(sums, below)) {
            continue;
        }
        code = depth < DEPTH_MAX && ifd_folder_is_folder(root, path)
                   ? check_unlisted(sums, root, below, depth + 1, arena, err)
                   : ifd_fail(err, IFD_CORRUPT, "\"%.100s\" is not listed in " IFD_CHECKSUMS_NAME,
                              path);
    }
    return code;
}

enum ifd_code ifd_checksums_open(int root, const char *dir, struct ifd_arena *arena,
                                 struct ifd_checksums *ret, struct ifd_err *err)
{
    struct ifd_bytes file = {0};
    struct ifd_checksums sums = {0};
    const char *path = ifd_folder_join(arena, dir, IFD_CHECKSUMS_NAME);
    enum ifd_code code =
        path ? ifd_folder_read(root, path, IFD_CHECKSUMS_BYTES_MAX, arena->alloc, &file, err)
             : ifd_arena_fail(arena, strlen(dir), err);
    if (code == IFD_NOT_FOUND) {
        *ret = sums;
        return IFD_OK;
    }
    if (code) {
        return code;
    }
    const struct ifd_str text = {.data = (const char *)file.data, .size = file.size};
    code = ifd_checksums_parse(text, dir, arena, &sums, err);
    ifd_release_tensor(arena->alloc, (void *)(uintptr_t)file.data, file.size);
    if (!code) {
        code = check_listed(&sums, root, arena, err);
    }
    if (!code) {
        code = check_unlisted(&sums, root, "", 0, arena, err);
    }
    if (!code) {
        *ret = sums;
    }
    return code;
}

/* ---- sums ---- */

static const char *shown(const uint8_t *sum, char *text)
{
    for (size_t i = 0; i < SHOWN_DIGITS / 2; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", sum[i]);
    }
    return text;
}

static enum ifd_code compare(const struct ifd_checksums *sums, const struct ifd_checksum *row,
                             struct ifd_sha256 *sum, struct ifd_err *err)
{
    uint8_t got[IFD_SHA256_BYTES];
    char text[2][SHOWN_DIGITS + 1];
    ifd_sha256_end(sum, got);
    return memcmp(got, row->sha256, sizeof(got)) == 0
               ? IFD_OK
               : ifd_fail(err, IFD_CORRUPT,
                          "\"%.40s/%.60s\" has SHA-256 %s…, " IFD_CHECKSUMS_NAME " wants %s…",
                          sums->dir, row->path, shown(got, text[0]), shown(row->sha256, text[1]));
}

static enum ifd_code add_file(int root, const char *path, struct ifd_sha256 *sum,
                              struct ifd_err *err)
{
    uint8_t data[READ_BYTES];
    int fd = -1;
    enum ifd_code code = ifd_folder_open_file(root, path, &fd, err);
    for (ssize_t got = 1; got > 0 && !code;) {
        got = read(fd, data, sizeof(data));
        if (got > 0) {
            ifd_sha256_add(sum, data, (size_t)got);
        } else if (got < 0 && errno == EINTR) {
            got = 1;
        } else if (got < 0) {
            code = ifd_fail(err, IFD_IO, "cannot read \"%s\": %s", path, strerror(errno));
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return code;
}

enum ifd_code ifd_checksums_match(const struct ifd_checksums *sums, int root, const char *path,
                                  struct ifd_bytes bytes, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; i < sums->count && !code; i++) {
        const struct ifd_checksum *row = &sums->file[i];
        struct ifd_sha256 sum;
        char full[PATH_MAX];
        ifd_sha256_begin(&sum);
        if (path && strcmp(path, row->path) == 0) {
            ifd_sha256_add(&sum, bytes.data, bytes.size);
        } else if (ifd_str_format(full, sizeof(full), "%s/%s", sums->dir, row->path)) {
            code = add_file(root, full, &sum, err);
        } else {
            code = ifd_fail(err, IFD_TOO_LARGE, "path \"%.100s…\" is too long", row->path);
        }
        code = code ? code : compare(sums, row, &sum, err);
    }
    return code;
}

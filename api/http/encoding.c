/* gzip and deflate with memory from the request's arena. */
#include "api/http/encoding.h"

#include "engine/base/str.h"

#include <string.h>
#include <zlib.h>

enum coding { CODING_IDENTITY, CODING_GZIP, CODING_DEFLATE, CODING_UNKNOWN };

/* zlib expands one byte to at most this many bytes. */
#define RATIO_MAX 1032

static enum coding coding_by_name(struct ifd_str name)
{
    name = ifd_str_trim(name);
    if (name.size == 0 || ifd_str_equal_nocase(name, "identity")) {
        return CODING_IDENTITY;
    }
    if (ifd_str_equal_nocase(name, "gzip") || ifd_str_equal_nocase(name, "x-gzip")) {
        return CODING_GZIP;
    }
    return ifd_str_equal_nocase(name, "deflate") ? CODING_DEFLATE : CODING_UNKNOWN;
}

bool ifd_coding_is_known(struct ifd_str coding)
{
    return coding_by_name(coding) != CODING_UNKNOWN;
}

bool ifd_coding_is_compressed(struct ifd_str coding)
{
    return coding_by_name(coding) != CODING_IDENTITY;
}

static void *zlib_take(void *arena, unsigned count, unsigned size)
{
    return ifd_arena_take_array(arena, count, size);
}

static void zlib_give(void *arena, void *ptr)
{
    (void)arena; /* freed with the request */
    (void)ptr;
}

/* "deflate" is a zlib stream by the standard; some clients send a bare one. The first two bytes
 * tell. */
static int window_bits(enum coding coding, struct ifd_bytes body)
{
    if (coding == CODING_GZIP) {
        return 15 + 16;
    }
    bool is_zlib = body.size >= 2 && (body.data[0] & 0x0f) == 8 &&
                   ((unsigned)body.data[0] * 256 + body.data[1]) % 31 == 0;
    return is_zlib ? 15 : -15;
}

/* One body on its way through zlib. */
struct inflation {
    z_stream stream;
    enum coding coding;
    struct ifd_bytes body;
    size_t fed;  /* bytes of body given to zlib */
    uint8_t *to; /* NULL: counts only */
    size_t room; /* bytes that may come out */
    size_t size; /* bytes that came out; to gets at most room of them */
};

static size_t bytes_left(const struct inflation *in)
{
    return in->body.size - in->fed + in->stream.avail_in;
}

static enum ifd_code fail_stream(const struct inflation *in, int result, struct ifd_err *err)
{
    const char *name = in->coding == CODING_GZIP ? "gzip" : "deflate";
    if (result == Z_MEM_ERROR) {
        return ifd_fail(err, IFD_NOMEM, "no memory to decompress the body");
    }
    if (result == Z_OK || result == Z_BUF_ERROR) {
        return ifd_fail(err, IFD_INVALID, "%s body ends before its stream does", name);
    }
    return ifd_fail(err, IFD_INVALID, "%s body is damaged at byte %zu: %s", name,
                    in->body.size - bytes_left(in),
                    in->stream.msg ? in->stream.msg : "not such a stream");
}

/* Whether another member of a gzip body begins here (RFC 1952, 2.2). */
static bool begins_member(const struct inflation *in)
{
    const size_t left = bytes_left(in);
    const uint8_t *at = in->body.data + (in->body.size - left);
    return in->coding == CODING_GZIP && left >= 2 && at[0] == 0x1f && at[1] == 0x8b;
}

/* One call of zlib; its result. */
static int inflate_some(struct inflation *in)
{
    uint8_t scratch[16384];
    z_stream *stream = &in->stream;
    if (stream->avail_in == 0) {
        const size_t rest = in->body.size - in->fed, more = rest < (1u << 30) ? rest : 1u << 30;
        stream->avail_in = (uInt)more;
        in->fed += more;
    }
    /* a full buffer gets one byte of scratch, to find out whether more comes */
    const bool direct = in->to && in->size < in->room;
    size_t space = direct ? in->room - in->size : in->to ? 1 : sizeof(scratch);
    space = space < (1u << 30) ? space : 1u << 30;
    stream->next_out = direct ? in->to + in->size : scratch;
    stream->avail_out = (uInt)space;
    int result = inflate(stream, Z_NO_FLUSH);
    in->size += space - stream->avail_out;
    if (result == Z_BUF_ERROR && stream->avail_in == 0 && in->fed < in->body.size) {
        return Z_OK;
    }
    return result == Z_STREAM_END && begins_member(in) ? inflateReset(stream) : result;
}

/* Decompresses the whole body. to == NULL: counts only. Stops when more than room bytes come
 * out. */
static enum ifd_code run_inflate(enum coding coding, struct ifd_bytes body, uint8_t *to,
                                 size_t room, struct ifd_arena *arena, size_t *ret_size,
                                 struct ifd_err *err)
{
    struct inflation in = {
        .stream = {.zalloc = zlib_take,
                   .zfree = zlib_give,
                   .opaque = arena,
                   .next_in = (z_const Bytef *)body.data},
        .coding = coding,
        .body = body,
        .to = to,
        .room = room,
    };
    int result = inflateInit2(&in.stream, window_bits(coding, body));
    while (result == Z_OK) {
        result = inflate_some(&in);
        if (in.size > room) {
            return ifd_fail(err, IFD_TOO_LARGE,
                            "decompressed body exceeds the maximum allowed input size of %zu bytes",
                            room);
        }
    }
    if (result != Z_STREAM_END) {
        return fail_stream(&in, result, err);
    }
    if (bytes_left(&in) > 0) {
        return ifd_fail(err, IFD_INVALID, "%zu bytes follow the end of the compressed body",
                        bytes_left(&in));
    }
    *ret_size = in.size;
    return IFD_OK;
}

/* The size in the trailer of a gzip body's last member; SIZE_MAX if it cannot be true. */
static size_t gzip_size(struct ifd_bytes body, size_t cap_bytes)
{
    if (body.size < 18) {
        return SIZE_MAX;
    }
    const uint8_t *tail = body.data + body.size - 4;
    size_t size =
        (size_t)tail[0] | (size_t)tail[1] << 8 | (size_t)tail[2] << 16 | (size_t)tail[3] << 24;
    return size <= cap_bytes && size / RATIO_MAX <= body.size ? size : SIZE_MAX;
}

/* Decompresses the body into memory for size bytes; TOO_LARGE: more would come out. */
static enum ifd_code inflate_into(enum coding coding, struct ifd_bytes body, size_t size,
                                  struct ifd_str json_length, struct ifd_arena *arena,
                                  struct ifd_bytes *ret, struct ifd_err *err)
{
    uint64_t align_at = 0;
    if (!json_length.data || !ifd_str_u64(json_length, &align_at) || align_at > size) {
        align_at = 0;
    }
    size_t lead = (IFD_TENSOR_ALIGN - (size_t)align_at % IFD_TENSOR_ALIGN) % IFD_TENSOR_ALIGN;
    uint8_t *data = ifd_arena_take_tensor(arena, lead + size);
    if (!data) {
        return ifd_arena_fail(arena, lead + size, err);
    }
    size_t got = 0;
    enum ifd_code code = run_inflate(coding, body, data + lead, size, arena, &got, err);
    if (code == IFD_OK) {
        *ret = (struct ifd_bytes){.data = data + lead, .size = got};
    }
    return code;
}

enum ifd_code ifd_decompress(struct ifd_str coding_name, struct ifd_bytes body, size_t cap_bytes,
                             struct ifd_str json_length, struct ifd_arena *arena,
                             struct ifd_bytes *ret, struct ifd_err *err)
{
    enum coding coding = coding_by_name(coding_name);
    if (coding == CODING_IDENTITY) {
        *ret = body;
        return IFD_OK;
    }
    size_t size = coding == CODING_GZIP ? gzip_size(body, cap_bytes) : SIZE_MAX;
    if (size != SIZE_MAX) {
        /* nearly always right; wrong for several members and for a false trailer */
        enum ifd_code code = inflate_into(coding, body, size, json_length, arena, ret, err);
        if (code != IFD_TOO_LARGE) {
            return code;
        }
    }
    enum ifd_code code = run_inflate(coding, body, NULL, cap_bytes, arena, &size, err);
    return code == IFD_OK ? inflate_into(coding, body, size, json_length, arena, ret, err) : code;
}

/* ---- answers ---- */

/* Thousandths of "q=0.5"; 1000 without one, 0 if it is malformed. */
static unsigned weight(struct ifd_str parameters)
{
    while (parameters.data) {
        struct ifd_str part = ifd_str_trim(ifd_str_part(&parameters, ';'));
        if (!ifd_str_starts(part, "q=") && !ifd_str_starts(part, "Q=")) {
            continue;
        }
        double value = 0;
        part.data += 2;
        part.size -= 2;
        return ifd_str_f64(part, &value) && value > 0 && value <= 1 ? (unsigned)(value * 1000) : 0;
    }
    return 1000;
}

static enum coding preferred(struct ifd_str accept)
{
    enum coding best = CODING_IDENTITY;
    unsigned best_weight = 0;
    while (accept.data) {
        struct ifd_str item = ifd_str_part(&accept, ',');
        struct ifd_str name = ifd_str_trim(ifd_str_part(&item, ';'));
        enum coding coding = coding_by_name(name);
        unsigned item_weight = weight(item);
        if (name.size > 0 && coding != CODING_UNKNOWN && item_weight > best_weight) {
            best = coding;
            best_weight = item_weight;
        }
    }
    return best;
}

static size_t body_size(const struct ifd_http_response *response)
{
    size_t size = 0;
    for (uint32_t i = 0; i < response->piece_count; i++) {
        size += response->piece[i].size;
    }
    return size;
}

/* Feeds all pieces; the size of the result, 0 if it did not fit. */
static size_t run_deflate(z_stream *stream, const struct ifd_http_response *response)
{
    int result = Z_OK;
    for (uint32_t i = 0; i < response->piece_count && result == Z_OK; i++) {
        stream->next_in = (z_const Bytef *)response->piece[i].data;
        stream->avail_in = (uInt)response->piece[i].size;
        while (stream->avail_in > 0 && result == Z_OK) {
            result = deflate(stream, Z_NO_FLUSH);
        }
    }
    return result == Z_OK && deflate(stream, Z_FINISH) == Z_STREAM_END ? stream->total_out : 0;
}

void ifd_compress(struct ifd_str accept, struct ifd_arena *arena,
                  struct ifd_http_response *response)
{
    enum coding coding = preferred(accept);
    size_t size = body_size(response);
    if (coding == CODING_IDENTITY || size == 0 || size > (1u << 30) ||
        response->header_count == IFD_HTTP_HEADERS_MAX) {
        return;
    }
    z_stream stream = {.zalloc = zlib_take, .zfree = zlib_give, .opaque = arena};
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, coding == CODING_GZIP ? 15 + 16 : 15, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        return;
    }
    size_t bound = deflateBound(&stream, (uLong)size);
    uint8_t *to = ifd_arena_take(arena, bound);
    if (!to) {
        return;
    }
    stream.next_out = to;
    stream.avail_out = (uInt)bound;
    size_t written = run_deflate(&stream, response);
    if (written > 0) {
        response->piece[0] = (struct ifd_http_piece){.data = to, .size = written};
        response->piece_count = 1;
        response->header[response->header_count++] = (struct ifd_http_header){
            .name = "Content-Encoding", .value = coding == CODING_GZIP ? "gzip" : "deflate"};
    }
}

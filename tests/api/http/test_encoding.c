/* gzip and deflate, both ways. */
#include "api/http/encoding.h"

#include "engine/base/str.h"
#include "tests/support/test.h"

#include <string.h>
#include <zlib.h>

#define TEXT "{\"inputs\":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]}"

static struct ifd_arena arena;
static struct ifd_err err;

static void start(void)
{
    ifd_arena_finish(&arena);
    ifd_arena_init(&arena, ifd_alloc_system(), (size_t)4 << 20);
    err = (struct ifd_err){0};
}

/* bits as deflateInit2 has them: 31 gzip, 15 zlib, -15 bare. */
static struct ifd_bytes pack(const void *data, size_t size, int bits)
{
    static uint8_t packed[1 << 16];
    z_stream stream = {.next_in = (z_const Bytef *)data, .avail_in = (uInt)size};
    REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    stream.next_out = packed;
    stream.avail_out = sizeof(packed);
    REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    size_t total = stream.total_out;
    (void)deflateEnd(&stream);
    return (struct ifd_bytes){.data = packed, .size = total};
}

static enum ifd_code unpack(const char *coding, struct ifd_bytes body, size_t cap,
                            struct ifd_bytes *ret)
{
    start();
    return ifd_decompress(ifd_str(coding), body, cap, (struct ifd_str){0}, &arena, ret, &err);
}

static void every_coding_is_undone(void)
{
    static const struct {
        const char *coding;
        int bits;
    } codings[] = {{"gzip", 31}, {"GZip", 31}, {"x-gzip", 31}, {"deflate", 15}, {"deflate", -15}};
    for (size_t i = 0; i < sizeof(codings) / sizeof(codings[0]); i++) {
        struct ifd_bytes plain = {0};
        struct ifd_bytes body = pack(TEXT, strlen(TEXT), codings[i].bits);
        EXPECT_CODE(unpack(codings[i].coding, body, 1000, &plain), IFD_OK, &err);
        EXPECT_INT(plain.size, strlen(TEXT));
        EXPECT_BYTES(plain.data, TEXT, strlen(TEXT));
        /* exactly as large as allowed */
        EXPECT_CODE(unpack(codings[i].coding, body, strlen(TEXT), &plain), IFD_OK, &err);
        EXPECT_CODE(unpack(codings[i].coding, body, strlen(TEXT) - 1, &plain), IFD_TOO_LARGE, &err);
    }
    ifd_arena_finish(&arena);
}

static void identity_is_the_body_itself(void)
{
    struct ifd_bytes body = {.data = (const uint8_t *)TEXT, .size = 5}, plain = {0};
    EXPECT_CODE(unpack("identity", body, 10, &plain), IFD_OK, &err);
    EXPECT(plain.data == body.data && plain.size == 5);
    EXPECT_INT(arena.used_bytes, 0);
    ifd_arena_finish(&arena);
}

static void damaged_bodies_are_refused(void)
{
    static const int bits[] = {31, 15};
    struct ifd_bytes plain = {0};
    for (size_t k = 0; k < 2; k++) {
        const char *coding = bits[k] == 31 ? "gzip" : "deflate";
        struct ifd_bytes whole = pack(TEXT, strlen(TEXT), bits[k]);
        for (size_t size = 0; size < whole.size; size++) {
            struct ifd_bytes cut = {.data = whole.data, .size = size};
            EXPECT_CODE(unpack(coding, cut, 1000, &plain), IFD_INVALID, &err);
        }
        uint8_t more[512];
        memcpy(more, whole.data, whole.size);
        more[whole.size] = 'x';
        EXPECT_CODE(unpack(coding, (struct ifd_bytes){more, whole.size + 1}, 1000, &plain),
                    IFD_INVALID, &err);
        more[whole.size / 2] ^= 0x55;
        EXPECT_CODE(unpack(coding, (struct ifd_bytes){more, whole.size}, 1000, &plain), IFD_INVALID,
                    &err);
    }
    EXPECT_CODE(unpack("gzip", (struct ifd_bytes){(const uint8_t *)"not gzip", 8}, 1000, &plain),
                IFD_INVALID, &err);
    EXPECT_HAS(err.text, "gzip body is damaged");
    ifd_arena_finish(&arena);
}

static void a_false_size_of_a_gzip_body_is_refused(void)
{
    struct ifd_bytes body = pack(TEXT, strlen(TEXT), 31), plain = {0};
    uint8_t copy[512];
    memcpy(copy, body.data, body.size);
    copy[body.size - 4] = (uint8_t)(copy[body.size - 4] + 1);
    EXPECT_CODE(unpack("gzip", (struct ifd_bytes){copy, body.size}, 1000, &plain), IFD_INVALID,
                &err);
    copy[body.size - 4] = 1;
    EXPECT_CODE(unpack("gzip", (struct ifd_bytes){copy, body.size}, 1000, &plain), IFD_INVALID,
                &err);
    memset(copy + body.size - 4, 0xff, 4);
    EXPECT_CODE(unpack("gzip", (struct ifd_bytes){copy, body.size}, 1000, &plain), IFD_INVALID,
                &err);
    ifd_arena_finish(&arena);
}

/* count members of text, one behind the other. */
static struct ifd_bytes pack_members(const char *text, size_t count)
{
    static uint8_t members[1 << 16];
    const struct ifd_bytes one = pack(text, strlen(text), 31);
    REQUIRE(count * one.size <= sizeof(members));
    for (size_t i = 0; i < count; i++) {
        memcpy(members + i * one.size, one.data, one.size);
    }
    return (struct ifd_bytes){.data = members, .size = count * one.size};
}

static void members_of_a_gzip_body_are_joined(void)
{
    struct ifd_bytes plain = {0};
    struct ifd_bytes body = pack_members(TEXT, 3);
    EXPECT_CODE(unpack("gzip", body, 1000, &plain), IFD_OK, &err);
    EXPECT_INT(plain.size, 3 * strlen(TEXT));
    for (size_t i = 0; i < 3; i++) {
        EXPECT_BYTES(plain.data + i * strlen(TEXT), TEXT, strlen(TEXT));
    }
    EXPECT_CODE(unpack("gzip", body, 3 * strlen(TEXT), &plain), IFD_OK, &err);
    EXPECT_CODE(unpack("gzip", body, 3 * strlen(TEXT) - 1, &plain), IFD_TOO_LARGE, &err);
    EXPECT_HAS(err.text, "exceeds the maximum allowed input size");
    /* members without content are legal, too */
    body = pack_members("", 100);
    EXPECT_CODE(unpack("gzip", body, 1000, &plain), IFD_OK, &err);
    EXPECT_INT(plain.size, 0);
    /* the tensor behind the JSON is aligned as in one member */
    body = pack_members(TEXT, 2);
    start();
    EXPECT_CODE(ifd_decompress(ifd_str("gzip"), body, 1000, ifd_str("60"), &arena, &plain, &err),
                IFD_OK, &err);
    EXPECT_INT((uintptr_t)(plain.data + 60) % IFD_TENSOR_ALIGN, 0);
    ifd_arena_finish(&arena);
}

static void what_follows_the_last_member_is_refused(void)
{
    struct ifd_bytes plain = {0};
    const struct ifd_bytes body = pack_members(TEXT, 2);
    uint8_t more[512];
    memcpy(more, body.data, body.size);
    memcpy(more + body.size, "garbage!", 8);
    EXPECT_CODE(unpack("gzip", (struct ifd_bytes){more, body.size + 8}, 1000, &plain), IFD_INVALID,
                &err);
    EXPECT_TEXT(err.text, "8 bytes follow the end of the compressed body");
    /* it looks like a member, but is none */
    memcpy(more + body.size, "\x1f\x8b garb", 7);
    EXPECT_CODE(unpack("gzip", (struct ifd_bytes){more, body.size + 7}, 1000, &plain), IFD_INVALID,
                &err);
    EXPECT_HAS(err.text, "gzip body is damaged at byte");
    /* a member that is cut */
    for (size_t size = body.size / 2 + 1; size < body.size; size++) {
        EXPECT_CODE(unpack("gzip", (struct ifd_bytes){body.data, size}, 1000, &plain), IFD_INVALID,
                    &err);
    }
    /* a zlib stream has one member only */
    const struct ifd_bytes one = pack(TEXT, strlen(TEXT), 15);
    memcpy(more, one.data, one.size);
    memcpy(more + one.size, one.data, one.size);
    EXPECT_CODE(unpack("deflate", (struct ifd_bytes){more, 2 * one.size}, 1000, &plain),
                IFD_INVALID, &err);
    EXPECT_HAS(err.text, "bytes follow the end");
    ifd_arena_finish(&arena);
}

static void a_bomb_takes_no_memory(void)
{
    static const uint8_t zeros[8 << 20];
    static const int bits[] = {31, 15};
    for (size_t k = 0; k < 2; k++) {
        struct ifd_bytes body = pack(zeros, sizeof(zeros), bits[k]), plain = {0};
        EXPECT(body.size < 10000);
        EXPECT_CODE(unpack(bits[k] == 31 ? "gzip" : "deflate", body, (size_t)1 << 20, &plain),
                    IFD_TOO_LARGE, &err);
        EXPECT_HAS(err.text, "1048576");
        EXPECT(arena.used_bytes < 100000);
    }
    ifd_arena_finish(&arena);
}

static void the_first_tensor_is_aligned(void)
{
    char text[300];
    memset(text, 'j', sizeof(text));
    for (int at = 0; at < 130; at++) {
        char length[8];
        struct ifd_bytes plain = {0};
        REQUIRE(ifd_str_format(length, sizeof(length), "%d", at));
        start();
        EXPECT_CODE(ifd_decompress(ifd_str("deflate"), pack(text, sizeof(text), 15), 1000,
                                   ifd_str(length), &arena, &plain, &err),
                    IFD_OK, &err);
        EXPECT_INT((uintptr_t)(plain.data + at) % IFD_TENSOR_ALIGN, 0);
    }
    ifd_arena_finish(&arena);
}

/* The coding that an answer gets, "" for none. */
static const char *chosen(const char *accept)
{
    static const char text[] = TEXT TEXT TEXT;
    struct ifd_http_response response = {
        .status = 200, .piece = {{text, 20}, {text + 20, sizeof(text) - 21}}, .piece_count = 2};
    uint8_t plain[sizeof(text)];
    start();
    ifd_compress(ifd_str(accept), &arena, &response);
    if (response.header_count == 0) {
        EXPECT_INT(response.piece_count, 2);
        return "";
    }
    EXPECT_TEXT(response.header[0].name, "Content-Encoding");
    REQUIRE(response.piece_count == 1);
    z_stream stream = {.next_in = (z_const Bytef *)response.piece[0].data,
                       .avail_in = (uInt)response.piece[0].size};
    stream.next_out = plain;
    stream.avail_out = sizeof(plain);
    REQUIRE(inflateInit2(&stream, 15 + 32) == Z_OK);
    EXPECT_INT(inflate(&stream, Z_FINISH), Z_STREAM_END);
    EXPECT_INT(stream.total_out, sizeof(text) - 1);
    EXPECT_BYTES(plain, text, sizeof(text) - 1);
    (void)inflateEnd(&stream);
    return response.header[0].value;
}

static void the_preferred_coding_is_used(void)
{
    EXPECT_TEXT(chosen("gzip"), "gzip");
    EXPECT_TEXT(chosen("deflate"), "deflate");
    EXPECT_TEXT(chosen("gzip, deflate"), "gzip");
    EXPECT_TEXT(chosen("deflate, gzip, br"), "deflate");
    EXPECT_TEXT(chosen("gzip;q=0.2, deflate;q=0.8"), "deflate");
    EXPECT_TEXT(chosen("gzip;q=0.5,identity"), "");
    EXPECT_TEXT(chosen("gzip;q=0, deflate;q=0"), "");
    EXPECT_TEXT(chosen("gzip;q=nonsense"), "");
    EXPECT_TEXT(chosen("br"), "");
    EXPECT_TEXT(chosen("*"), "");
    EXPECT_TEXT(chosen(""), "");
    EXPECT_TEXT(chosen("identity"), "");
    EXPECT_TEXT(chosen(" GZIP ; q=1.0 "), "gzip");
    EXPECT_TEXT(chosen(",,;;,gzip"), "gzip");
    ifd_arena_finish(&arena);
}

static void without_memory_the_answer_stays_plain(void)
{
    struct ifd_http_response response = {.piece = {{TEXT, 20}}, .piece_count = 1};
    start();
    arena.cap_bytes = 1000;
    ifd_compress(ifd_str("gzip"), &arena, &response);
    EXPECT_INT(response.header_count, 0);
    EXPECT_INT(response.piece[0].size, 20);
    ifd_arena_finish(&arena);
}

static void codings_are_known_by_name(void)
{
    EXPECT(ifd_coding_is_known((struct ifd_str){0}) && ifd_coding_is_known(ifd_str("gzip")));
    EXPECT(!ifd_coding_is_known(ifd_str("br")) && !ifd_coding_is_known(ifd_str("gzip, gzip")));
    EXPECT(ifd_coding_is_compressed(ifd_str("deflate")));
    EXPECT(!ifd_coding_is_compressed(ifd_str("identity")));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(every_coding_is_undone),
        T(identity_is_the_body_itself),
        T(damaged_bodies_are_refused),
        T(a_false_size_of_a_gzip_body_is_refused),
        T(members_of_a_gzip_body_are_joined),
        T(what_follows_the_last_member_is_refused),
        T(a_bomb_takes_no_memory),
        T(the_first_tensor_is_aligned),
        T(the_preferred_coding_is_used),
        T(without_memory_the_answer_stays_plain),
        T(codings_are_known_by_name),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

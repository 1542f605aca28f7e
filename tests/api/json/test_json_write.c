/* The writer of JSON into chunks. */
#include "api/json/json_write.h"

#include "api/json/json_plain.h"
#include "engine/base/buf.h"
#include "tests/support/test.h"

#include <string.h>

struct writing {
    struct ifd_arena arena;
    struct ifd_json_out out;
};

static void start(struct writing *writing)
{
    ifd_arena_init(&writing->arena, ifd_alloc_system(), 0);
    ifd_json_out_init(&writing->out, &writing->arena);
}

/* What was written, joined; ends the writing. */
static void finish(struct writing *writing, struct ifd_buf *ret)
{
    ifd_buf_init(ret, ifd_alloc_system(), 1 << 24);
    size_t size = ifd_json_out_size(&writing->out);
    EXPECT(ifd_json_out_finish(&writing->out));
    EXPECT_INT(ifd_json_out_size(&writing->out), size);
    for (uint32_t i = 0; i < writing->out.chunk_count; i++) {
        ifd_buf_add(ret, writing->out.chunk[i].data, writing->out.chunk[i].size);
    }
    EXPECT_INT(ret->size, size);
    ifd_buf_add(ret, "", 1);
    ifd_arena_finish(&writing->arena);
}

static void commas_are_put_between_values(void)
{
    struct writing writing;
    struct ifd_buf text;
    start(&writing);
    ifd_json_begin(&writing.out, '{');
    ifd_json_member_text(&writing.out, "a", "x");
    ifd_json_key(&writing.out, "b");
    ifd_json_begin(&writing.out, '[');
    ifd_json_begin(&writing.out, '[');
    ifd_json_end(&writing.out, ']');
    ifd_json_put_s64(&writing.out, -1);
    ifd_json_put_bool(&writing.out, true);
    ifd_json_begin(&writing.out, '{');
    ifd_json_end(&writing.out, '}');
    ifd_json_end(&writing.out, ']');
    ifd_json_member_u64(&writing.out, "c", UINT64_MAX);
    ifd_json_member_bool(&writing.out, "d", false);
    ifd_json_end(&writing.out, '}');
    finish(&writing, &text);
    EXPECT_TEXT((const char *)text.data,
                "{\"a\":\"x\",\"b\":[[],-1,true,{}],\"c\":18446744073709551615,\"d\":false}");
    ifd_buf_finish(&text);
}

static void text_is_escaped_and_made_utf8(void)
{
    static const char raw[] = "a\"\\\n\t\x01\x7f\xc3\xa9\xff\xc3(\xe2\x82\0z";
    struct writing writing;
    struct ifd_buf text;
    start(&writing);
    ifd_json_put_str(&writing.out, (struct ifd_str){.data = raw, .size = sizeof(raw) - 1});
    finish(&writing, &text);
    EXPECT_TEXT((const char *)text.data,
                "\"a\\\"\\\\\\n\\t\\u0001\x7f\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd"
                "\xef\xbf\xbd\\u0000z\"");
    ifd_buf_finish(&text);
}

/* Texts of every length around words of eight, each with every character at every place. */
static void plain_runs_end_where_an_escape_is_due(void)
{
    for (int c = 0; c < 256; c++) {
        bool is_plain = c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
        for (size_t size = 0; size < 20; size++) {
            for (size_t at = 0; at < size; at++) {
                char text[20];
                memset(text, '~', sizeof(text));
                text[at] = (char)c;
                EXPECT_INT((long long)ifd_json_plain(text, size),
                           (long long)(is_plain ? size : at));
            }
        }
    }
}

static void long_texts_are_whole_over_many_chunks(void)
{
    struct writing writing;
    struct ifd_buf text;
    char word[1000];
    memset(word, 'w', sizeof(word));
    start(&writing);
    ifd_json_begin(&writing.out, '[');
    for (int i = 0; i < 1000; i++) {
        ifd_json_put_str(&writing.out, (struct ifd_str){.data = word, .size = (size_t)i});
    }
    ifd_json_end(&writing.out, ']');
    EXPECT(writing.out.chunk_count > 3 && writing.out.chunk_count < IFD_JSON_CHUNKS_MAX);
    finish(&writing, &text);
    const char *at = (const char *)text.data;
    for (int i = 0; i < 1000; i++) {
        EXPECT(at[0] == (i == 0 ? '[' : ',') && at[1] == '"' && at[2 + i] == '"');
        EXPECT_INT(strspn(at + 2, "w"), i);
        at += i + 3;
    }
    EXPECT_TEXT(at, "]");
    ifd_buf_finish(&text);
}

static void without_memory_the_writer_fails_once_for_all(void)
{
    struct writing writing;
    start(&writing);
    writing.arena.cap_bytes = 100;
    ifd_json_begin(&writing.out, '{');
    ifd_json_member_text(&writing.out, "a", "x");
    EXPECT(!ifd_json_room(&writing.out, 10));
    ifd_json_end(&writing.out, '}');
    EXPECT(!ifd_json_out_finish(&writing.out));
    ifd_arena_finish(&writing.arena);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(commas_are_put_between_values),
        T(text_is_escaped_and_made_utf8),
        T(plain_runs_end_where_an_escape_is_due),
        T(long_texts_are_whole_over_many_chunks),
        T(without_memory_the_writer_fails_once_for_all),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

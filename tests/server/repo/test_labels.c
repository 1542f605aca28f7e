/* Files of labels. */
#include "server/repo/labels.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/str.h"
#include "tests/support/test.h"

static struct ifd_arena arena;

static enum ifd_code read_labels(struct ifd_str text, const char *const **ret, uint32_t *ret_count,
                                 struct ifd_err *err)
{
    const struct ifd_source_file file = {
        .path = ifd_str("l"), .content = {.data = (const uint8_t *)text.data, .size = text.size}};
    const struct ifd_source source = {.root = -1, .name = "m", .file = &file, .file_count = 1};
    ifd_arena_finish(&arena);
    ifd_arena_init(&arena, ifd_alloc_system(), (size_t)64 << 20);
    return ifd_labels_read(&source, "l", &arena, ret, ret_count, err);
}

static void lines_are_labels(void)
{
    static const struct {
        const char *text;
        uint32_t count;
        const char *label[3];
    } rows[] = {
        {"a\nb c\n", 2, {"a", "b c"}},
        {"a\r\nb", 2, {"a", "b"}},
        {"a\n\n c \n \r\n\n", 3, {"a", "", "c"}},
        {"", 0, {NULL}},
        {"\n\n", 0, {NULL}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const *label = NULL;
        uint32_t count = 9;
        struct ifd_err err = {0};
        REQUIRE_OK(read_labels(ifd_str(rows[i].text), &label, &count, &err), &err);
        REQUIRE(count == rows[i].count);
        for (uint32_t k = 0; k < count; k++) {
            EXPECT_TEXT(label[k], rows[i].label[k]);
        }
    }
}

static void a_million_labels_are_read_and_no_more(void)
{
    const char *const *label = NULL;
    uint32_t count = 0;
    struct ifd_err err = {0};
    const size_t size = (size_t)2 * (IFD_LABELS_MAX + 1);
    char *text = malloc(size);
    REQUIRE(text != NULL);
    for (size_t i = 0; i < size; i++) {
        text[i] = i % 2 == 0 ? 'a' : '\n';
    }
    REQUIRE_OK(read_labels((struct ifd_str){.data = text, .size = size - 2}, &label, &count, &err),
               &err);
    EXPECT_INT(count, IFD_LABELS_MAX);
    EXPECT_CODE(read_labels((struct ifd_str){.data = text, .size = size}, &label, &count, &err),
                IFD_TOO_LARGE, &err);
    EXPECT_HAS(err.text, "\"l\" has more than 1000000 labels");
    free(text);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(lines_are_labels),
        T(a_million_labels_are_read_and_no_more),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

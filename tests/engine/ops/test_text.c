/* Operators on texts with hostile ones. */
#include "engine/base/str.h"
#include "engine/ir/shape.h"
#include "inferd/op.h"
#include "inferd/op_attrs.h"
#include "tests/support/test.h"

#include <string.h>

/* The texts as reals; the code of the kernel. */
static enum ifd_code reals(const struct ifd_str *text, int64_t count, float *ret)
{
    const struct ifd_desc in = {.dtype = IFD_STR, .shape = {.rank = 1, .dim = {count}}};
    const struct ifd_desc out = {.dtype = IFD_F32, .shape = {.rank = 1, .dim = {count}}};
    const struct ifd_ref_call call = {.in = (const struct ifd_desc *const[]){&in},
                                      .input = (const void *const[]){text},
                                      .input_count = 1,
                                      .out = (const struct ifd_desc *const[]){&out},
                                      .output = (void *const[]){ret},
                                      .output_count = 1};
    return ifd_op_def(IFD_OP_TEXT_CAST)->ref(&call, NULL);
}

/* Each point may get a digit. */
static void texts_with_many_points_are_no_numbers(void)
{
    char text[128];
    for (size_t size = 1; size <= sizeof(text); size++) {
        for (size_t i = 0; i < size; i++) {
            text[i] = "-.5"[i % 3];
        }
        float real = 0;
        const enum ifd_code code = reals(&(struct ifd_str){text, size}, 1, &real);
        EXPECT_INT(code, size == 3 ? IFD_OK : IFD_INVALID);
    }
    float real = 0;
    EXPECT_INT(reals(&(struct ifd_str){"-.5", 3}, 1, &real), IFD_OK);
    EXPECT(real == -0.5F);
    EXPECT_INT(reals(&(struct ifd_str){".", 1}, 1, &real), IFD_INVALID);
    EXPECT_INT(reals(&(struct ifd_str){"1e.", 3}, 1, &real), IFD_INVALID);
}

/* How many parts a text has. */
static int64_t parts_of(struct ifd_str text, int32_t parts, struct ifd_str by)
{
    const struct ifd_desc in = {.dtype = IFD_STR, .shape = {.rank = 1, .dim = {1}}};
    const struct ifd_desc out = {.dtype = IFD_S64, .shape = {.rank = 1, .dim = {1}}};
    const struct ifd_text_split_attrs attrs = {.parts = parts, .splits = -1};
    int64_t count = -1;
    const struct ifd_ref_call call = {.attrs = &attrs,
                                      .in = (const struct ifd_desc *const[]){&in, &in},
                                      .input = (const void *const[]){&text, &by},
                                      .input_count = 2,
                                      .out = (const struct ifd_desc *const[]){&out},
                                      .output = (void *const[]){&count},
                                      .output_count = 1};
    EXPECT_INT(ifd_op_def(IFD_OP_TEXT_COUNT)->ref(&call, NULL), IFD_OK);
    return count;
}

/* What was quadratic took a minute. */
static void a_text_is_split_in_one_pass(void)
{
    static char text[1000000], by[200000];
    memset(text, ' ', sizeof(text));
    for (size_t i = 0; i < sizeof(text) / 2; i += 2) {
        text[i] = 'a';
    }
    const struct ifd_str whole = {text, sizeof(text)};
    EXPECT_INT(parts_of(whole, IFD_TEXT_WORDS, whole), sizeof(text) / 4);
    memset(text, 'a', sizeof(text));
    memset(by, 'a', sizeof(by));
    by[sizeof(by) - 1] = 'b';
    EXPECT_INT(parts_of(whole, IFD_TEXT_DELIMITER, (struct ifd_str){by, sizeof(by)}), 1);
    text[500000] = 'b';
    EXPECT_INT(parts_of(whole, IFD_TEXT_DELIMITER, (struct ifd_str){by, sizeof(by)}), 2);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(texts_with_many_points_are_no_numbers),
        T(a_text_is_split_in_one_pass),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

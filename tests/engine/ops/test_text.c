/* Operators on texts with hostile ones. */
#include "engine/base/str.h"
#include "engine/ir/shape.h"
#include "inferd/op.h"
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

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(texts_with_many_points_are_no_numbers),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

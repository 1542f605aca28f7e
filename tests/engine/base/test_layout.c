#include "engine/base/layout.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

#include <string.h>

#define MANY 200

static bool overlap(const struct ifd_layout_item *a, const struct ifd_layout_item *b)
{
    const bool in_time = a->first <= b->last && b->first <= a->last;
    const bool in_space = a->offset < b->offset + b->bytes + IFD_TENSOR_PAD &&
                          b->offset < a->offset + a->bytes + IFD_TENSOR_PAD;
    return in_time && in_space && a->bytes > 0 && b->bytes > 0;
}

static void items_alive_together_share_neither_bytes_nor_pads(void)
{
    struct test_random random = {.state = 7};
    for (int round = 0; round < 50; round++) {
        struct ifd_layout_item item[MANY] = {0};
        size_t sum = 0, total = 0;
        for (int i = 0; i < MANY; i++) {
            item[i].first = (uint32_t)test_random_int(&random, 0, 60);
            item[i].last = item[i].first + (uint32_t)test_random_int(&random, 0, 12);
            item[i].bytes = (size_t)test_random_int(&random, 0, 5000);
            sum += item[i].bytes + IFD_TENSOR_ALIGN + IFD_TENSOR_PAD;
        }
        REQUIRE_OK(ifd_lay_out(item, MANY, SIZE_MAX, ifd_alloc_system(), &total, NULL), NULL);
        EXPECT(total <= sum);
        for (int i = 0; i < MANY; i++) {
            EXPECT_INT(item[i].offset % IFD_TENSOR_ALIGN, 0);
            EXPECT(item[i].bytes == 0 || item[i].offset + item[i].bytes + IFD_TENSOR_PAD <= total);
            for (int k = 0; k < i; k++) {
                EXPECT(!overlap(&item[i], &item[k]));
            }
        }
    }
}

static void memory_of_dead_items_is_used_again(void)
{
    struct ifd_layout_item item[] = {
        {.first = 0, .last = 1, .bytes = 1024}, {.first = 1, .last = 2, .bytes = 512},
        {.first = 2, .last = 3, .bytes = 1024}, {.first = 3, .last = 4, .bytes = 512},
        {.first = 4, .last = 5, .bytes = 1024},
    };
    size_t total = 0;
    REQUIRE_OK(ifd_lay_out(item, 5, SIZE_MAX, ifd_alloc_system(), &total, NULL), NULL);
    EXPECT_INT(total, 1024 + 512 + 2 * IFD_TENSOR_PAD);
}

static void the_tightest_gap_is_chosen(void)
{
    /* Placed in a row; at step 5 the first leaves a gap of 2048 bytes and the third one of 512. */
    struct ifd_layout_item item[] = {
        {.first = 0, .last = 1, .bytes = 2048}, {.first = 0, .last = 9, .bytes = 960},
        {.first = 0, .last = 1, .bytes = 512},  {.first = 0, .last = 9, .bytes = 448},
        {.first = 5, .last = 5, .bytes = 400},
    };
    size_t total = 0;
    REQUIRE_OK(ifd_lay_out(item, 5, SIZE_MAX, ifd_alloc_system(), &total, NULL), NULL);
    EXPECT_INT(item[2].offset, 2048 + 960 + 2 * IFD_TENSOR_PAD);
    EXPECT_INT(item[4].offset, item[2].offset);
}

/* A chain of many items, two alive at a time, and as many more that live long. If the search is
 * quadratic in all items, this takes minutes. */
static void many_items_are_packed_in_time(void)
{
    enum { CHAIN = 600000, LONG_LIVED = 2000 };
    const uint32_t count = CHAIN + LONG_LIVED;
    struct ifd_layout_item *item = ifd_acquire_zeroed(ifd_alloc_system(), count, sizeof(*item));
    size_t total = 0;
    REQUIRE(item != NULL);
    for (uint32_t i = 0; i < count; i++) {
        item[i] = (struct ifd_layout_item){.first = i, .last = i + 1, .bytes = 64};
        if (i >= CHAIN) {
            item[i].first = 0;
            item[i].last = CHAIN;
        }
    }
    REQUIRE_OK(ifd_lay_out(item, count, SIZE_MAX, ifd_alloc_system(), &total, NULL), NULL);
    EXPECT_INT(total, (2 + LONG_LIVED) * (64 + IFD_TENSOR_PAD));
    ifd_release(ifd_alloc_system(), item, count * sizeof(*item));
}

static void limit_is_kept_and_named(void)
{
    struct ifd_layout_item item[] = {{.bytes = 1000}, {.bytes = 1000}};
    struct ifd_err err = {0};
    size_t total = 77;
    EXPECT_INT(ifd_lay_out(item, 2, 2047, ifd_alloc_system(), &total, &err), IFD_TOO_LARGE);
    EXPECT_HAS(err.text, "2047");
    EXPECT_INT(total, 77);
    item[0].bytes = SIZE_MAX;
    EXPECT_INT(ifd_lay_out(item, 2, SIZE_MAX, ifd_alloc_system(), &total, &err), IFD_TOO_LARGE);
    item[0].bytes = SIZE_MAX / 64 * 64 - 64;
    EXPECT_INT(ifd_lay_out(item, 2, SIZE_MAX, ifd_alloc_system(), &total, &err), IFD_TOO_LARGE);
}

static void no_memory_is_reported_and_nothing_leaks(void)
{
    for (long k = 1;; k++) {
        struct fail_alloc fail;
        struct ifd_layout_item item[] = {{.bytes = 10}};
        size_t total = 0;
        fail_alloc_init(&fail, k);
        const enum ifd_code code = ifd_lay_out(item, 1, SIZE_MAX, &fail.alloc, &total, NULL);
        fail_alloc_finish(&fail);
        if (!fail.failed) {
            EXPECT_INT(code, IFD_OK);
            break;
        }
        EXPECT_INT(code, IFD_NOMEM);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(items_alive_together_share_neither_bytes_nor_pads),
        T(memory_of_dead_items_is_used_again),
        T(the_tightest_gap_is_chosen),
        T(many_items_are_packed_in_time),
        T(limit_is_kept_and_named),
        T(no_memory_is_reported_and_nothing_leaks),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

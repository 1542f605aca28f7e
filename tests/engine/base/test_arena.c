#include "engine/base/arena.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

#include <stdint.h>
#include <string.h>

static void items_are_zeroed_aligned_and_distinct(void)
{
    struct fail_alloc fail;
    struct ifd_arena arena;
    fail_alloc_init(&fail, 0);
    ifd_arena_init(&arena, &fail.alloc, 0);
    uint8_t *last = NULL;
    for (size_t i = 1; i < 3000; i++) {
        uint8_t *item = ifd_arena_take(&arena, i % 97 + 1);
        REQUIRE(item != NULL && item != last);
        EXPECT_INT((uintptr_t)item % _Alignof(max_align_t), 0);
        EXPECT_INT(item[0], 0);
        EXPECT_INT(item[i % 97], 0);
        memset(item, 0xff, i % 97 + 1);
        last = item;
    }
    uint8_t *tensor = ifd_arena_take_tensor(&arena, 1000000);
    REQUIRE(tensor != NULL);
    EXPECT_INT((uintptr_t)tensor % IFD_TENSOR_ALIGN, 0);
    EXPECT_INT(tensor[1000000 + IFD_TENSOR_PAD - 1], 0);
    memset(tensor, 0xff, 1000000 + IFD_TENSOR_PAD);
    ifd_arena_reset(&arena); /* its block is reused */
    uint8_t *room = ifd_arena_take_room(&arena, 100);
    REQUIRE(room != NULL);
    EXPECT_INT((uintptr_t)room % IFD_TENSOR_ALIGN, 0);
    EXPECT_INT(room[100], 0);
    EXPECT_INT(room[100 + IFD_TENSOR_PAD - 1], 0);
    ifd_arena_finish(&arena);
    fail_alloc_finish(&fail);
}

static void cap_is_kept_and_named(void)
{
    struct ifd_arena arena;
    struct ifd_err err = {0};
    ifd_arena_init(&arena, ifd_alloc_system(), 1000);
    EXPECT(ifd_arena_take(&arena, 900) != NULL);
    EXPECT(ifd_arena_take(&arena, 200) == NULL);
    EXPECT_INT(ifd_arena_fail(&arena, 200, &err), IFD_TOO_LARGE);
    EXPECT_HAS(err.text, "limit of 1000 bytes");
    EXPECT(ifd_arena_take(&arena, 100) != NULL);
    ifd_arena_finish(&arena);
}

static void refused_memory_is_reported_as_such(void)
{
    struct fail_alloc fail;
    struct ifd_arena arena;
    fail_alloc_init(&fail, -1);
    ifd_arena_init(&arena, &fail.alloc, 0);
    EXPECT(ifd_arena_take(&arena, 5) == NULL);
    EXPECT(ifd_arena_take_array(&arena, SIZE_MAX, 2) == NULL);
    EXPECT(ifd_arena_text(&arena, "x", 1) == NULL);
    EXPECT_INT(ifd_arena_fail(&arena, 5, NULL), IFD_NOMEM);
    ifd_arena_finish(&arena);
    fail_alloc_finish(&fail);
}

static void reset_keeps_memory_for_the_next_round(void)
{
    struct fail_alloc fail;
    struct ifd_arena arena;
    fail_alloc_init(&fail, 0);
    ifd_arena_init(&arena, &fail.alloc, 0);
    EXPECT(ifd_arena_take(&arena, 100) != NULL);
    for (int i = 0; i < 3; i++) {
        ifd_arena_reset(&arena);
        EXPECT_INT(arena.used_bytes, 0);
        uint8_t *item = ifd_arena_take(&arena, 100);
        REQUIRE(item != NULL);
        EXPECT_INT(item[99], 0);
        item[99] = 1;
    }
    ifd_arena_finish(&arena);
    fail_alloc_finish(&fail);
}

static void text_is_copied_and_ended(void)
{
    struct ifd_arena arena;
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    EXPECT_TEXT(ifd_arena_text(&arena, "hello world", 5), "hello");
    EXPECT_TEXT(ifd_arena_text(&arena, NULL, 0), "");
    ifd_arena_finish(&arena);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(items_are_zeroed_aligned_and_distinct),
        T(cap_is_kept_and_named),
        T(refused_memory_is_reported_as_such),
        T(reset_keeps_memory_for_the_next_round),
        T(text_is_copied_and_ended),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

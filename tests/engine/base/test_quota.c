#include "engine/base/quota.h"
#include "tests/support/test.h"

static void lends_up_to_the_limit_and_again_what_came_back(void)
{
    struct ifd_quota quota;
    ifd_quota_init(&quota, ifd_alloc_system(), 100, SIZE_MAX);
    void *a = ifd_acquire(&quota.alloc, 60);
    void *b = ifd_acquire(&quota.alloc, 40);
    REQUIRE(a != NULL && b != NULL);
    EXPECT_INT(quota.used_bytes, 100);
    EXPECT(ifd_acquire(&quota.alloc, 1) == NULL);
    EXPECT_INT(quota.refusals, 1);
    EXPECT_INT(quota.used_bytes, 100);
    ifd_release(&quota.alloc, a, 60);
    EXPECT(ifd_acquire(&quota.alloc, 61) == NULL);
    a = ifd_acquire(&quota.alloc, 60);
    EXPECT(a != NULL);
    ifd_release(&quota.alloc, a, 60);
    ifd_release(&quota.alloc, b, 40);
    EXPECT_INT(quota.used_bytes, 0);
}

static void refuses_sizes_that_would_wrap(void)
{
    struct ifd_quota quota;
    ifd_quota_init(&quota, ifd_alloc_system(), SIZE_MAX, SIZE_MAX);
    void *a = ifd_acquire(&quota.alloc, 64);
    REQUIRE(a != NULL);
    EXPECT(ifd_acquire(&quota.alloc, SIZE_MAX - 8) == NULL);
    EXPECT_INT(quota.used_bytes, 64);
    ifd_release(&quota.alloc, a, 64);
}

static void counts_nothing_for_memory_that_the_source_does_not_have(void)
{
    struct ifd_quota outer, inner;
    ifd_quota_init(&outer, ifd_alloc_system(), 10, SIZE_MAX);
    ifd_quota_init(&inner, &outer.alloc, 1000, SIZE_MAX);
    EXPECT(ifd_acquire(&inner.alloc, 11) == NULL);
    EXPECT_INT(inner.used_bytes, 0);
    EXPECT_INT(inner.refusals, 0);
    EXPECT_INT(outer.refusals, 1);
}

static void what_others_hold_counts_as_large(void)
{
    struct ifd_quota quota;
    ifd_quota_init(&quota, ifd_alloc_system(), 80, 80);
    EXPECT(!ifd_quota_hold(&quota, 71));
    REQUIRE(ifd_quota_hold(&quota, 70));
    EXPECT(!ifd_quota_hold(&quota, 1));
    void *small = ifd_acquire(&quota.alloc, 10);
    EXPECT(small != NULL);
    EXPECT_INT(quota.used_bytes, 80);
    EXPECT_INT(quota.refusals, 2);
    ifd_quota_drop(&quota, 70);
    ifd_release(&quota.alloc, small, 10);
    EXPECT_INT(quota.used_bytes, 0);
}

static void last_eighth_is_for_small_pieces(void)
{
    struct ifd_quota quota;
    ifd_quota_init(&quota, ifd_alloc_system(), 80, 8);
    void *a = ifd_acquire(&quota.alloc, 70);
    REQUIRE(a != NULL);
    EXPECT(ifd_acquire(&quota.alloc, 9) == NULL);
    void *b = ifd_acquire(&quota.alloc, 8);
    EXPECT(b != NULL);
    EXPECT(ifd_acquire(&quota.alloc, 3) == NULL);
    EXPECT_INT(quota.used_bytes, 78);
    ifd_release(&quota.alloc, a, 70);
    ifd_release(&quota.alloc, b, 8);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(lends_up_to_the_limit_and_again_what_came_back),
        T(what_others_hold_counts_as_large),
        T(last_eighth_is_for_small_pieces),
        T(refuses_sizes_that_would_wrap),
        T(counts_nothing_for_memory_that_the_source_does_not_have),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

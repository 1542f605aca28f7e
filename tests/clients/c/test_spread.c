/* Percentiles of known values. */
#include "spread.h"

#include "tests/support/test.h"

static void small_values_are_exact(void)
{
    static struct ifd_spread spread;
    for (uint64_t ns = 1; ns <= 100; ns++) {
        ifd_spread_add(&spread, ns);
    }
    EXPECT_INT(spread.count, 100);
    EXPECT_INT(spread.sum_ns, 5050);
    EXPECT_INT(ifd_spread_at(&spread, 0.5), 50);
    EXPECT_INT(ifd_spread_at(&spread, 0.99), 99);
    EXPECT_INT(ifd_spread_at(&spread, 0.999), 100);
    EXPECT_INT(ifd_spread_at(&spread, 0), 1);
    EXPECT_INT(ifd_spread_at(&spread, 1), 100);
}

static void large_values_are_at_most_one_percent_too_large(void)
{
    for (unsigned bit = 0; bit < 64; bit++) {
        for (unsigned thirds = 2; thirds <= 5; thirds++) {
            static struct ifd_spread spread;
            const uint64_t ns = ((uint64_t)1 << bit) / 4 * thirds + 1;
            spread = (struct ifd_spread){0};
            ifd_spread_add(&spread, ns);
            ifd_spread_add(&spread, UINT64_MAX);
            const uint64_t got = ifd_spread_at(&spread, 0.5);
            EXPECT(got >= ns && got - ns <= ns / 100);
        }
    }
}

static void two_spreads_become_one(void)
{
    static struct ifd_spread a, b;
    ifd_spread_add(&a, 10);
    ifd_spread_add(&b, 30);
    ifd_spread_add(&b, 20);
    ifd_spread_merge(&a, &b);
    EXPECT_INT(a.count, 3);
    EXPECT_INT(a.sum_ns, 60);
    EXPECT_INT(a.max_ns, 30);
    EXPECT_INT(ifd_spread_at(&a, 0.5), 20);
}

static void nothing_has_no_percentile(void)
{
    static const struct ifd_spread spread;
    EXPECT_INT(ifd_spread_at(&spread, 0.5), 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(small_values_are_exact),
        T(large_values_are_at_most_one_percent_too_large),
        T(two_spreads_become_one),
        T(nothing_has_no_percentile),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

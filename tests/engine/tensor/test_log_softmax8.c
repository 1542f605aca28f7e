/* Logarithms of softmax in integers beside those of doubles. */
#include "engine/tensor/log_softmax8.h"
#include "tests/support/test.h"

#include <math.h>

#define DEPTH 300
#define MOST  1024 /* steps that are told apart */

static void expect_near(double scale, double step, uint32_t seed)
{
    struct ifd_log_softmax8 table;
    int32_t distance[DEPTH];
    uint64_t sum = 0;
    double real = 0;
    ifd_log_softmax8_init(&table, scale, step);
    for (uint32_t i = 0; i < DEPTH; i++) {
        distance[i] = i == 0 ? 0 : (int32_t)((i + seed) * 2654435761u >> 24);
        sum += table.exponential[distance[i]];
        real += exp(-distance[i] * scale);
    }
    const int32_t log_sum = ifd_log_softmax8_log(&table, sum);
    for (uint32_t i = 0; i < DEPTH; i++) {
        const double want = (distance[i] * scale + log(real)) / step;
        const int32_t got = ifd_log_softmax8_steps(&table, log_sum, distance[i]);
        EXPECT(want >= MOST ? got >= MOST : fabs(got - want) <= 0.5 + 1e-3);
    }
}

static void results_are_rounded_to_the_nearest_step(void)
{
    static const double scale[] = {1e-9, 1e-3, 0.0625, 0.7, 12, 1e30};
    for (uint32_t i = 0; i < 36; i++) {
        expect_near(scale[i / 6], scale[i % 6], i);
    }
    expect_near(0.1, 1e-310, 0); /* more steps than a double holds */
}

/* No rounding: the logarithm of 1 is 0, of 2^n it is n. */
static void powers_of_two_have_logarithms_without_rest(void)
{
    struct ifd_log_softmax8 table;
    ifd_log_softmax8_init(&table, 1, log(2));
    for (int n = 0; n < 33; n++) {
        EXPECT_INT(ifd_log_softmax8_log(&table, UINT64_C(1) << (30 + n)), (int64_t)n << 16);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(results_are_rounded_to_the_nearest_step),
        T(powers_of_two_have_logarithms_without_rest),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

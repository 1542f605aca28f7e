#include "engine/base/cpu.h"
#include "engine/base/peak.h"
#include "inferd/machine.h"
#include "tests/support/test.h"

/* Runs every instruction that this CPU has, and no other. */
static void every_set_of_features_has_a_peak_or_none(void)
{
    struct ifd_cpu cpu;
    ifd_cpu_detect(&cpu);
    EXPECT(ifd_peak_f32(0) == 0.0 && ifd_peak_q8(0) == 0.0);
    const uint32_t all = cpu.flags;
    const bool has_f32 = all & (IFD_CPU_AVX2 | IFD_CPU_NEON) && sizeof(void *) == 8;
    EXPECT((ifd_peak_f32(all) > 0.0) == has_f32);
    for (uint32_t bit = 0; bit < 32; bit++) {
        const uint32_t some = all & ((2u << bit) - 1);
        EXPECT(ifd_peak_f32(some) >= 0.0);
        EXPECT(ifd_peak_q8(some) >= 0.0);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(every_set_of_features_has_a_peak_or_none),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

#include "engine/base/cpu.h"
#include "tests/support/test.h"

#include <string.h>

static void detection_gives_at_least_one_core(void)
{
    struct ifd_cpu cpu;
    ifd_cpu_detect(&cpu);
    EXPECT(cpu.cores >= 1);
#if defined(__x86_64__)
    EXPECT((cpu.flags & IFD_CPU_NEON) == 0);
    EXPECT(!(cpu.flags & IFD_CPU_AVX512_VNNI) || (cpu.flags & IFD_CPU_AVX512));
    EXPECT(!(cpu.flags & IFD_CPU_AVX512) || (cpu.flags & IFD_CPU_AVX2));
#endif
}

static void names_and_flags_go_both_ways(void)
{
    char text[256];
    ifd_cpu_text(0, text, sizeof(text));
    EXPECT_TEXT(text, "none");
    ifd_cpu_text(IFD_CPU_AVX2 | IFD_CPU_DOTPROD, text, sizeof(text));
    EXPECT_TEXT(text, "avx2 dotprod");
    EXPECT_INT(ifd_cpu_flag_by_name("i8mm", 4), IFD_CPU_I8MM);
    EXPECT_INT(ifd_cpu_flag_by_name("i8m", 3), 0);
    ifd_cpu_text(UINT32_MAX, text, 8);
    EXPECT(strlen(text) < 8);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(detection_gives_at_least_one_core),
        T(names_and_flags_go_both_ways),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

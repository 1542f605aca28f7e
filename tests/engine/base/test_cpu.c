#include "engine/base/cpu.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void detection_gives_at_least_one_core(void)
{
    struct ifd_cpu cpu;
    ifd_cpu_detect(&cpu);
    EXPECT(cpu.cores >= 1);
#if defined(__x86_64__)
    EXPECT((cpu.flags & IFD_CPU_NEON) == 0);
    const uint32_t beyond = IFD_CPU_AVX512_VNNI | IFD_CPU_AVX512_VBMI | IFD_CPU_AVX512_BF16;
    EXPECT(!(cpu.flags & beyond) || (cpu.flags & IFD_CPU_AVX512));
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

/* The folder of a Raspberry Pi 5, with deliberate errors. */
static void caches_are_read_from_the_folder_of_a_core(void)
{
    static const char *const index[][4] = {
        {"index0", "1\n", "Data\n", "64K\n"},          {"index1", "1\n", "Instruction\n", "48K\n"},
        {"index2", "2\n", "Unified\n", "512K\n"},      {"index3", "3\n", "Unified\n", "2M\n"},
        {"index4", "4\n", "Unified\n", "99999999M\n"}, {"index5", "5\n", "Unified\n", "much\n"},
        {"index6", "6\n", "Instruction\n", "8K\n"},
    };
    static const char *const file[] = {"", "/level", "/type", "/size"};
    const size_t count = sizeof(index) / sizeof(index[0]);
    char name[32];
    folder_begin();
    EXPECT_INT(ifd_cpu_cache_bytes(folder_path(), 1), 0);
    for (size_t i = 0; i < count; i++) {
        REQUIRE(mkdir(folder_at(index[i][0]), 0700) == 0);
        for (size_t k = 1; k < 4; k++) {
            (void)snprintf(name, sizeof(name), "%s%s", index[i][0], file[k]);
            folder_put(name, index[i][k]);
        }
    }
    static const size_t want[] = {0, 64 << 10, 512 << 10, 2 << 20, 0, 0, 0, 0};
    for (unsigned level = 0; level < sizeof(want) / sizeof(want[0]); level++) {
        EXPECT_INT(ifd_cpu_cache_bytes(folder_path(), level), want[level]);
    }
    EXPECT(unlink(folder_at("index2/size")) == 0); /* firmware did not report the size */
    EXPECT_INT(ifd_cpu_cache_bytes(folder_path(), 2), 0);
    folder_put("index2/size", "512K");
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 1; k < 4; k++) {
            (void)snprintf(name, sizeof(name), "%s%s", index[i][0], file[k]);
            EXPECT(unlink(folder_at(name)) == 0);
        }
        EXPECT(rmdir(folder_at(index[i][0])) == 0);
    }
    folder_end();
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(detection_gives_at_least_one_core),
        T(names_and_flags_go_both_ways),
        T(caches_are_read_from_the_folder_of_a_core),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

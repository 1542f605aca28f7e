/* Every good model of the fuzzer's corpus runs, so that the fuzzer, which starts from them,
 * reaches the kernels. Other tests judge the results (tests/ops, tests/golden). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/builtin.h"
#include "tests/support/model_file.h"
#include "tests/support/parse_file.h"

static void load_and_run(const char *path, const char *name)
{
    struct model_file_options reference = {0}, preferred = {0};
    preferred.engine.backends = ifd_backends_builtin(&preferred.engine.backend_count);
    const struct model_file_options *const options[] = {&reference, &preferred};
    struct model_file f;
    model_file_read(&f, path);
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        enum ifd_code code = model_file_open(&f, options[i]);
        if (code == IFD_OK) {
            model_file_fill(&f);
            code = model_file_run(&f);
        }
        if (code != IFD_OK) {
            printf("     %s\n", name);
        }
        EXPECT_CODE(code, IFD_OK, &f.err);
        model_file_close(&f);
        fail_alloc_init(&f.fail, 0);
    }
    model_file_forget(&f);
}

static void good_models_run_on_the_reference_and_on_the_preferred_backend(void)
{
    parse_each_file(test_source("tests/fuzz/corpus/tflite"), "good_", load_and_run);
}

/* No engine that computes on a CPU has it: StableHLO's specification says what it is. */
static void stablehlo_clamp_is_between_its_bounds(void)
{
    static const float x[] = {-2, 3, 1.5f, 9, -INFINITY, INFINITY}; /* highest: 0 to 5 */
    static const float want[] = {-1, 1, 1.5f, 3, -1, 5};
    struct model_file f;
    model_file_begin(&f, test_source("tests/fuzz/corpus/tflite/good_hlo_clamp.tflite"), NULL);
    model_file_fill(&f);
    REQUIRE(f.in[0].bytes == sizeof(x));
    memcpy(f.in[0].data, x, sizeof(x));
    REQUIRE_OK(model_file_run(&f), &f.err);
    REQUIRE(f.out[0].bytes == sizeof(want));
    for (size_t i = 0; i < 6; i++) {
        EXPECT_CLOSE(((const float *)f.out[0].data)[i], want[i], 0);
    }
    model_file_end(&f);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(good_models_run_on_the_reference_and_on_the_preferred_backend),
        T(stablehlo_clamp_is_between_its_bounds),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

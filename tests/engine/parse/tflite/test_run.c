/* Every good model of the fuzzer's corpus runs, so that the fuzzer, which starts from them,
 * reaches the kernels. Other tests judge the results (tests/ops, tests/golden). */
#include <stdio.h>

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

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(good_models_run_on_the_reference_and_on_the_preferred_backend),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

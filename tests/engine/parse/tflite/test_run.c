/* Every good model of the fuzzer's corpus runs, so that the fuzzer, which starts from them,
 * reaches the kernels. Other tests judge the results (tests/ops, tests/golden). */
#include <stdio.h>

#include "backends/builtin.h"
#include "engine/base/file.h"
#include "inferd/engine.h"
#include "tests/support/parse_file.h"
#include "tests/support/test.h"

#define PORTS 8
#define BYTES 4096

static void run(struct ifd_model *model)
{
    static _Alignas(IFD_TENSOR_ALIGN) uint8_t zeros[BYTES + IFD_TENSOR_PAD];
    struct ifd_tensor input[PORTS] = {0};
    struct ifd_tensor output[PORTS] = {0};
    struct ifd_instance *instance = NULL;
    struct ifd_err err = {0};
    const struct ifd_model_info *info = ifd_model_info(model);
    REQUIRE(info->input_count <= PORTS && info->output_count <= PORTS);
    for (uint32_t i = 0; i < info->input_count; i++) {
        const struct ifd_desc *desc = &info->input[i].desc;
        size_t bytes = ifd_dtype_bytes(desc->dtype);
        for (uint32_t d = 0; d < desc->shape.rank; d++) {
            bytes *= (size_t)info->input[i].example.dim[d];
        }
        REQUIRE(bytes <= BYTES);
        input[i] = (struct ifd_tensor){.dtype = desc->dtype,
                                       .shape = info->input[i].example,
                                       .data = zeros,
                                       .bytes = bytes,
                                       .capacity = sizeof(zeros)};
    }
    REQUIRE_OK(
        ifd_instance_create(model, &(struct ifd_instance_options){.threads = 1}, &instance, &err),
        &err);
    const struct ifd_io io = {.input = input, .output = output, .batch = 1};
    EXPECT_CODE(ifd_instance_run(instance, &io, 1, &err), IFD_OK, &err);
    ifd_instance_destroy(instance);
}

static void load_and_run(const char *path, const char *name)
{
    static const char *const reference[] = {"CpuRef"};
    const struct ifd_model_options options[] = {{.backends = reference, .backend_count = 1}, {0}};
    struct ifd_engine_options engine_options = {.alloc = ifd_alloc_system()};
    engine_options.backends = ifd_backends_builtin(&engine_options.backend_count);
    struct ifd_engine *engine = NULL;
    struct ifd_err err = {0};
    struct ifd_bytes file;
    REQUIRE_OK(ifd_engine_create(&engine_options, &engine, &err), &err);
    REQUIRE_OK(ifd_file_read(path, 1 << 20, ifd_alloc_system(), &file, &err), &err);
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        struct ifd_model *model = NULL;
        enum ifd_code code = ifd_model_load(engine, file, &options[i], &model, &err);
        if (code != IFD_OK) {
            printf("     %s\n", name);
        }
        EXPECT_CODE(code, IFD_OK, &err);
        if (code == IFD_OK) {
            run(model);
            ifd_model_destroy(model);
        }
    }
    ifd_release_tensor(ifd_alloc_system(), (void *)file.data, file.size);
    ifd_engine_destroy(engine);
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

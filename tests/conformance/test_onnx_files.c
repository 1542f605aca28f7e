/* The models beside this file (onnx/NAME.onnx, written by make_onnx_files.py) through the product's
 * own loader, on the backend named on the command line: each holds inputs and the answers of ONNX
 * Runtime as constants "given:NAME" and "wanted:NAME". Whole numbers are equal on CpuRef, and on
 * CpuAcc on x86; elsewhere they may be a step off. A second argument runs the models whose names
 * begin so. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/builtin.h"
#include "engine/base/arena.h"
#include "engine/base/file.h"
#include "engine/parse/onnx/onnx_reader.h"
#include "inferd/engine.h"
#include "tests/support/test.h"

#define PORTS_MAX  8
#define RELATIVE   1e-5 /* of the largest number of an output */
#define FILE_BYTES ((size_t)1 << 20)

static const struct ifd_limits limits = {.nodes = 100, .values = 400, .node_inputs = 20};

struct answers {
    struct ifd_bytes file;
    struct ifd_arena arena;
    struct ifd_onnx_model model;
};

/* Content of constant "kind:name"; it stays in the file, texts in the arena. */
static struct ifd_bytes find(const struct answers *a, const char *kind, const char *name)
{
    const struct ifd_onnx_graph *g = &a->model.graph;
    char text[256];
    const int size = snprintf(text, sizeof(text), "%s:%s", kind, name);
    for (uint32_t i = 0; i < g->initializer_count; i++) {
        const struct ifd_onnx_tensor *t = &g->initializer[i];
        if (t->name.size == (size_t)size && memcmp(t->name.data, text, t->name.size) == 0) {
            REQUIRE(t->has_raw || t->text_count > 0);
            return t->has_raw ? t->raw
                              : (struct ifd_bytes){.data = (const uint8_t *)t->text,
                                                   .size = t->text_count * sizeof(*t->text)};
        }
    }
    printf("there is no %s\n", text);
    REQUIRE(false);
    return (struct ifd_bytes){0};
}

static double number_at(const struct ifd_tensor *t, const void *data, size_t i)
{
    switch ((int)t->dtype) {
    case IFD_F32:
        return (double)((const float *)data)[i];
    case IFD_S32:
        return ((const int32_t *)data)[i];
    case IFD_S64:
        return (double)((const int64_t *)data)[i];
    case IFD_U64:
        return (double)((const uint64_t *)data)[i];
    case IFD_U32:
        return ((const uint32_t *)data)[i];
    case IFD_S16:
        return ((const int16_t *)data)[i];
    case IFD_S8:
        return ((const int8_t *)data)[i];
    case IFD_U8:
    case IFD_BOOL:
        return ((const uint8_t *)data)[i];
    default:
        return NAN;
    }
}

static bool same_text(struct ifd_str a, struct ifd_str b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* By how much the worst number is off, and what may be; texts are equal. */
static void judge(const char *name, const char *backend, const struct ifd_tensor *got,
                  struct ifd_bytes want)
{
    double worst = 0, largest = 0;
    uint8_t *copy = malloc(want.size); /* the file's is not aligned */
    REQUIRE(copy && want.size == got->bytes);
    memcpy(copy, want.data, want.size);
    for (size_t i = 0; i < want.size / ifd_dtype_bytes(got->dtype); i++) {
        if (got->dtype == IFD_STR) {
            EXPECT(same_text(((const struct ifd_str *)got->data)[i],
                             ((const struct ifd_str *)(const void *)copy)[i]));
            continue;
        }
        const double x = number_at(got, got->data, i), y = number_at(got, copy, i);
        worst = isnan(x) || isnan(y) ? INFINITY : fmax(worst, fabs(x - y));
        largest = fmax(largest, fabs(y));
    }
    free(copy);
    double allowed = got->dtype == IFD_F32 ? RELATIVE * largest : 0;
#if !defined(__x86_64__)
    allowed = got->dtype != IFD_F32 && strcmp(backend, "CpuAcc") == 0 ? 2 : allowed;
#endif
    if (!(worst <= allowed)) {
        printf("%s on %s: off by %g, allowed %g\n", name, backend, worst, allowed);
    }
    EXPECT(worst <= allowed);
}

static void run(const char *name, const char *backend, const struct answers *a,
                struct ifd_model *model)
{
    const struct ifd_model_info *info = ifd_model_info(model);
    struct ifd_tensor in[PORTS_MAX], got[PORTS_MAX] = {{0}};
    struct ifd_instance *instance = NULL;
    struct ifd_err err = {0};
    REQUIRE(info->input_count <= PORTS_MAX && info->output_count <= PORTS_MAX);
    for (uint32_t i = 0; i < info->input_count; i++) {
        const struct ifd_bytes given = find(a, "given", info->input[i].name);
        void *data = ifd_acquire_tensor(ifd_alloc_system(), given.size);
        REQUIRE(data);
        memcpy(data, given.data, given.size);
        in[i] = (struct ifd_tensor){.dtype = info->input[i].desc.dtype,
                                    .shape = info->input[i].desc.shape,
                                    .data = data,
                                    .bytes = given.size,
                                    .capacity = given.size + IFD_TENSOR_PAD};
    }
    int64_t batch = 1;
    for (uint32_t i = 0; i < info->input_count; i++) {
        batch = info->input[i].batched ? in[i].shape.dim[0] : batch;
    }
    const struct ifd_instance_options options = {.threads = 1, .max_batch = (uint32_t)batch};
    struct ifd_io io = {.input = in, .output = got, .batch = batch};
    enum ifd_code code = ifd_instance_create(model, &options, &instance, &err);
    code = code == IFD_OK ? ifd_instance_run(instance, &io, 1, &err) : code;
    EXPECT_CODE(code, IFD_OK, &err);
    for (uint32_t i = 0; code == IFD_OK && i < 2 * info->output_count; i++) {
        if (i == info->output_count) { /* a second run finds the plans of the first */
            code = ifd_instance_run(instance, &io, 1, &err);
            EXPECT_CODE(code, IFD_OK, &err);
        }
        const uint32_t o = i % info->output_count;
        judge(name, backend, &got[o], find(a, "wanted", info->output[o].name));
    }
    ifd_instance_destroy(instance);
    for (uint32_t i = 0; i < info->input_count; i++) {
        ifd_release_tensor(ifd_alloc_system(), in[i].data, in[i].bytes);
    }
}

static void take_model(struct ifd_engine *engine, const char *backend, const char *name)
{
    struct answers a;
    struct ifd_err err = {0};
    struct ifd_model *model = NULL;
    char path[512];
    const char *backends[] = {backend, "CpuRef"};
    const struct ifd_model_options options = {.backends = backends, .backend_count = 2};
    (void)snprintf(path, sizeof(path), "tests/conformance/onnx/%s", name);
    REQUIRE(ifd_file_read(test_source(path), FILE_BYTES, ifd_alloc_system(), &a.file, &err) ==
            IFD_OK);
    ifd_arena_init(&a.arena, ifd_alloc_system(), 16 * FILE_BYTES);
    REQUIRE(ifd_onnx_read(a.file, NULL, &limits, &a.arena, &a.model, &err) == IFD_OK);
    const enum ifd_code code = ifd_model_load(engine, a.file, &options, &model, &err);
    if (code != IFD_OK) {
        printf("%s: %s\n", name, err.text);
    }
    EXPECT(code == IFD_OK);
    if (code == IFD_OK) {
        run(name, backend, &a, model);
    }
    ifd_model_destroy(model);
    ifd_arena_finish(&a.arena);
    ifd_release_tensor(ifd_alloc_system(), (void *)(uintptr_t)a.file.data, a.file.size);
}

static void answers_are_those_of_onnx_runtime(void)
{
    const char *backend = test_arg(0), *prefix = test_arg(1) ? test_arg(1) : "";
    struct ifd_engine_options options = {0};
    struct ifd_engine *engine = NULL;
    struct dirent **entry = NULL;
    REQUIRE(backend);
    const int count = scandir(test_source("tests/conformance/onnx"), &entry, NULL, alphasort);
    options.backends = ifd_backends_builtin(&options.backend_count);
    REQUIRE(ifd_engine_create(&options, &engine, NULL) == IFD_OK);
    int models = 0;
    for (int i = 0; i < count; i++) {
        const char *name = entry[i]->d_name;
        if (strstr(name, ".onnx") && strncmp(name, prefix, strlen(prefix)) == 0) {
            take_model(engine, backend, name);
            models++;
        }
        free(entry[i]);
    }
    free(entry);
    ifd_engine_destroy(engine);
    printf("%s: %d models\n", backend, models);
    EXPECT(models > 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {T(answers_are_those_of_onnx_runtime)};
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

#include "backends/builtin.h"
#include "engine/base/cpu.h"
#include "engine/base/file.h"
#include "inferd/engine.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PORTS 16

static struct ifd_bytes read_file(const char *path)
{
    struct ifd_bytes file = {0};
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_file_read(path, INT32_MAX, ifd_alloc_system(), &file, &err), &err);
    return file;
}

static void free_file(struct ifd_bytes file)
{
    ifd_release_tensor(ifd_alloc_system(), (void *)file.data, file.size);
}

static size_t bytes_of(const struct ifd_port *port, int64_t batch)
{
    size_t bytes = ifd_dtype_bytes(port->desc.dtype);
    for (uint32_t i = 0; i < port->desc.shape.rank; i++) {
        bytes *= (size_t)(port->batched && i == 0 ? batch : port->desc.shape.dim[i]);
    }
    return bytes;
}

static struct ifd_tensor make_input(const struct ifd_port *port, int64_t batch,
                                    struct test_random *random)
{
    struct ifd_tensor tensor = {
        .dtype = port->desc.dtype, .shape = port->desc.shape, .bytes = bytes_of(port, batch)};
    if (port->batched) {
        tensor.shape.dim[0] = batch;
    }
    tensor.capacity = tensor.bytes;
    tensor.data = calloc(tensor.bytes + 1, 1);
    REQUIRE(tensor.data != NULL);
    const bool is_f32 = tensor.dtype == IFD_F32; /* numbers: which NaN comes out is no promise */
    for (size_t i = 0; random && i < (is_f32 ? tensor.bytes / sizeof(float) : tensor.bytes); i++) {
        if (is_f32) {
            ((float *)tensor.data)[i] = test_random_f32(random, -1, 1);
        } else {
            ((uint8_t *)tensor.data)[i] = (uint8_t)test_random_u64(random);
        }
    }
    return tensor;
}

/* Loads a file, makes an instance for two samples if the model has a batch, runs zeros. backend:
 * NULL: the engine's order. */
static enum ifd_code load_and_run(struct ifd_bytes file, const char *backend,
                                  const struct ifd_alloc *alloc, struct ifd_err *err)
{
    struct ifd_engine_options options = {.alloc = alloc};
    const struct ifd_model_options model_options = {.backends = backend ? &backend : NULL,
                                                    .backend_count = backend ? 1 : 0};
    struct ifd_engine *engine = NULL;
    struct ifd_model *model = NULL;
    struct ifd_instance *instance = NULL;
    options.backends = ifd_backends_builtin(&options.backend_count);
    enum ifd_code code = ifd_engine_create(&options, &engine, err);
    if (code == IFD_OK) {
        code = ifd_model_load(engine, file, &model_options, &model, err);
    }
    const struct ifd_model_info *info = model ? ifd_model_info(model) : NULL;
    const int64_t batch = info && info->input_count > 0 && info->input[0].batched ? 2 : 1;
    if (code == IFD_OK && (info->input_count > PORTS || info->output_count > PORTS)) {
        code = ifd_fail(err, IFD_UNSUPPORTED, "too many ports for this test");
    }
    if (code == IFD_OK) {
        code = ifd_instance_create(
            model, &(struct ifd_instance_options){.max_batch = (uint32_t)batch}, &instance, err);
    }
    if (code == IFD_OK) {
        struct ifd_tensor in[PORTS] = {0}, out[PORTS] = {0};
        for (uint32_t i = 0; i < info->input_count; i++) {
            in[i] = make_input(&info->input[i], batch, NULL);
        }
        code = ifd_instance_run(
            instance, &(struct ifd_io){.input = in, .output = out, .batch = batch}, 1, err);
        for (uint32_t i = 0; i < info->input_count; i++) {
            free(in[i].data);
        }
    }
    ifd_instance_destroy(instance);
    ifd_model_destroy(model);
    ifd_engine_destroy(engine);
    return code;
}

/* The k-th allocation fails, k = 1, 2, …, alone or with all that follow it. is_strict: each of them
 * is needed. */
static void torture(const char *backend, bool is_strict, bool goes_on)
{
    const struct ifd_bytes file = read_file(test_source("models/digits/1/model.tflite"));
    for (long k = 1;; k++) {
        struct fail_alloc fail;
        struct ifd_err err = {0};
        fail_alloc_init(&fail, k);
        atomic_store(&fail.goes_on, goes_on);
        const enum ifd_code code = load_and_run(file, backend, &fail.alloc, &err);
        fail_alloc_finish(&fail);
        if (!fail.failed) {
            EXPECT_CODE(code, IFD_OK, &err);
            break;
        }
        if (is_strict || code != IFD_OK) {
            EXPECT_CODE(code, IFD_NOMEM, &err);
        }
    }
    free_file(file);
}

static void every_failing_allocation_of_a_load_is_reported(void)
{
    torture("CpuRef", true, false);
    torture("CpuRef", true, true);
}

/* Other backends go on without some of their memory (names of steps). */
static void failing_allocations_leak_nothing_in_any_backend(void)
{
    torture(NULL, false, false);
    torture(NULL, false, true);
}

/* Every size up to 20: sizes with a plan, and sizes that take several runs. */
static void a_batch_gives_what_its_samples_give(void)
{
    const struct ifd_bytes file = read_file(test_source("models/digits/1/model.tflite"));
    struct ifd_engine_options options = {0};
    struct ifd_engine *engine = NULL;
    struct ifd_model *model = NULL;
    struct ifd_instance *instance = NULL;
    struct ifd_err err = {0};
    struct test_random random = {.state = 3};
    options.backends = ifd_backends_builtin(&options.backend_count);
    REQUIRE_OK(ifd_engine_create(&options, &engine, &err), &err);
    REQUIRE_OK(ifd_model_load(engine, file, &(struct ifd_model_options){0}, &model, &err), &err);
    REQUIRE_OK(ifd_instance_create(model, &(struct ifd_instance_options){.max_batch = 20},
                                   &instance, &err),
               &err);
    const struct ifd_model_info *info = ifd_model_info(model);
    EXPECT(info->batch_is_free);
    const size_t in_bytes = bytes_of(&info->input[0], 1), out_bytes = bytes_of(&info->output[0], 1);
    for (int64_t batch = 1; batch <= 20; batch++) {
        struct ifd_tensor in = make_input(&info->input[0], batch, &random), out = {0};
        uint8_t *want = calloc((size_t)batch, out_bytes);
        REQUIRE(want != NULL);
        for (int64_t s = 0; s < batch; s++) {
            struct ifd_tensor one = make_input(&info->input[0], 1, NULL), result = {0};
            memcpy(one.data, (uint8_t *)in.data + (size_t)s * in_bytes, in_bytes);
            REQUIRE_OK(ifd_instance_run(
                           instance, &(struct ifd_io){.input = &one, .output = &result, .batch = 1},
                           1, &err),
                       &err);
            memcpy(want + (size_t)s * out_bytes, result.data, out_bytes);
            free(one.data);
        }
        REQUIRE_OK(ifd_instance_run(instance,
                                    &(struct ifd_io){.input = &in, .output = &out, .batch = batch},
                                    1, &err),
                   &err);
        EXPECT_BYTES(out.data, want, (size_t)batch * out_bytes);
        free(want);
        free(in.data);
    }
    ifd_instance_destroy(instance);
    ifd_model_destroy(model);
    ifd_engine_destroy(engine);
    free_file(file);
}

/* Options of a run, and its results. */
struct trial {
    const char *path;
    bool releases_weights, exact;
    int64_t batch;
    uint32_t threads; /* 0: one */
    const char *cache_folder;
    uint32_t cpu_mask;

    size_t size, released_bytes;
    bool is_from_cache;
    char cache[IFD_ERR_TEXT_BYTES];
};

/* Reads the file, runs a batch of random samples and returns the content of the outputs. */
static uint8_t *run_random(struct trial *trial)
{
    const char *path = trial->path;
    const int64_t batch = trial->batch;
    const struct ifd_bytes file = read_file(path);
    struct ifd_engine_options options = {.cache_folder = trial->cache_folder,
                                         .exact = trial->exact,
                                         .cores = 16,
                                         .cpu_mask = trial->cpu_mask};
    struct ifd_engine *engine = NULL;
    struct ifd_model *model = NULL;
    struct ifd_instance *instance = NULL;
    struct ifd_err err = {0};
    struct test_random random = {.state = 5};
    const struct ifd_model_options wish = {.releases_weights = trial->releases_weights,
                                           .max_threads = trial->threads};
    const struct ifd_instance_options many = {.max_batch = (uint32_t)batch,
                                              .threads = trial->threads};
    options.backends = ifd_backends_builtin(&options.backend_count);
    REQUIRE_OK(ifd_engine_create(&options, &engine, &err), &err);
    REQUIRE_OK(ifd_model_load(engine, file, &wish, &model, &err), &err);
    REQUIRE_OK(ifd_instance_create(model, &many, &instance, &err), &err);
    const struct ifd_model_info *info = ifd_model_info(model);
    struct ifd_tensor in = make_input(&info->input[0], batch, &random), out[PORTS] = {0};
    const struct ifd_io io = {.input = &in, .output = out, .batch = batch};
    REQUIRE(info->input_count == 1 && info->output_count <= PORTS);
    REQUIRE_OK(ifd_instance_run(instance, &io, 1, &err), &err);
    trial->size = 0;
    uint8_t *result = NULL;
    for (uint32_t i = 0; i < info->output_count; i++) {
        result = realloc(result, trial->size + out[i].bytes);
        REQUIRE(result != NULL);
        memcpy(result + trial->size, out[i].data, out[i].bytes);
        trial->size += out[i].bytes;
    }
    trial->released_bytes = info->released_bytes;
    trial->is_from_cache = info->is_from_cache;
    (void)snprintf(trial->cache, sizeof(trial->cache), "%s", info->cache);
    free(in.data);
    ifd_instance_destroy(instance);
    ifd_model_destroy(model);
    ifd_engine_destroy(engine);
    free_file(file);
    return result;
}

static bool has_cpuacc(void)
{
    uint32_t count = 0;
    return strcmp(ifd_backends_builtin(&count)[0]->name, "CpuAcc") == 0;
}

/* Empties and removes. */
static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    REQUIRE(folder != NULL);
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        (void)unlinkat(dirfd(folder), entry->d_name, 0);
    }
    (void)closedir(folder);
    EXPECT_INT(rmdir(path), 0);
}

/* A defect of the files of packed weights in a folder, and the note of the next start. */
struct harm {
    void (*happen)(int folder, const char *name);
    const char *note;
    bool stays; /* the next start cannot write there, either */
};

static void for_each_file(const char *path, void (*happen)(int folder, const char *name))
{
    DIR *folder = opendir(path);
    REQUIRE(folder != NULL);
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (strlen(entry->d_name) == 16) {
            happen(dirfd(folder), entry->d_name);
        }
    }
    (void)closedir(folder);
}

static int open_file(int folder, const char *name)
{
    const int fd = openat(folder, name, O_WRONLY);
    REQUIRE(fd >= 0);
    return fd;
}

static void change(int folder, const char *name)
{
    const int fd = open_file(folder, name);
    EXPECT_INT(pwrite(fd, "spoilt", 6, 20000), 6);
    (void)close(fd);
}

static void shorten(int folder, const char *name)
{
    const int fd = open_file(folder, name);
    EXPECT_INT(ftruncate(fd, 20000), 0);
    (void)close(fd);
}

static void empty(int folder, const char *name)
{
    const int fd = open_file(folder, name);
    EXPECT_INT(ftruncate(fd, 0), 0);
    (void)close(fd);
}

static void replace_by_link(int folder, const char *name)
{
    EXPECT_INT(unlinkat(folder, name, 0), 0);
    EXPECT_INT(symlinkat("/dev/zero", folder, name), 0);
}

static void replace_by_folder(int folder, const char *name)
{
    EXPECT_INT(unlinkat(folder, name, 0), 0);
    EXPECT_INT(mkdirat(folder, name, 0700), 0);
}

static void remove_subfolder(int folder, const char *name)
{
    EXPECT_INT(unlinkat(folder, name, AT_REMOVEDIR), 0);
}

/* To a name that no model has, and from there in place of another file. */
static void set_aside(int folder, const char *name)
{
    EXPECT_INT(renameat(folder, name, folder, "aside"), 0);
}

static void replace_by_other(int folder, const char *name)
{
    EXPECT_INT(renameat(folder, "aside", folder, name), 0);
}

static void run_cached(struct trial *trial, const uint8_t *want, bool from_cache, const char *note)
{
    uint8_t *got = run_random(trial);
    EXPECT_BYTES(got, want, trial->size);
    EXPECT_INT(trial->is_from_cache, from_cache);
    EXPECT_HAS(trial->cache, note);
    free(got);
}

/* The second start packs nothing; a defect of the folder is a note; results never change. */
static void packed_weights_of_an_earlier_start_give_the_same_results(void)
{
    static const char *const models[] = {"models/tflite/mobilenet_v1_0.25_128_quant.tflite",
                                         "models/tflite/face_detection_short_range.tflite"};
    static const struct harm harms[] = {
        {change, "packed weights written again: wrong checksum", false},
        {shorten, "packed weights written again: 20000 bytes, expected", false},
        {empty, "packed weights written again: wrong size of 0 bytes", false},
        {replace_by_link, "packed weights written again: cannot open", false},
        {replace_by_folder, "packed weights not written: cannot write", true},
    };
    char folder[] = "/tmp/ifd_cache_XXXXXX";
    if (!has_cpuacc()) {
        test_does_not_apply("CpuAcc is not built: nothing is packed");
    }
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        struct trial trial = {.path = test_shared(models[i]), .releases_weights = true, .batch = 3};
        uint8_t *want = run_random(&trial);
        EXPECT_TEXT(trial.cache, "");
        (void)snprintf(folder, sizeof(folder), "/tmp/ifd_cache_XXXXXX");
        REQUIRE(mkdtemp(folder) != NULL);
        trial.cache_folder = folder;
        run_cached(&trial, want, false, "packed weights written");
        run_cached(&trial, want, true, "bytes of packed weights mapped");
        trial.releases_weights = false;
        run_cached(&trial, want, true, "mapped");
        for (size_t h = 0; h < sizeof(harms) / sizeof(harms[0]); h++) {
            for_each_file(folder, harms[h].happen);
            run_cached(&trial, want, false, harms[h].note);
            run_cached(&trial, want, !harms[h].stays, harms[h].stays ? harms[h].note : "mapped");
        }
        for_each_file(folder, remove_subfolder);
        run_cached(&trial, want, false, "packed weights written");
        EXPECT_INT(chmod(folder, 0777), 0);
        run_cached(&trial, want, false, "others may write it");
        EXPECT_INT(chmod(folder, 0700), 0);
        trial.exact = true; /* other kernels, other weights */
        free(run_random(&trial));
        EXPECT(!trial.is_from_cache);
        remove_folder(folder);
        free(want);
    }
}

/* Packed for other instructions, even under the right name. */
static void weights_for_another_cpu_are_not_used(void)
{
    struct trial all = {.path = test_shared("models/tflite/mobilenet_v1_0.25_128_quant.tflite"),
                        .batch = 1,
                        .exact = true},
                 few = all;
    struct ifd_cpu cpu;
    char folder[] = "/tmp/ifd_cache_XXXXXX";
    ifd_cpu_detect(&cpu);
    few.cpu_mask = cpu.flags & (IFD_CPU_AVX2 | IFD_CPU_NEON);
    if (!has_cpuacc() || few.cpu_mask == 0 || few.cpu_mask == cpu.flags) {
        test_does_not_apply("this CPU has no instructions that others lack");
    }
    REQUIRE(mkdtemp(folder) != NULL);
    uint8_t *want = run_random(&all);
    all.cache_folder = few.cache_folder = folder;
    run_cached(&all, want, false, "packed weights written");
    for_each_file(folder, set_aside);
    run_cached(&few, want, false, "packed weights written");
    run_cached(&few, want, true, "mapped");
    for_each_file(folder, replace_by_other);
    run_cached(&few, want, false, "packed weights written again: written for another model");
    run_cached(&few, want, true, "mapped");
    remove_folder(folder);
    free(want);
}

static void released_weights_change_no_result_of_any_batch(void)
{
    static const char *const models[] = {"models/tflite/mobilenet_v1_0.25_128_quant.tflite",
                                         "models/tflite/vww_96_float.tflite",
                                         "models/tflite/face_detection_short_range.tflite"};
    const bool packs = has_cpuacc();
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        const char *path = test_shared(models[i]);
        for (int64_t batch = 1; batch <= 6; batch += 5) {
            struct trial keeps = {.path = path, .batch = batch}, releases = keeps;
            releases.releases_weights = true;
            uint8_t *want = run_random(&keeps);
            uint8_t *got = run_random(&releases);
            REQUIRE(keeps.size == releases.size);
            EXPECT_BYTES(got, want, keeps.size);
            EXPECT_INT(keeps.released_bytes, 0);
            EXPECT(releases.released_bytes > 0 || !packs);
            free(want);
            free(got);
        }
    }
}

/* Each thread computes the same numbers for a chunk of a tensor. */
static void threads_change_no_result(void)
{
    static const char *const models[] = {"models/tflite/mobilenet_v1_0.25_128_quant.tflite",
                                         "models/tflite/vww_96_float.tflite",
                                         "models/tflite/face_detection_short_range.tflite",
                                         "models/tflite/hand_landmark_lite.tflite"};
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        struct trial trial = {.path = test_shared(models[i]), .batch = 2};
        uint8_t *want = run_random(&trial);
        for (trial.threads = 2; trial.threads <= 7; trial.threads += trial.threads == 3 ? 4 : 1) {
            uint8_t *got = run_random(&trial);
            EXPECT_BYTES(got, want, trial.size);
            free(got);
        }
        free(want);
    }
}

/* y = v = v + x, v being 1, 2 at first. */
static void run_variable(bool keeps_state)
{
    const struct ifd_bytes file =
        read_file(test_source("tests/fuzz/corpus/tflite/good_variable.tflite"));
    struct ifd_engine_options options = {.alloc = ifd_alloc_system()};
    struct ifd_engine *engine = NULL;
    struct ifd_model *model = NULL;
    struct ifd_instance *instance = NULL;
    struct ifd_err err = {0};
    options.backends = ifd_backends_builtin(&options.backend_count);
    EXPECT_CODE(ifd_engine_create(&options, &engine, &err), IFD_OK, &err);
    EXPECT_CODE(ifd_model_load(engine, file,
                               &(struct ifd_model_options){.keeps_state = keeps_state}, &model,
                               &err),
                IFD_OK, &err);
    const struct ifd_model_info *info = ifd_model_info(model);
    const uint32_t states = keeps_state ? 1 : 0;
    EXPECT_INT(info->state_count, states);
    REQUIRE(info->input_count == 1 + states && info->output_count == 1 + states);
    EXPECT_CODE(ifd_instance_create(model, &(struct ifd_instance_options){0}, &instance, &err),
                IFD_OK, &err);
    float x[2] = {10, 20}, state[2] = {0};
    float want[2] = {1, 2};
    if (keeps_state) {
        REQUIRE(info->input[1].begin.size == sizeof(state));
        memcpy(state, info->input[1].begin.data, sizeof(state));
    }
    for (int step = 0; step < 3; step++) {
        struct ifd_tensor in[2] = {0}, out[2] = {0};
        for (uint32_t i = 0; i < 1 + states; i++) {
            in[i] = (struct ifd_tensor){.dtype = IFD_F32,
                                        .shape = {.rank = 2, .dim = {1, 2}},
                                        .data = i == 0 ? x : state,
                                        .bytes = sizeof(x),
                                        .capacity = sizeof(x)};
        }
        EXPECT_CODE(ifd_instance_run(instance,
                                     &(struct ifd_io){.input = in, .output = out, .batch = 1}, 1,
                                     &err),
                    IFD_OK, &err);
        for (int i = 0; i < 2; i++) {
            want[i] = (keeps_state ? want[i] : (float)(1 + i)) + x[i];
        }
        EXPECT_BYTES(out[0].data, want, sizeof(want));
        if (keeps_state) {
            EXPECT_BYTES(out[1].data, want, sizeof(want));
            memcpy(state, out[1].data, sizeof(state));
        }
    }
    ifd_instance_destroy(instance);
    ifd_model_destroy(model);
    ifd_engine_destroy(engine);
    free_file(file);
}

static void a_variable_begins_in_every_run_or_is_carried_by_the_caller(void)
{
    run_variable(false);
    run_variable(true);
}

static void odd_files_run_or_are_refused_in_one_line(void)
{
    const char *folder = test_shared("models/odd_tflite");
    DIR *dir = opendir(folder);
    uint32_t files = 0;
    REQUIRE(dir != NULL);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        const char *dot = strrchr(entry->d_name, '.');
        char path[1024];
        struct ifd_err err = {0};
        if (!dot || strcmp(dot, ".tflite") != 0) {
            continue;
        }
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        const struct ifd_bytes file = read_file(path);
        const enum ifd_code code = load_and_run(file, NULL, ifd_alloc_system(), &err);
        free_file(file);
        files++;
        if (code == IFD_OK) {
            printf("     runs     %s\n", entry->d_name);
            continue;
        }
        printf("     refused  %s: %s: %s\n", entry->d_name, ifd_code_name(code), err.text);
        EXPECT(err.text[0] != '\0' && !strchr(err.text, '\n'));
        EXPECT(code != IFD_INTERNAL && code != IFD_NOMEM);
    }
    closedir(dir);
    EXPECT(files > 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(every_failing_allocation_of_a_load_is_reported),
        T(failing_allocations_leak_nothing_in_any_backend),
        T(a_batch_gives_what_its_samples_give),
        T(packed_weights_of_an_earlier_start_give_the_same_results),
        T(weights_for_another_cpu_are_not_used),
        T(released_weights_change_no_result_of_any_batch),
        T(threads_change_no_result),
        T(a_variable_begins_in_every_run_or_is_carried_by_the_caller),
        T(odd_files_run_or_are_refused_in_one_line),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

#include "backends/builtin.h"
#include "engine/base/clock.h"
#include "engine/base/cpu.h"
#include "tests/support/model_file.h"
#include "tests/support/parse_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct ifd_engine_options builtin(void)
{
    struct ifd_engine_options options = {0};
    options.backends = ifd_backends_builtin(&options.backend_count);
    return options;
}

/* In place of zeros. Of f32 numbers: which NaN comes out is no promise. */
static void randomize(const struct ifd_tensor *tensor, struct test_random *random)
{
    const bool is_f32 = tensor->dtype == IFD_F32;
    for (size_t i = 0; i < (is_f32 ? tensor->bytes / sizeof(float) : tensor->bytes); i++) {
        if (is_f32) {
            ((float *)tensor->data)[i] = test_random_f32(random, -1, 1);
        } else {
            ((uint8_t *)tensor->data)[i] = (uint8_t)test_random_u64(random);
        }
    }
}

static enum ifd_code run_zeros(struct model_file *f)
{
    model_file_fill(f);
    return model_file_run(f);
}

/* The k-th allocation fails, k = 1, 2, …, alone or with all that follow it. is_strict: each of them
 * is needed. */
static void torture(const char *backend, bool is_strict, bool goes_on)
{
    model_file_torture(
        &(struct model_file_torture){.path = test_source("models/digits/1/model.tflite"),
                                     .options = {.engine = builtin(),
                                                 .model = {.backends = backend ? &backend : NULL,
                                                           .backend_count = backend ? 1 : 0},
                                                 .batch = 2},
                                     .run = run_zeros,
                                     .goes_on = goes_on,
                                     .may_do_without = !is_strict,
                                     .rounds_at_least = 20});
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

/* Runs count samples of all, from first on. */
static void run_samples(struct model_file *f, const struct ifd_tensor *all, int64_t first,
                        int64_t count)
{
    const size_t sample = all->bytes / (size_t)all->shape.dim[0];
    f->in[0] = *all;
    f->in[0].data = (uint8_t *)all->data + (size_t)first * sample;
    f->in[0].bytes = f->in[0].capacity = (size_t)count * sample;
    f->in[0].shape.dim[0] = f->batch = count;
    REQUIRE_OK(model_file_run(f), &f->err);
}

/* Every size up to 20: sizes with a plan, and sizes that take several runs. */
static void a_batch_gives_what_its_samples_give(void)
{
    struct model_file f;
    struct test_random random = {.state = 3};
    uint8_t want[20 * 64];
    model_file_begin(&f, test_source("models/digits/1/model.tflite"),
                     &(struct model_file_options){.engine = builtin(), .batch = 20});
    EXPECT(f.info->batch_is_free);
    model_file_fill(&f);
    const struct ifd_tensor all = f.in[0];
    for (int64_t batch = 1; batch <= 20; batch++) {
        size_t bytes = 0;
        randomize(&all, &random);
        for (int64_t s = 0; s < batch; s++) {
            run_samples(&f, &all, s, 1);
            REQUIRE(f.out[0].bytes > 0 && f.out[0].bytes <= sizeof(want) / 20);
            memcpy(want + bytes, f.out[0].data, f.out[0].bytes);
            bytes += f.out[0].bytes;
        }
        run_samples(&f, &all, 0, batch);
        EXPECT_INT(f.out[0].bytes, bytes);
        EXPECT_BYTES(f.out[0].data, want, bytes);
    }
    model_file_end(&f);
}

/* Options of a run, and its results. */
struct trial {
    const char *path;
    bool releases_weights, exact;
    uint32_t batch;
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
    struct model_file f;
    struct test_random random = {.state = 5};
    struct model_file_options options = {
        .engine = builtin(),
        .model = {.releases_weights = trial->releases_weights, .max_threads = trial->threads},
        .threads = trial->threads,
        .batch = trial->batch};
    options.engine.cache_folder = trial->cache_folder;
    options.engine.exact = trial->exact;
    options.engine.cores = 16;
    options.engine.cpu_mask = trial->cpu_mask;
    model_file_begin(&f, trial->path, &options);
    REQUIRE(f.info->input_count == 1 && f.batch == trial->batch);
    model_file_fill(&f);
    randomize(&f.in[0], &random);
    REQUIRE_OK(model_file_run(&f), &f.err);
    trial->size = 0;
    uint8_t *result = NULL;
    for (uint32_t i = 0; i < f.info->output_count; i++) {
        result = realloc(result, trial->size + f.out[i].bytes);
        REQUIRE(result != NULL);
        memcpy(result + trial->size, f.out[i].data, f.out[i].bytes);
        trial->size += f.out[i].bytes;
    }
    trial->released_bytes = f.info->released_bytes;
    trial->is_from_cache = f.info->is_from_cache;
    (void)snprintf(trial->cache, sizeof(trial->cache), "%s", f.info->cache);
    model_file_end(&f);
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
        for (uint32_t batch = 1; batch <= 6; batch += 5) {
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
    struct model_file f;
    const uint32_t states = keeps_state ? 1 : 0;
    float x[2] = {10, 20}, state[2] = {0}, want[2] = {1, 2};
    model_file_begin(
        &f, test_source("tests/fuzz/corpus/tflite/good_variable.tflite"),
        &(struct model_file_options){.engine = builtin(), .model = {.keeps_state = keeps_state}});
    EXPECT_INT(f.info->state_count, states);
    REQUIRE(f.info->input_count == 1 + states && f.info->output_count == 1 + states);
    if (keeps_state) {
        REQUIRE(f.info->input[1].begin.size == sizeof(state));
        memcpy(state, f.info->input[1].begin.data, sizeof(state));
    }
    model_file_fill(&f);
    f.in[0].data = x;
    f.in[1].data = state;
    for (int step = 0; step < 3; step++) {
        REQUIRE_OK(model_file_run(&f), &f.err);
        for (int i = 0; i < 2; i++) {
            want[i] = (keeps_state ? want[i] : (float)(1 + i)) + x[i];
        }
        EXPECT_BYTES(f.out[0].data, want, sizeof(want));
        if (keeps_state) {
            EXPECT_BYTES(f.out[1].data, want, sizeof(want));
            memcpy(state, f.out[1].data, sizeof(state));
        }
    }
    model_file_end(&f);
}

static void a_variable_begins_in_every_run_or_is_carried_by_the_caller(void)
{
    run_variable(false);
    run_variable(true);
}

/* Strings reach the output of an operator that moves them, of a loop that carries them, and an
 * output that is the input. */
static void strings_pass(void)
{
    static const struct {
        const char *name;
        uint32_t in, out;
    } models[] = {{"string_input_model", 0, 0},
                  {"string_input_model_with_signature", 0, 0},
                  {"while_op_with_forwarding_input", 1, 2}};
    static const struct ifd_str sent[3] = {{"one", 3}, {"", 0}, {"thr\0e", 5}};
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        struct model_file f;
        char path[128];
        snprintf(path, sizeof(path), "models/odd_tflite/%s.tflite", models[i].name);
        model_file_begin(&f, test_shared(path), &(struct model_file_options){.engine = builtin()});
        model_file_fill(&f);
        REQUIRE(f.in[models[i].in].dtype == IFD_STR && f.in[models[i].in].bytes <= sizeof(sent));
        memcpy(f.in[models[i].in].data, sent, f.in[models[i].in].bytes);
        REQUIRE_OK(model_file_run(&f), &f.err);
        EXPECT_INT(f.out[models[i].out].dtype, IFD_STR);
        EXPECT_INT(f.out[models[i].out].bytes, f.in[models[i].in].bytes);
        EXPECT_BYTES(f.out[models[i].out].data, sent, f.in[models[i].in].bytes);
        model_file_end(&f);
    }
}

/* LiteRT 2.3.0 runs the others, too. Of these it runs nested_while, which never ends, and the four
 * without outputs. */
struct refusal {
    const char *name;
    enum ifd_code code;
    const char *part; /* of the error */
};

static const struct refusal refused[] = {
    {"0_subgraphs.tflite", IFD_CORRUPT, "the model has no subgraph"},
    {"2_subgraphs.tflite", IFD_UNSUPPORTED, "the model has no outputs"},
    {"2_subgraphs_dont_delegate_name.tflite", IFD_UNSUPPORTED, "the model has no outputs"},
    {"add_shared_tensors.tflite", IFD_CORRUPT, "output 0 \"input\" is an input of the model"},
    {"custom_sinh.tflite", IFD_UNSUPPORTED,
     "operator Sinh (version 1, node 0, outputs \"Identity\") is not supported"},
    {"double_flex.tflite", IFD_UNSUPPORTED, "operator FlexDouble"},
    {"empty_model.tflite", IFD_UNSUPPORTED, "the model has no outputs"},
    {"multi_add_flex.tflite", IFD_UNSUPPORTED, "operator FlexAddV2"},
    {"nested_while.tflite", IFD_DEADLINE, "turns when its time is over"},
    {"no_subgraphs.tflite", IFD_CORRUPT, "the model has no subgraph"},
    {"segment_sum_invalid_buffer.tflite", IFD_CORRUPT,
     "input 1 \"pyx/y\" is made by no operator before it"},
    {"softplus_flex.tflite", IFD_UNSUPPORTED, "operator FlexSoftplus"},
    {"sparse_tensor.tflite", IFD_UNSUPPORTED, "operator FakeOp"},
    {"tensor_string_data_type.tflite", IFD_UNSUPPORTED, "input 0 of type str is not supported"},
    {"test_custom_node_with_init_data.tflite", IFD_UNSUPPORTED, "operator the_custom_code"},
    {"test_model.tflite", IFD_CORRUPT, "attribute \"stride_h\" is 0"},
    {"test_model_broken.tflite", IFD_CORRUPT, "unknown model format"},
    {"test_model_versioned_ops.tflite", IFD_CORRUPT, "attribute \"stride_h\" is 0"},
    {"two_subgraphs.tflite", IFD_UNSUPPORTED, "the model has no outputs"},
    {"with_metadata.tflite", IFD_UNSUPPORTED, "operator NPU_OP"},
};

static void run_or_refuse(const char *path, const char *name)
{
    const size_t count = sizeof(refused) / sizeof(refused[0]);
    struct model_file f;
    size_t i = 0;
    while (i < count && strcmp(refused[i].name, name) != 0) {
        i++;
    }
    model_file_read(&f, path);
    enum ifd_code code =
        model_file_open(&f, &(struct model_file_options){.engine = builtin(), .batch = 2});
    if (code == IFD_OK) {
        f.deadline_ns = ifd_monotonic_ns() + 1000000000; /* some loop never ends */
        code = run_zeros(&f);
    }
    if (code != (i < count ? refused[i].code : IFD_OK)) {
        printf("     %s\n", name);
    }
    EXPECT_CODE(code, i < count ? refused[i].code : IFD_OK, &f.err);
    if (i < count) {
        EXPECT_HAS(f.err.text, refused[i].part);
        EXPECT(!strchr(f.err.text, '\n'));
    }
    model_file_end(&f);
}

static void odd_files_run_or_are_refused_in_one_line(void)
{
    parse_each_file(test_shared("models/odd_tflite"), "", run_or_refuse);
}

/* A model whose only texts are made in branches says so, too. */
static void texts_that_branches_make_are_told(void)
{
    static const struct {
        const char *path;
        bool makes_texts;
    } of[] = {{"tests/fuzz/corpus/onnx/text_branches.onnx", true},
              {"tests/conformance/onnx/label_int_to_text.onnx", false}};
    for (size_t i = 0; i < 2; i++) {
        struct model_file f;
        model_file_begin(&f, test_source(of[i].path), NULL);
        EXPECT_INT(f.info->makes_texts, of[i].makes_texts);
        model_file_end(&f);
    }
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
        T(strings_pass),
        T(odd_files_run_or_are_refused_in_one_line),
        T(texts_that_branches_make_are_told),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

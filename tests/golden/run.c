/* Runs models on inputs made by others and compares with what other engines answer.
 *
 *      golden_run [--backend A,B] [--fast] [--exact] [--no-optimize] [--threads N] [--model A,B]
 *                 [--precision bf16|fp16] [--cpu FEATURES] SHARED
 *      golden_run --seanet [--backend A,B] [--exact] [--cpu FEATURES] SHARED
 *
 * SHARED is the folder with golden/cases.json and models/. --model selects the folders of cases;
 * --exact and --fast are the product's options. CpuRef alone and --exact are held to the tolerance
 * of reference kernels, everything else to that of fast kernels. --seanet runs the one-operator
 * models of golden/seanet_int16 and expects every number to be equal; --cpu names the processor's
 * features that may be used ("avx2,avx512", "none"); --precision has another tolerance
 * (weight_spread). Prints the largest difference of every case. Exit status: 0 all within
 * tolerance, 1 not, 77 nothing to run (the folder is absent; 1 where INFERD_TEST_NO_SKIPS is
 * set). */
#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/builtin.h"
#include "engine/base/cpu.h"
#include "engine/base/file.h"
#include "engine/model/model.h"
#include "engine/tools/npy.h"
#include "engine/tensor/half.h"
#include "inferd/engine.h"
#include "tests/golden/judge.h"

#define NAMES_MAX     64
#define PORTS_MAX     64
#define SEANET_MODELS 127

struct options {
    const char *shared;
    const char *backend[NAMES_MAX];
    uint32_t backend_count;
    const char *model[NAMES_MAX];
    uint32_t model_count;
    const char *cpu[NAMES_MAX]; /* none: all that there is */
    uint32_t cpu_count;
    uint32_t threads;
    enum ifd_precision precision;
    enum ifd_precision rounding; /* of the weights as the model keeps them */
    bool is_fast, is_exact, is_seanet, no_optimize;
};

struct loaded {
    struct ifd_bytes file;
    struct ifd_engine *engine;
    struct ifd_model *model;
    struct ifd_instance *instance;
    const struct ifd_model_info *info;
};

/* ---- files ---- */

static enum ifd_code read_file(const char *path, struct ifd_bytes *ret, struct ifd_err *err)
{
    return ifd_file_read(path, INT32_MAX, ifd_alloc_system(), ret, err);
}

static void free_file(struct ifd_bytes file)
{
    ifd_release_tensor(ifd_alloc_system(), (void *)file.data, file.size);
}

static bool exists(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file) {
        fclose(file);
    }
    return file != NULL;
}

/* Exit status where this file or folder is absent. */
static int skip(const char *path)
{
    const bool is_allowed = getenv("INFERD_TEST_NO_SKIPS") == NULL;
    printf("%s: there is no %s\n", is_allowed ? "skipped" : "may not be skipped", path);
    return is_allowed ? 77 : 1;
}

/* ---- models ---- */

static void unload(struct loaded *l)
{
    ifd_instance_destroy(l->instance);
    ifd_model_destroy(l->model);
    ifd_engine_destroy(l->engine);
    free_file(l->file);
    *l = (struct loaded){0};
}

/* Rounds the weights of convolutions and fully connected layers, in the model, to a precision. */
static void round_weights(struct ifd_model *model, enum ifd_precision precision)
{
    const struct ifd_graph *g = &model->graph;
    for (uint32_t n = 0; precision != IFD_PRECISION_F32 && n < g->node_count; n++) {
        const struct ifd_node *node = &g->node[n];
        if (node->op != IFD_OP_CONV2D && node->op != IFD_OP_FULLY_CONNECTED) {
            continue;
        }
        const struct ifd_value *weights = &g->value[node->input[1]];
        float *w = (float *)(uintptr_t)weights->data.data;
        const size_t count = weights->desc.dtype == IFD_F32 ? weights->data.size / sizeof(*w) : 0;
        for (size_t i = 0; i < count; i++) {
            w[i] = precision == IFD_PRECISION_BF16 ? ifd_f32_from_bf16(ifd_bf16_from_f32(w[i]))
                                                   : ifd_f32_from_f16(ifd_f16_from_f32(w[i]));
        }
    }
}

static enum ifd_code load(const struct options *options, const char *path, struct loaded *l,
                          struct ifd_err *err)
{
    struct ifd_engine_options engine = {.exact = options->is_exact, .fast = options->is_fast};
    const struct ifd_model_options model = {
        .backends = options->backend_count > 0 ? options->backend : NULL,
        .backend_count = options->backend_count,
        .max_threads = options->threads,
        .precision = options->precision,
        .no_optimize = options->no_optimize};
    engine.backends = ifd_backends_builtin(&engine.backend_count);
    for (uint32_t i = 0; i < options->cpu_count; i++) {
        engine.cpu_mask |= ifd_cpu_flag_by_name(options->cpu[i], strlen(options->cpu[i]));
        engine.no_cpu_features = engine.cpu_mask == 0;
    }
    *l = (struct loaded){0};
    enum ifd_code code = read_file(path, &l->file, err);
    if (code == IFD_OK) {
        code = ifd_engine_create(&engine, &l->engine, err);
    }
    if (code == IFD_OK) {
        code = ifd_model_load(l->engine, l->file, &model, &l->model, err);
    }
    if (code == IFD_OK) {
        round_weights(l->model, options->rounding);
        l->info = ifd_model_info(l->model);
        if (l->info->input_count > PORTS_MAX || l->info->output_count > PORTS_MAX) {
            code = ifd_fail(err, IFD_UNSUPPORTED, "more than %d inputs or outputs", PORTS_MAX);
        }
    }
    return code;
}

static enum ifd_code instantiate(const struct options *options, struct loaded *l, int64_t batch,
                                 struct ifd_err *err)
{
    ifd_instance_destroy(l->instance);
    l->instance = NULL;
    return ifd_instance_create(
        l->model,
        &(struct ifd_instance_options){.threads = options->threads, .max_batch = (uint32_t)batch},
        &l->instance, err);
}

/* ---- cases ---- */

struct tensors {
    struct ifd_bytes file[PORTS_MAX];
    struct ifd_tensor tensor[PORTS_MAX];
    uint32_t count;
};

static void free_tensors(struct tensors *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        free_file(t->file[i]);
    }
    t->count = 0;
}

/* The data of a .npy is not aligned to its element: it is moved to the start of the file's memory,
 * which is. */
static enum ifd_code read_tensors(const char *folder, const char *stem, uint32_t count,
                                  struct tensors *ret, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    ret->count = 0;
    for (uint32_t i = 0; code == IFD_OK && i < count; i++) {
        char path[1024];
        snprintf(path, sizeof(path), "%s/%s%u.npy", folder, stem, i);
        code = read_file(path, &ret->file[i], err);
        if (code != IFD_OK) {
            break;
        }
        ret->count = i + 1;
        struct ifd_tensor *tensor = &ret->tensor[i];
        code = ifd_npy_parse(ret->file[i], tensor, err);
        if (code == IFD_OK) {
            memmove((void *)ret->file[i].data, tensor->data, tensor->bytes);
            tensor->data = (void *)ret->file[i].data;
            tensor->capacity = ret->file[i].size;
        }
    }
    return code;
}

/* The model's outputs are those that the case names, and the folder has no further one. */
static bool has_outputs(const struct ifd_model_info *info, json_t *json, const char *folder)
{
    const char *names[PORTS_MAX];
    char path[1100];
    const size_t count = json_array_size(json);
    for (size_t i = 0; i < count && i < PORTS_MAX; i++) {
        names[i] = json_string_value(json_array_get(json, i));
    }
    snprintf(path, sizeof(path), "%s/out%zu.npy", folder, count);
    return count <= PORTS_MAX && golden_has_outputs(info, names, count) && !exists(path);
}

/* One set of inputs; the batch is that of the inputs if the model's batch dimension is free. */
static enum ifd_code run_step(const struct options *options, struct loaded *l, const char *folder,
                              const struct golden_tolerance *tolerance, bool *ret_ok,
                              double *ret_largest, struct ifd_err *err)
{
    struct tensors in = {0}, want = {0};
    struct ifd_tensor got[PORTS_MAX] = {0};
    enum ifd_code code = read_tensors(folder, "in", l->info->input_count, &in, err);
    if (code == IFD_OK) {
        code = read_tensors(folder, "out", l->info->output_count, &want, err);
    }
    struct ifd_io io = {.input = in.tensor, .output = got, .batch = 1};
    if (code == IFD_OK && l->info->input_count > 0 && l->info->input[0].batched) {
        io.batch = in.tensor[0].shape.dim[0];
    }
    if (code == IFD_OK) {
        code = instantiate(options, l, io.batch, err);
    }
    if (code == IFD_OK) {
        code = ifd_instance_run(l->instance, &io, 1, err);
    }
    if (code == IFD_OK) {
        *ret_ok = golden_judge(l->info, got, want.tensor, want.count, tolerance, ret_largest);
    }
    free_tensors(&in);
    free_tensors(&want);
    return code;
}

/* Boxes and scores in exact mode; their integers before the last operator are equal, and it
 * computes in floats. */
#define EXACT_DETECTIONS 1e-4
/* Largest differences of fast kernels are outliers: an early rounding that a network amplified in a
 * few numbers. */
#define FAST_MEAN 0.02

/* cases.json allows fast kernels what those of other engines differ by. Where ours differ by much
 * less, so much that a wrong kernel could hide in between, they are held to this. */
static double closest(const char *path)
{
    static const struct {
        const char *folder;
        double limit;
    } rows[] = {
        {"yamnet/", 0.0086}, /* of range: two steps of its last 8-bit layer; measured: one */
        {"kws_ref_model_float32/", 1e-4},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strncmp(path, rows[i].folder, strlen(rows[i].folder)) == 0) {
            return rows[i].limit;
        }
    }
    return INFINITY;
}

static bool is_reference(const struct options *options)
{
    return options->backend_count == 1 && strcmp(options->backend[0], "CpuRef") == 0;
}

static bool read_tolerance(const struct options *options, const char *path, json_t *json,
                           struct golden_tolerance *ret)
{
    const bool is_exact = options->is_exact || is_reference(options);
    const bool is_detections =
        json_is_string(json_object_get(json, "kind")) &&
        strcmp(json_string_value(json_object_get(json, "kind")), "detections") == 0;
    json_t *limit = json_object_get(json, is_detections ? "max_abs"
                                          : is_exact    ? "reference"
                                                        : "fast");
    ret->kind = json_string_value(json_object_get(json, "kind"));
    ret->limit = json_number_value(limit);
    if (is_exact && is_detections) {
        ret->limit = fmin(ret->limit, EXACT_DETECTIONS);
    } else if (!is_exact) {
        ret->limit = fmin(ret->limit, closest(path));
        ret->mean_limit = FAST_MEAN;
    }
    return ret->kind && json_is_number(limit);
}

/* All steps of a case. */
static enum ifd_code run_steps(const struct options *options, json_t *json,
                               const struct golden_tolerance *tolerance, bool *ret_ok,
                               double *ret_largest, struct ifd_err *err)
{
    const char *name = json_string_value(json_object_get(json, "path"));
    const long long steps = json_integer_value(json_object_get(json, "steps"));
    struct loaded l = {0};
    char path[1024];
    snprintf(path, sizeof(path), "%s/models/%s", options->shared,
             json_string_value(json_object_get(json, "model")));
    enum ifd_code code = load(options, path, &l, err);
    *ret_ok = true;
    *ret_largest = 0;
    for (long long step = 0; code == IFD_OK && step < steps; step++) {
        bool step_ok = false;
        snprintf(path, sizeof(path), "%s/golden/%s", options->shared, name);
        if (steps > 1) {
            snprintf(path, sizeof(path), "%s/golden/%s/step%lld", options->shared, name, step);
        }
        code = run_step(options, &l, path, tolerance, &step_ok, ret_largest, err);
        *ret_ok &= step_ok && has_outputs(l.info, json_object_get(json, "outputs"), path);
    }
    unload(&l);
    return code;
}

/* What a model may lose to a lower precision is a property of the model. Measured: how far do its
 * results move on the reference backend, which computes in f32, if only the weights are rounded?
 * The kernels round the inputs as well, and another element may be hit by twice the variance:
 * allowed is four times that distance, plus the rounding of the last layer's operands, for models
 * that move less. Where half-precision instructions add, 64 sums are rounded too: a step times the
 * root of their number. */
static enum ifd_code weight_spread(const struct options *options, json_t *json, double *ret_limit,
                                   struct ifd_err *err)
{
    struct options reference = *options;
    const struct golden_tolerance any = {"of_range", INFINITY, 0};
    bool ok = true;
    reference.backend[0] = "CpuRef";
    reference.backend_count = 1;
    reference.precision = IFD_PRECISION_F32;
    reference.rounding = options->precision;
    const enum ifd_code code = run_steps(&reference, json, &any, &ok, ret_limit, err);
    struct ifd_cpu cpu;
    ifd_cpu_detect(&cpu);
    const double half_step = cpu.flags & IFD_CPU_FP16 ? 8 * 0x1p-11 : 0x1p-11;
    *ret_limit = 4 * *ret_limit + (options->precision == IFD_PRECISION_BF16 ? 0x1p-8 : half_step);
    return code;
}

static bool run_case(const struct options *options, json_t *json)
{
    const char *name = json_string_value(json_object_get(json, "path"));
    struct golden_tolerance tolerance = {0};
    struct ifd_err err = {0};
    if (!name || !json_is_string(json_object_get(json, "model")) ||
        json_integer_value(json_object_get(json, "steps")) < 1 ||
        !read_tolerance(options, name, json_object_get(json, "tolerance"), &tolerance)) {
        printf("FAIL %s: the case has no model, no step or no tolerance for a number\n",
               name ? name : "?");
        return false;
    }
    enum ifd_code code = IFD_OK;
    bool ok = true;
    double largest = 0;
    if (options->precision != IFD_PRECISION_F32) {
        tolerance = (struct golden_tolerance){.kind = "of_range"};
        code = weight_spread(options, json, &tolerance.limit, &err);
    }
    if (code == IFD_OK) {
        code = run_steps(options, json, &tolerance, &ok, &largest, &err);
    }
    if (code != IFD_OK) {
        printf("FAIL %s: %s\n", name, err.text);
        return false;
    }
    printf("%s %s: largest difference %g, limit %g (%s)\n", ok ? "ok  " : "FAIL", name, largest,
           tolerance.limit, tolerance.kind);
    return ok;
}

static bool is_selected(const struct options *options, const char *path)
{
    for (uint32_t i = 0; i < options->model_count; i++) {
        const size_t size = strlen(options->model[i]);
        if (path && strncmp(path, options->model[i], size) == 0 && path[size] == '/') {
            return true;
        }
    }
    return options->model_count == 0;
}

static int run_cases(const struct options *options)
{
    char path[1024];
    json_error_t error;
    snprintf(path, sizeof(path), "%s/golden/cases.json", options->shared);
    if (!exists(path)) {
        return skip(path);
    }
    json_t *cases = json_load_file(path, 0, &error);
    if (!json_is_array(cases)) {
        printf("%s: %s\n", path, cases ? "not a list" : error.text);
        json_decref(cases);
        return 1;
    }
    uint32_t run = 0, failed = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        json_t *json = json_array_get(cases, i);
        if (is_selected(options, json_string_value(json_object_get(json, "path")))) {
            run++;
            failed += run_case(options, json) ? 0 : 1;
            fflush(stdout);
        }
    }
    json_decref(cases);
    printf("%u cases, %u failed\n", run, failed);
    return run == 0 || failed > 0 ? 1 : 0;
}

/* ---- one-operator models with numbers in text ---- */

/* Comma-separated whole numbers; false if there are more or fewer than count. */
static bool read_numbers(const char *path, int64_t *ret_numbers, size_t count)
{
    FILE *file = fopen(path, "r");
    size_t found = 0;
    while (file && found <= count) {
        char text[32];
        size_t size = 0;
        int c = fgetc(file);
        for (; c != EOF && c != ',' && size + 1 < sizeof(text); c = fgetc(file)) {
            text[size++] = (char)c;
        }
        text[size] = '\0';
        char *end = NULL;
        const long long n = strtoll(text, &end, 10);
        if (end != text && found < count) {
            ret_numbers[found] = n;
        }
        found += end != text ? 1 : 0;
        if (c == EOF) {
            break;
        }
    }
    if (file) {
        fclose(file);
    }
    return file && found == count;
}

static size_t element_count(const struct ifd_port *port)
{
    size_t count = 1;
    for (uint32_t i = 0; i < port->desc.shape.rank; i++) {
        count *= (size_t)port->desc.shape.dim[i];
    }
    return count;
}

static void store(struct ifd_tensor *tensor, size_t i, int64_t value)
{
    if (tensor->dtype == IFD_S16) {
        ((int16_t *)tensor->data)[i] = (int16_t)value;
    } else if (tensor->dtype == IFD_S32) {
        ((int32_t *)tensor->data)[i] = (int32_t)value;
    } else {
        ((int8_t *)tensor->data)[i] = (int8_t)value;
    }
}

static const char *type_of(const struct ifd_port *port)
{
    return port->desc.dtype == IFD_S32 ? "int32" : "int16";
}

static bool read_csv_input(const char *stem, uint32_t i, const struct ifd_port *port,
                           struct ifd_tensor *ret)
{
    char path[1200];
    const size_t count = element_count(port);
    int64_t *numbers = calloc(count + 1, sizeof(*numbers));
    snprintf(path, sizeof(path), "%s_input%u_%s.csv", stem, i, type_of(port));
    *ret = (struct ifd_tensor){.dtype = port->desc.dtype,
                               .shape = port->desc.shape,
                               .bytes = count * ifd_dtype_bytes(port->desc.dtype)};
    ret->capacity = ret->bytes;
    ret->data = calloc(count + 1, ifd_dtype_bytes(port->desc.dtype));
    const bool ok = numbers && ret->data && read_numbers(path, numbers, count);
    for (size_t k = 0; ok && k < count; k++) {
        store(ret, k, numbers[k]);
    }
    free(numbers);
    return ok;
}

static bool equals_csv(const char *stem, const struct ifd_port *port, const struct ifd_tensor *got)
{
    char path[1200];
    const size_t count = element_count(port);
    int64_t *numbers = calloc(count + 1, sizeof(*numbers));
    snprintf(path, sizeof(path), "%s_golden_%s.csv", stem, type_of(port));
    bool ok =
        count > 0 && numbers && read_numbers(path, numbers, count) && golden_count(got) == count;
    for (size_t k = 0; ok && k < count; k++) {
        double value = 0;
        ok = golden_number(got, k, &value) && value == (double)numbers[k];
    }
    free(numbers);
    return ok;
}

static bool run_seanet_model(const struct options *options, const char *stem, struct ifd_err *err)
{
    char path[1200];
    struct loaded l = {0};
    struct ifd_tensor in[PORTS_MAX] = {0}, out[PORTS_MAX] = {0};
    snprintf(path, sizeof(path), "%s.tflite", stem);
    bool ok = load(options, path, &l, err) == IFD_OK && instantiate(options, &l, 1, err) == IFD_OK;
    const uint32_t inputs = ok ? l.info->input_count : 0;
    for (uint32_t i = 0; ok && i < inputs; i++) {
        ok = read_csv_input(stem, i, &l.info->input[i], &in[i]);
    }
    const struct ifd_io io = {.input = in, .output = out, .batch = 1};
    /* each of these models has one output, and there is one file for it */
    ok = ok && l.info->output_count == 1 && ifd_instance_run(l.instance, &io, 1, err) == IFD_OK &&
         equals_csv(stem, &l.info->output[0], &out[0]);
    for (uint32_t i = 0; i < inputs; i++) {
        free(in[i].data);
    }
    unload(&l);
    return ok;
}

static void run_seanet_folder(const struct options *options, const char *folder, uint32_t *run,
                              uint32_t *failed)
{
    char path[1024], stem[1100];
    snprintf(path, sizeof(path), "%s/golden/seanet_int16/%s", options->shared, folder);
    DIR *dir = opendir(path);
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".tflite") != 0) {
            continue;
        }
        struct ifd_err err = {0};
        snprintf(stem, sizeof(stem), "%s/%.*s", path, (int)(dot - entry->d_name), entry->d_name);
        (*run)++;
        if (!run_seanet_model(options, stem, &err)) {
            (*failed)++;
            printf("FAIL %s: %s\n", entry->d_name,
                   err.text[0] != '\0' ? err.text : "numbers differ");
        }
    }
    if (dir) {
        closedir(dir);
    }
}

static int run_seanet(const struct options *options)
{
    static const char *const folders[] = {
        "add", "conv", "leaky_relu", "pad", "quantize", "strided_slice", "sub", "transpose_conv"};
    char path[1024];
    uint32_t run = 0, failed = 0;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        run_seanet_folder(options, folders[i], &run, &failed);
    }
    if (run == 0) {
        snprintf(path, sizeof(path), "%s/golden/seanet_int16", options->shared);
        return skip(path);
    }
    printf("seanet_int16: %u of %u models equal in every number, expected %d\n", run - failed, run,
           SEANET_MODELS);
    return failed == 0 && run == SEANET_MODELS ? 0 : 1;
}

/* ---- command line ---- */

static bool split(char *list, const char **names, uint32_t *count)
{
    for (char *at = list; at; (*count)++) {
        if (*count == NAMES_MAX) {
            return false;
        }
        names[*count] = at;
        at = strchr(at, ',');
        if (at) {
            *at++ = '\0';
        }
    }
    return true;
}

static bool parse(int argc, char **argv, struct options *ret)
{
    *ret = (struct options){.threads = 1};
    bool ok = true;
    for (int i = 1; ok && i < argc; i++) {
        const bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--backend") == 0 && has_value) {
            ok = split(argv[++i], ret->backend, &ret->backend_count);
        } else if (strcmp(argv[i], "--model") == 0 && has_value) {
            ok = split(argv[++i], ret->model, &ret->model_count);
        } else if (strcmp(argv[i], "--cpu") == 0 && has_value) {
            ok = split(argv[++i], ret->cpu, &ret->cpu_count);
        } else if (strcmp(argv[i], "--threads") == 0 && has_value) {
            ret->threads = (uint32_t)strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--precision") == 0 && has_value) {
            ok = ifd_precision_by_name(argv[++i], &ret->precision);
        } else if (strcmp(argv[i], "--fast") == 0) {
            ret->is_fast = true;
        } else if (strcmp(argv[i], "--exact") == 0) {
            ret->is_exact = true;
        } else if (strcmp(argv[i], "--no-optimize") == 0) {
            ret->no_optimize = true;
        } else if (strcmp(argv[i], "--seanet") == 0) {
            ret->is_seanet = true;
        } else {
            ok = argv[i][0] != '-' && !ret->shared;
            ret->shared = argv[i];
        }
    }
    return ok && ret->shared;
}

int main(int argc, char **argv)
{
    struct options options;
    if (!parse(argc, argv, &options)) {
        fputs("usage: golden_run [--seanet] [--backend A,B] [--fast] [--exact] [--no-optimize] "
              "[--threads N] [--precision bf16|fp16] [--cpu FEATURES] [--model A,B] SHARED\n",
              stderr);
        return 2;
    }
    return options.is_seanet ? run_seanet(&options) : run_cases(&options);
}

/* Runs models on inputs made by others and compares with what other engines answer.
 *
 *      golden_run [--backend A,B] [--fast] [--exact] [--no-optimize] [--threads N] [--model A,B]
 *                 [--precision bf16|fp16] [--cpu FEATURES]
 *                 [--backend-path DIR] [--backend-option NAME:KEY=VALUE] SHARED
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
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/cpu.h"
#include "engine/tools/npy.h"
#include "inferd/engine.h"
#include "tests/golden/judge.h"
#include "tests/golden/loaded.h"

/* ---- cases ---- */

static bool exists(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file) {
        fclose(file);
    }
    return file != NULL;
}

struct tensors {
    struct ifd_bytes file[PORTS_MAX];
    struct ifd_tensor tensor[PORTS_MAX];
    uint32_t count;
};

static void free_tensors(struct tensors *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        golden_free_file(t->file[i]);
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
        code = golden_read_file(path, &ret->file[i], err);
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
static enum ifd_code run_step(const struct golden_options *options, struct golden_loaded *l,
                              const char *folder, const struct golden_tolerance *tolerance,
                              bool *ret_ok, double *ret_largest, struct ifd_err *err)
{
    struct tensors in = {0}, want = {0};
    struct ifd_tensor got[PORTS_MAX] = {0};
    enum ifd_code code = read_tensors(folder, "in", l->info.input_count, &in, err);
    if (code == IFD_OK) {
        code = read_tensors(folder, "out", l->info.output_count, &want, err);
    }
    uint32_t batch = 1;
    if (code == IFD_OK && l->info.input_count > 0 && l->info.input[0].batched) {
        batch = (uint32_t)in.tensor[0].shape.dim[0];
    }
    if (code == IFD_OK) {
        code = golden_instantiate(options, l, batch, err);
    }
    if (code == IFD_OK) {
        code = golden_infer(l, in.tensor, got, batch, err);
    }
    if (code == IFD_OK) { /* else another backend has computed it */
        code = ifd_engine_check_health(l->engine, err);
    }
    if (code == IFD_OK) {
        *ret_ok = golden_judge(&l->info, got, want.tensor, want.count, tolerance, ret_largest);
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

static bool is_reference(const struct golden_options *options)
{
    return options->backend_count == 1 && strcmp(options->backend[0], "CpuRef") == 0;
}

static bool read_tolerance(const struct golden_options *options, const char *path, json_t *json,
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
static enum ifd_code run_steps(const struct golden_options *options, json_t *json,
                               const struct golden_tolerance *tolerance, bool *ret_ok,
                               double *ret_largest, struct ifd_err *err)
{
    const char *name = json_string_value(json_object_get(json, "path"));
    const long long steps = json_integer_value(json_object_get(json, "steps"));
    struct golden_loaded l = {0};
    char path[1024];
    snprintf(path, sizeof(path), "%s/models/%s", options->shared,
             json_string_value(json_object_get(json, "model")));
    enum ifd_code code = golden_load(options, path, &l, err);
    *ret_ok = true;
    *ret_largest = 0;
    for (long long step = 0; code == IFD_OK && step < steps; step++) {
        bool step_ok = false;
        snprintf(path, sizeof(path), "%s/golden/%s", options->shared, name);
        if (steps > 1) {
            snprintf(path, sizeof(path), "%s/golden/%s/step%lld", options->shared, name, step);
        }
        code = run_step(options, &l, path, tolerance, &step_ok, ret_largest, err);
        *ret_ok &= step_ok && has_outputs(&l.info, json_object_get(json, "outputs"), path);
    }
    golden_unload(&l);
    return code;
}

/* What a model may lose to a lower precision is a property of the model. Measured: how far do its
 * results move on the reference backend, which computes in f32, if only the weights are rounded?
 * The kernels round the inputs as well, and another element may be hit by twice the variance:
 * allowed is four times that distance, plus the rounding of the last layer's operands, for models
 * that move less. Where half-precision instructions add, 64 sums are rounded too: a step times the
 * root of their number. */
static enum ifd_code weight_spread(const struct golden_options *options, json_t *json,
                                   double *ret_limit, struct ifd_err *err)
{
    struct golden_options reference = *options;
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

static bool run_case(const struct golden_options *options, json_t *json)
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

static bool is_selected(const struct golden_options *options, const char *path)
{
    for (uint32_t i = 0; i < options->model_count; i++) {
        const size_t size = strlen(options->model[i]);
        if (path && strncmp(path, options->model[i], size) == 0 && path[size] == '/') {
            return true;
        }
    }
    return options->model_count == 0;
}

/* Dynamic-range weights: no engine meets another's numbers. */
static bool is_judged_by_its_task(json_t *json)
{
    const char *kind =
        json_string_value(json_object_get(json_object_get(json, "tolerance"), "kind"));
    return kind && strcmp(kind, "task") == 0;
}

static int run_cases(const struct golden_options *options)
{
    char path[1024];
    json_error_t error;
    snprintf(path, sizeof(path), "%s/golden/cases.json", options->shared);
    if (!exists(path)) {
        return golden_skip(path);
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
        const char *path_in_golden = json_string_value(json_object_get(json, "path"));
        if (is_selected(options, path_in_golden) && is_judged_by_its_task(json)) {
            printf("left %s: acceptance.golden compares its objects\n", path_in_golden);
        } else if (is_selected(options, path_in_golden)) {
            run++;
            failed += run_case(options, json) ? 0 : 1;
            fflush(stdout);
        }
    }
    json_decref(cases);
    printf("%u cases, %u failed\n", run, failed);
    return run == 0 || failed > 0 ? 1 : 0;
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

static bool parse(int argc, char **argv, struct golden_options *ret)
{
    *ret = (struct golden_options){.threads = 1};
    bool ok = true;
    for (int i = 1; ok && i < argc; i++) {
        const bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--backend") == 0 && has_value) {
            ok = split(argv[++i], ret->backend, &ret->backend_count);
        } else if (strcmp(argv[i], "--backend-path") == 0 && has_value) {
            ret->plugins = argv[++i];
        } else if (strcmp(argv[i], "--backend-option") == 0 && has_value) {
            ok = split(argv[++i], ret->backend_option, &ret->backend_option_count);
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
    struct golden_options options;
    if (!parse(argc, argv, &options)) {
        fputs("usage: golden_run [--seanet] [--backend A,B] [--backend-path DIR] "
              "[--backend-option NAME:KEY=VALUE] [--fast] [--exact] [--no-optimize] "
              "[--threads N] [--precision bf16|fp16] [--cpu FEATURES] [--model A,B] SHARED\n",
              stderr);
        return 2;
    }
    return options.is_seanet ? golden_run_seanet(&options) : run_cases(&options);
}

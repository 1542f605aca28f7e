/* `inferd bench`: time of a model, as a whole and per step. Wall clock around synchronous runs;
 * filling the inputs does not count. The benchmark scripts rely on the JSON line: times_ms,
 * init_ms, first_ms, rss_mb. */
#include "engine/tools/session.h"

#include "engine/base/clock.h"
#include "engine/base/cpu.h"
#include "engine/base/escape.h"
#include "engine/base/peak.h"
#include "engine/base/text.h"
#include "engine/tools/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_options {
    const struct ifd_tool_host *host;
    struct ifd_session_options session;
    uint32_t warmup, iterations;
    bool json, layers, sorted;
};

struct bench_result {
    double *times_ms; /* per iteration */
    double init_ms, first_ms, rss_mb;
    uint64_t *step_ns; /* --layers: per iteration and step */
    uint32_t step_count;
    /** --layers: multiply-accumulates per ns of all threads; 0: unknown. */
    double peak_f32, peak_q8;
};

/* A field of /proc/self/status in MB, 0 if missing. VmRSS: resident now, VmHWM: its peak. */
static double memory_mb(const char *name)
{
    char line[256];
    double mb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof(line), file)) {
        size_t length = strlen(name);
        if (strncmp(line, name, length) == 0 && line[length] == ':') {
            mb = strtod(line + length + 1, NULL) / 1024.0;
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return mb;
}

static double since_ms(uint64_t start_ns)
{
    return (double)(ifd_monotonic_ns() - start_ns) / 1e6;
}

static enum ifd_code measure(struct ifd_session *session, const struct bench_options *options,
                             struct bench_result *result, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    struct ifd_progress progress = {0};
    for (uint32_t i = 1; code == IFD_OK && i < options->warmup; i++) {
        ifd_progress_tell(&progress, "warm-up", i, options->warmup);
        code = ifd_session_run(session, err);
    }
    for (uint32_t i = 0; code == IFD_OK && i < options->iterations; i++) {
        ifd_progress_tell(&progress, "run", i, options->iterations);
        ifd_instance_profile(session->instance, options->layers); /* from 0 */
        uint64_t start = ifd_monotonic_ns();
        code = ifd_session_run(session, err);
        result->times_ms[i] = since_ms(start);
        if (options->layers) {
            ifd_instance_step_ns(session->instance,
                                 result->step_ns + (size_t)i * result->step_count,
                                 result->step_count);
        }
    }
    ifd_progress_end(&progress);
    return code;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nearest-rank percentile of a sorted list. */
static double percentile(const double *sorted, uint32_t count, double percent)
{
    uint32_t rank = (uint32_t)((double)count * percent / 100.0);
    return sorted[rank < count ? rank : count - 1];
}

/* A step's time over all iterations: median and tails. */
struct layer {
    struct ifd_plan_step plan;
    uint32_t index;
    uint32_t timed_with; /* the step whose time includes this one's; index: it has its own */
    double macs;         /* of all steps that its time includes */
    double us, p90_us, p99_us, gmacs;
    double percent;      /* of the time of all steps */
    double peak_percent; /* 0: unknown, or no multiplications */
};

/* sorted: room for the iterations. */
static void time_layer(const struct ifd_session *session, const struct bench_options *options,
                       const struct bench_result *result, uint32_t index, double *sorted,
                       struct layer *ret)
{
    const uint32_t count = options->iterations;
    *ret = (struct layer){.index = index, .timed_with = index};
    ifd_model_step(session->model, index, &ret->plan);
    for (uint32_t i = 0; i < count; i++) {
        sorted[i] = (double)result->step_ns[(size_t)i * result->step_count + index] / 1e3;
    }
    qsort(sorted, count, sizeof(*sorted), compare_doubles);
    ret->us = percentile(sorted, count, 50);
    ret->p90_us = percentile(sorted, count, 90);
    ret->p99_us = percentile(sorted, count, 99);
    ret->macs = (double)ret->plan.step.macs * session->batch; /* the plan is for batch 1 */
}

/* Steps that run together with the one before them (a chain of CpuAcc, a partition of CpuRef) are
 * not timed alone: their counter stays 0. */
static bool is_timed_before(const struct layer *before, const struct layer *layer)
{
    return layer->p99_us <= 0 && layer->us <= 0 && layer->plan.partition == before->plan.partition;
}

static void rate_layers(const struct bench_result *result, struct layer *layer)
{
    double total_us = 0;
    for (uint32_t i = 0; i < result->step_count; i++) {
        total_us += layer[i].us;
        if (i > 0 && is_timed_before(&layer[i - 1], &layer[i])) {
            layer[i].timed_with = layer[i - 1].timed_with;
            layer[layer[i].timed_with].macs += layer[i].macs;
        }
    }
    for (uint32_t i = 0; i < result->step_count; i++) {
        struct layer *l = &layer[i];
        const double peak = strstr(l->plan.step.kernel, "q8") ? result->peak_q8 : result->peak_f32;
        l->gmacs = l->us > 0 ? l->macs / l->us / 1e3 : 0;
        l->percent = total_us > 0 ? l->us / total_us * 100 : 0;
        l->peak_percent = peak > 0 ? l->gmacs / peak * 100 : 0;
    }
}

static int compare_layers(const void *a, const void *b)
{
    const struct layer *x = a, *y = b;
    return (x->us < y->us) - (x->us > y->us);
}

static const struct ifd_writer out = {.sink = ifd_session_print};

static uint32_t threads_of(const struct bench_options *options)
{
    return options->session.threads ? options->session.threads : 1;
}

static void json_layer(const struct layer *layer, uint32_t batch, const char *between)
{
    const struct ifd_step_info *step = &layer->plan.step;
    ifd_write(&out,
              "%s{\"name\":\"%s\",\"kernel\":\"%s\",\"backend\":\"%s\",\"macs\":%llu,\"us\":%.3f,"
              "\"p90_us\":%.3f,\"p99_us\":%.3f,\"percent\":%.2f,\"gmacs\":%.2f,"
              "\"peak_percent\":%.1f,\"step\":%u,\"timed_with\":%u,\"output\":",
              between, step->name, step->kernel, layer->plan.backend,
              (unsigned long long)step->macs * batch, layer->us, layer->p90_us, layer->p99_us,
              layer->percent, layer->gmacs, layer->peak_percent, layer->index, layer->timed_with);
    ifd_write_quoted(&out, step->output);
    ifd_write(&out, "}");
}

static void json_info(const struct ifd_session *session)
{
    const struct ifd_model_info *info = session->info;
    char cpu[128];
    ifd_cpu_text(ifd_engine_cpu(session->engine)->flags, cpu, sizeof(cpu));
    ifd_write(&out, "\"constant_bytes\":%zu,\"arena_bytes\":%zu,\"from_cache\":%s,\"cache\":",
              info->constant_bytes, info->arena_bytes, info->is_from_cache ? "true" : "false");
    ifd_write_quoted(&out, info->cache);
    ifd_write(&out, ",\"exact\":%s,\"precision\":\"%s\",\"precision_why_not\":",
              info->exact ? "true" : "false", ifd_precision_name(info->precision));
    ifd_write_quoted(&out, info->precision_why_not);
    ifd_write(&out, ",\"cpu\":\"%s\"", cpu);
}

static void print_json(const struct ifd_session *session, const struct bench_options *options,
                       const struct bench_result *result, const double *sorted,
                       const struct layer *layer)
{
    const uint32_t count = options->iterations;
    ifd_write(&out, "{\"model\":");
    ifd_write_quoted(&out, options->session.path);
    ifd_write(&out,
              ",\"threads\":%u,\"batch\":%u,\"median_ms\":%.6f,\"p90_ms\":%.6f,\"p99_ms\":%.6f,"
              "\"min_ms\":%.6f,\"init_ms\":%.3f,\"first_ms\":%.3f,\"rss_mb\":%.2f,",
              threads_of(options), session->batch, percentile(sorted, count, 50),
              percentile(sorted, count, 90), percentile(sorted, count, 99), sorted[0],
              result->init_ms, result->first_ms, result->rss_mb);
    json_info(session);
    if (options->layers) {
        ifd_write(&out, ",\"peak_f32_gmacs\":%.1f,\"peak_q8_gmacs\":%.1f,\"layers\":[",
                  result->peak_f32, result->peak_q8);
        for (uint32_t i = 0; i < result->step_count; i++) {
            json_layer(&layer[i], session->batch, i ? "," : "");
        }
        ifd_write(&out, "]");
    }
    ifd_write(&out, ",\"times_ms\":[");
    for (uint32_t i = 0; i < count; i++) {
        ifd_write(&out, "%s%.6f", i ? "," : "", result->times_ms[i]);
    }
    ifd_write(&out, "]}\n");
}

/* The text in exactly this many columns; the middle of a longer one gives way. A letter may have
 * several bytes (UTF-8). */
static void print_column(const char *text, uint32_t columns)
{
    char line[1024];
    uint32_t letters = 0, at = 0;
    (void)ifd_escape_line(text, line, sizeof(line));
    for (const char *c = line; *c != '\0'; c++) {
        letters += ((unsigned char)*c & 0xc0) != 0x80;
    }
    const uint32_t head = columns / 2, tail = columns - head - 1;
    for (const char *c = line; *c != '\0'; c++) {
        at += ((unsigned char)*c & 0xc0) != 0x80;
        if (letters <= columns || at <= head || at > letters - tail) {
            (void)putchar(*c);
        } else if (at == head + 1 && ((unsigned char)*c & 0xc0) != 0x80) {
            (void)fputs("…", stdout);
        }
    }
    printf("%*s", letters < columns ? (int)(columns - letters) : 0, "");
}

/* At most 100 columns. */
static void print_layer(const struct layer *layer)
{
    if (layer->timed_with == layer->index) {
        printf("%4u %9.2f %5.1f%% %9.2f %6.1f %4.0f%% ", layer->index, layer->us, layer->percent,
               layer->p99_us, layer->gmacs, layer->peak_percent);
    } else {
        char text[32];
        (void)snprintf(text, sizeof(text), "within step %u", layer->timed_with);
        printf("%4u %-39s", layer->index, text);
    }
    print_column(layer->plan.backend, 7);
    printf(" ");
    print_column(layer->plan.step.name, 16);
    printf(" ");
    print_column(layer->plan.step.kernel, 14);
    printf(" ");
    print_column(layer->plan.step.output, 15);
    printf("\n");
}

static void print_text(const struct ifd_session *session, const struct bench_options *options,
                       const struct bench_result *result, const double *sorted,
                       const struct layer *layer)
{
    uint32_t count = options->iterations;
    const double median = percentile(sorted, count, 50);
    const int digits = median < 0.1 ? 5 : 3; /* at least four significant ones from 10 µs on */
    printf("median %.*f ms  p90 %.*f  p99 %.*f  min %.*f  (%u runs, %u threads, batch %u)\n",
           digits, median, digits, percentile(sorted, count, 90), digits,
           percentile(sorted, count, 99), digits, sorted[0], count, threads_of(options),
           session->batch);
    printf("init %.2f ms  first answer %.2f ms  peak memory %.1f MB (weights %.1f, arena %.1f)\n",
           result->init_ms, result->first_ms, result->rss_mb,
           (double)session->info->constant_bytes / 1048576.0,
           (double)session->info->arena_bytes / 1048576.0);
    if (options->session.precision) {
        printf("precision: %s%s%s\n", ifd_precision_name(session->info->precision),
               session->info->precision_why_not[0] != '\0' ? ": " : "",
               session->info->precision_why_not);
    }
    if (session->info->cache[0] != '\0') {
        printf("cache: %s\n", session->info->cache);
    }
    if (options->layers) {
        printf("peak of %u threads: %.0f GMAC/s in f32, %.0f in 8 bits\n\n"
               "step median us  total    p99 us GMAC/s  peak backend operator         kernel       "
               "  output\n",
               threads_of(options), result->peak_f32, result->peak_q8);
    }
    for (uint32_t i = 0; options->layers && i < result->step_count; i++) {
        print_layer(&layer[i]);
    }
}

static enum ifd_code report(struct ifd_session *session, const struct bench_options *options,
                            struct bench_result *result, struct ifd_err *err)
{
    size_t bytes = options->iterations * sizeof(double);
    const uint32_t layers = options->layers ? result->step_count : 0;
    double *sorted = ifd_acquire(session->alloc, 2 * bytes);
    struct layer *layer = ifd_acquire_zeroed(session->alloc, layers, sizeof(*layer));
    if (!sorted || (!layer && layers > 0)) {
        ifd_release(session->alloc, sorted, 2 * bytes);
        ifd_release(session->alloc, layer, layers * sizeof(*layer));
        return ifd_fail(err, IFD_NOMEM, "no memory for %u times", options->iterations);
    }
    memcpy(sorted, result->times_ms, bytes);
    qsort(sorted, options->iterations, sizeof(double), compare_doubles);
    if (options->layers) {
        const uint32_t flags = ifd_engine_cpu(session->engine)->flags;
        const uint32_t threads = threads_of(options);
        result->peak_f32 = threads * ifd_peak_f32(flags);
        result->peak_q8 = threads * ifd_peak_q8(flags);
        for (uint32_t i = 0; i < layers; i++) {
            time_layer(session, options, result, i, sorted + options->iterations, &layer[i]);
        }
        rate_layers(result, layer);
    }
    if (options->sorted && layers > 0) {
        qsort(layer, layers, sizeof(*layer), compare_layers);
    }
    if (options->json) {
        print_json(session, options, result, sorted, layer);
    } else {
        print_text(session, options, result, sorted, layer);
    }
    ifd_release(session->alloc, sorted, 2 * bytes);
    ifd_release(session->alloc, layer, layers * sizeof(*layer));
    return IFD_OK;
}

static enum ifd_code check(void *arg, struct ifd_err *err)
{
    const struct bench_options *options = arg;
    if (options->sorted && !options->layers) {
        return ifd_fail(err, IFD_INVALID, "--sort needs --layers");
    }
    return ifd_session_check(options->host, &options->session, err);
}

static enum ifd_code bench(void *arg, struct ifd_err *err)
{
    const struct bench_options *options = arg;
    struct bench_result result = {0};
    struct ifd_session session;
    double before_mb = memory_mb("VmRSS");
    uint64_t start = ifd_monotonic_ns();
    enum ifd_code code = ifd_session_open(options->host, &options->session, &session, err);
    if (code != IFD_OK) {
        return code;
    }
    result.init_ms = since_ms(start);
    ifd_session_random_inputs(&session, 1);
    start = ifd_monotonic_ns();
    code = ifd_session_run(&session, err);
    result.first_ms = result.init_ms + since_ms(start);

    result.step_count = ifd_model_step_count(session.model);
    result.times_ms = ifd_acquire_zeroed(session.alloc, options->iterations, sizeof(double));
    const size_t cells = options->layers ? (size_t)result.step_count * options->iterations : 0;
    result.step_ns = ifd_acquire_zeroed(session.alloc, cells, sizeof(uint64_t));
    if (code == IFD_OK && (!result.times_ms || (cells > 0 && !result.step_ns))) {
        code = ifd_fail(err, IFD_NOMEM, "no memory for %u times", options->iterations);
    }
    if (code == IFD_OK) {
        code = measure(&session, options, &result, err);
    }
    result.rss_mb = memory_mb("VmHWM") - before_mb;
    if (code == IFD_OK) {
        code = report(&session, options, &result, err);
    }
    ifd_release(session.alloc, result.times_ms, options->iterations * sizeof(double));
    ifd_release(session.alloc, result.step_ns, cells * sizeof(uint64_t));
    ifd_session_close(&session);
    return code;
}

int ifd_tool_bench(const struct ifd_tool_host *host, int argc, char **argv)
{
    struct bench_options options = {.host = host, .warmup = 5, .iterations = 50};
    const struct ifd_arg args[] = {
        IFD_SESSION_ARGS(options.session),
        {"batch", IFD_ARG_NUMBER, &options.session.batch, 1, IFD_MAX_BATCH, "N",
         "samples per inference (default: as in the model file)"},
        {"warmup", IFD_ARG_NUMBER, &options.warmup, 0, 1000000, "N",
         "runs before the measurement (5)"},
        {"iterations", IFD_ARG_NUMBER, &options.iterations, 1, 1000000, "N", "measured runs (50)"},
        {"layers", IFD_ARG_SWITCH, &options.layers, 0, 0, NULL, "time every step of the plan"},
        {"sort", IFD_ARG_SWITCH, &options.sorted, 0, 0, NULL, "with --layers: slowest first"},
        {"json", IFD_ARG_SWITCH, &options.json, 0, 0, NULL, "one line of JSON instead of text"},
    };
    const struct ifd_command command = {
        "bench", "MODEL", "Measures a model on random input.", args, sizeof(args) / sizeof(args[0]),
        check,   bench};
    return ifd_command_main(&command, argc, argv, &options.session.path, &options);
}

/* `inferd compare`: differences of outputs between two backends, or between a backend and golden
 * files. */
#include "engine/tools/npy.h"
#include "engine/tools/session.h"

#include "engine/base/file.h"
#include "engine/tools/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define GOLDEN_BYTES_MAX ((size_t)2 * 1024 * 1024 * 1024 - 1)

struct compare_options {
    const struct ifd_tool_host *host;
    struct ifd_session_options session;
    const char *with; /* other backend */
    struct ifd_arg_list golden;
    uint32_t runs;
    bool with_exact;
};

/* Errors of one output over all its elements and runs: got - want; integers as stored. */
struct error_stat {
    double min, max, sum, sum_squares, want_min, want_max;
    uint64_t count, different;
};

static double element(const struct ifd_tensor *tensor, size_t index)
{
    const uint8_t *at = (const uint8_t *)tensor->data + index * ifd_dtype_bytes(tensor->dtype);
    union {
        float f32;
        double f64;
        int16_t s16;
        int32_t s32;
        int64_t s64;
    } value = {.f64 = 0};
    memcpy(&value, at, ifd_dtype_bytes(tensor->dtype) > 8 ? 8 : ifd_dtype_bytes(tensor->dtype));
    switch (tensor->dtype) {
    case IFD_F32:
        return (double)value.f32;
    case IFD_F64:
        return value.f64;
    case IFD_S16:
        return value.s16;
    case IFD_S32:
        return value.s32;
    case IFD_S64:
        return (double)value.s64;
    case IFD_S8:
        return (int8_t)*at;
    default:
        return *at;
    }
}

static enum ifd_code add_errors(struct error_stat *stat, const struct ifd_tensor *got,
                                const struct ifd_tensor *want, const char *name,
                                struct ifd_err *err)
{
    if (got->dtype != want->dtype || got->bytes != want->bytes) {
        return ifd_fail(err, IFD_INVALID, "output \"%s\": %zu bytes of %s, expected %zu of %s",
                        name, got->bytes, ifd_dtype_name(got->dtype), want->bytes,
                        ifd_dtype_name(want->dtype));
    }
    for (size_t i = 0; i < got->bytes / ifd_dtype_bytes(got->dtype); i++) {
        double wanted = element(want, i);
        double error = element(got, i) - wanted;
        stat->min = stat->count == 0 || error < stat->min ? error : stat->min;
        stat->max = stat->count == 0 || error > stat->max ? error : stat->max;
        stat->want_min = stat->count == 0 || wanted < stat->want_min ? wanted : stat->want_min;
        stat->want_max = stat->count == 0 || wanted > stat->want_max ? wanted : stat->want_max;
        stat->sum += error;
        stat->sum_squares += error * error;
        stat->different += error != 0 ? 1 : 0;
        stat->count++;
    }
    return IFD_OK;
}

static void print_errors(const struct ifd_session *session, const struct error_stat *stats)
{
    printf("%-32s %10s %12s %12s %12s %12s %12s\n", "output", "elements", "different", "min", "max",
           "avg", "std");
    for (uint32_t i = 0; i < session->info->output_count; i++) {
        const struct error_stat *stat = &stats[i];
        double count = stat->count ? (double)stat->count : 1;
        double average = stat->sum / count;
        double variance = stat->sum_squares / count - average * average;
        double range = stat->want_max - stat->want_min;
        double largest = fmax(fabs(stat->min), fabs(stat->max));
        printf("%-32s %10llu %12llu %12.6g %12.6g %12.6g %12.6g   max/range %.3g\n",
               session->info->output[i].name, (unsigned long long)stat->count,
               (unsigned long long)stat->different, stat->min, stat->max, average,
               sqrt(fmax(variance, 0)), range > 0 ? largest / range : largest);
    }
}

static enum ifd_code compare_golden(struct ifd_session *session,
                                    const struct compare_options *options, struct error_stat *stats,
                                    struct ifd_err *err)
{
    if (options->golden.count != session->info->output_count) {
        return ifd_fail(err, IFD_INVALID,
                        "%u golden files given (--golden), the model has %u outputs",
                        options->golden.count, session->info->output_count);
    }
    enum ifd_code code = ifd_session_run(session, err);
    for (uint32_t i = 0; code == IFD_OK && i < options->golden.count; i++) {
        struct ifd_bytes file = {0};
        struct ifd_tensor want = {0};
        code = ifd_file_read(options->golden.item[i], GOLDEN_BYTES_MAX, session->alloc, &file, err);
        if (code != IFD_OK) {
            return code;
        }
        code = ifd_npy_parse(file, &want, err);
        if (code == IFD_OK) {
            code = add_errors(&stats[i], &session->output[i], &want, session->info->output[i].name,
                              err);
        }
        ifd_release_tensor(session->alloc, (void *)file.data, file.size);
        if (code != IFD_OK) {
            ifd_err_prefix(err, "%s", options->golden.item[i]);
        }
    }
    return code;
}

/* Options of the model's run on the other backends. */
static struct ifd_session_options other_options(const struct compare_options *options)
{
    struct ifd_session_options other = options->session;
    other.backends = options->with;
    other.exact = options->with_exact;
    other.fast = options->session.fast && !options->with_exact;
    other.precision = NULL;
    other.inputs.count = 0; /* its inputs are copies */
    return other;
}

static enum ifd_code compare_backends(struct ifd_session *session,
                                      const struct compare_options *options,
                                      struct error_stat *stats, struct ifd_err *err)
{
    struct ifd_session other;
    struct ifd_session_options again = other_options(options);
    again.batch = session->batch;
    enum ifd_code code = ifd_session_open(options->host, &again, &other, err);
    if (code != IFD_OK) {
        return code;
    }
    uint32_t runs = options->session.inputs.count || !options->runs ? 1 : options->runs;
    struct ifd_progress progress = {0};
    for (uint32_t run = 0; code == IFD_OK && run < runs; run++) {
        ifd_progress_tell(&progress, "run", run, runs);
        if (options->session.inputs.count == 0) {
            ifd_session_random_inputs(session, run + 1);
        }
        for (uint32_t i = 0; i < session->info->input_count; i++) {
            memcpy(other.input[i].data, session->input[i].data, session->input[i].bytes);
        }
        code = ifd_session_run(session, err);
        if (code == IFD_OK) {
            code = ifd_session_run(&other, err);
        }
        for (uint32_t i = 0; code == IFD_OK && i < session->info->output_count; i++) {
            code = add_errors(&stats[i], &session->output[i], &other.output[i],
                              session->info->output[i].name, err);
        }
    }
    ifd_progress_end(&progress);
    ifd_session_close(&other);
    return code;
}

static enum ifd_code check(void *arg, struct ifd_err *err)
{
    const struct compare_options *options = arg;
    if (!options->with == !options->golden.count) {
        return ifd_fail(err, IFD_INVALID,
                        "got %s, expected either --with LIST or --golden FILE per output",
                        options->with ? "both" : "neither");
    }
    enum ifd_code code = ifd_session_check(options->host, &options->session, err);
    if (code == IFD_OK && options->with) {
        const struct ifd_session_options other = other_options(options);
        code = ifd_session_check(options->host, &other, err);
    }
    return code;
}

static enum ifd_code compare(void *arg, struct ifd_err *err)
{
    const struct compare_options *options = arg;
    struct ifd_session session;
    struct ifd_session_options opened = options->session;
    opened.needs_inputs = options->golden.count > 0;
    enum ifd_code code = ifd_session_open(options->host, &opened, &session, err);
    if (code != IFD_OK) {
        return code;
    }
    size_t count = session.info->output_count;
    struct error_stat *stats = ifd_acquire_zeroed(session.alloc, count, sizeof(*stats));
    if (!stats) {
        code = ifd_fail(err, IFD_NOMEM, "no memory for statistics");
    }
    if (code == IFD_OK) {
        code = options->with ? compare_backends(&session, options, stats, err)
                             : compare_golden(&session, options, stats, err);
    }
    if (code == IFD_OK) {
        print_errors(&session, stats);
    }
    ifd_release(session.alloc, stats, count * sizeof(*stats));
    ifd_session_close(&session);
    return code;
}

int ifd_tool_compare(const struct ifd_tool_host *host, int argc, char **argv)
{
    struct compare_options options = {.host = host};
    const struct ifd_arg args[] = {
        IFD_SESSION_ARGS(options.session),
        {"with", IFD_ARG_TEXT, &options.with, 0, 0, "LIST",
         "compare with these backends: error = result - theirs"},
        {"golden", IFD_ARG_LIST, &options.golden, 0, 0, "FILE",
         "compare with this output (.npy); once per output"},
        {"input", IFD_ARG_LIST, &options.session.inputs, 0, 0, "[NAME=]FILE",
         "an input: .npy, a picture or raw bytes; once per input (default: random)"},
        {"runs", IFD_ARG_NUMBER, &options.runs, 1, 1000000, "N", "runs on random inputs (1)"},
        {"batch", IFD_ARG_NUMBER, &options.session.batch, 1, IFD_MAX_BATCH, "N",
         "samples per inference (default: as in the inputs or the model)"},
        {"with-exact", IFD_ARG_SWITCH, &options.with_exact, 0, 0, NULL,
         "bit-exact kernels for the other backends"},
    };
    const struct ifd_command command = {
        "compare",
        "MODEL",
        "Prints the error of every output against another backend or golden files.",
        args,
        sizeof(args) / sizeof(args[0]),
        check,
        compare};
    return ifd_command_main(&command, argc, argv, &options.session.path, &options);
}

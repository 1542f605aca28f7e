/* `inferd check`: whether a model runs here: what is not supported, what falls back to a slower
 * backend, what it takes of memory and time. */
#include "engine/tools/session.h"

#include "engine/base/clock.h"
#include "engine/base/text.h"
#include "engine/tools/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS    5
#define OPS_MAX 12 /* names of operators that a line lists */

struct check_options {
    const struct ifd_tool_host *host;
    struct ifd_session_options session;
};

static double mb(size_t bytes)
{
    return (double)bytes / 1048576.0;
}

/* The backend that is preferred: the first of --backend, else the program's first. */
static bool is_first_choice(const struct check_options *options, const char *name)
{
    const char *list = options->session.backends;
    const size_t size = strlen(name);
    return list ? strncmp(list, name, size) == 0 && (list[size] == ',' || list[size] == '\0')
                : strcmp(options->host->backends[0]->name, name) == 0;
}

static void print_ports(const char *what, const struct ifd_port *port, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct ifd_desc *desc = &port[i].desc;
        printf("%s %s[", what, ifd_dtype_name(desc->dtype));
        for (uint32_t d = 0; d < desc->shape.rank; d++) {
            const long long dim = (long long)desc->shape.dim[d];
            printf(dim < 0 ? "%s?" : "%s%lld", d > 0 ? "," : "", dim);
        }
        printf("] ");
        const struct ifd_writer out = {.sink = ifd_session_print};
        ifd_write_quoted(&out, port[i].name);
        if (port[i].signature_name) {
            ifd_write(&out, ", in the signature ");
            ifd_write_quoted(&out, port[i].signature_name);
        }
        printf("\n");
    }
}

/* Steps and their share of the time, backend by backend in the order of the plan; of those that are
 * not the first choice the operators, too. */
static void print_backend(const struct ifd_session *session, const struct check_options *options,
                          const char *name, const uint64_t *step_ns)
{
    const uint32_t steps = session->info->step_count;
    const char *listed[OPS_MAX];
    uint32_t count = 0, kinds = 0;
    uint64_t ns = 0, all_ns = 0;
    const bool is_fallback = !is_first_choice(options, name);
    for (uint32_t i = 0; i < steps; i++) {
        struct ifd_plan_step step;
        ifd_model_step(session->model, i, &step);
        all_ns += step_ns[i];
        if (strcmp(step.backend, name) != 0) {
            continue;
        }
        count++;
        ns += step_ns[i];
        uint32_t k = 0;
        while (k < kinds && strcmp(listed[k], step.step.name) != 0) {
            k++;
        }
        if (k == kinds && kinds < OPS_MAX) {
            listed[kinds++] = step.step.name;
        }
    }
    printf("%s: %u of %u steps, %.0f %% of the time", name, count, steps,
           all_ns > 0 ? (double)ns / (double)all_ns * 100 : 0);
    for (uint32_t k = 0; is_fallback && k < kinds; k++) {
        printf("%s%s", k == 0 ? ": falls back for " : ", ", listed[k]);
    }
    printf("%s\n", is_fallback && kinds == OPS_MAX ? ", …" : "");
}

static void print_backends(const struct ifd_session *session, const struct check_options *options,
                           const uint64_t *step_ns)
{
    for (uint32_t i = 0; i < session->info->step_count; i++) {
        struct ifd_plan_step step, before;
        ifd_model_step(session->model, i, &step);
        uint32_t k = 0;
        for (; k < i; k++) {
            ifd_model_step(session->model, k, &before);
            if (strcmp(before.backend, step.backend) == 0) {
                break;
            }
        }
        if (k == i) {
            print_backend(session, options, step.backend, step_ns);
        }
    }
}

static int compare_times(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Runs the model once to warm up, then RUNS times; the last one tells the time of each step. */
static enum ifd_code measure(struct ifd_session *session, uint64_t *step_ns, uint64_t *ret_ns,
                             struct ifd_err *err)
{
    uint64_t times[RUNS];
    struct ifd_progress progress = {0};
    ifd_session_random_inputs(session, 1);
    enum ifd_code code = ifd_session_run(session, err);
    for (uint32_t i = 0; i < RUNS && !code; i++) {
        ifd_progress_tell(&progress, "run", i, RUNS);
        ifd_instance_profile(session->instance, true);
        const uint64_t start_ns = ifd_monotonic_ns();
        code = ifd_session_run(session, err);
        times[i] = ifd_monotonic_ns() - start_ns;
    }
    ifd_progress_end(&progress);
    if (!code) {
        ifd_instance_step_ns(session->instance, step_ns, session->info->step_count);
        qsort(times, RUNS, sizeof(*times), compare_times);
        *ret_ns = times[RUNS / 2];
    }
    return code;
}

/* Nothing runs before somebody knows a size. */
static void report_unsized(const struct ifd_model_info *info, const char *path)
{
    printf("%s loads: %s %u\n", path, info->format, info->format_version);
    print_ports("input", info->input, info->input_count);
    print_ports("output", info->output, info->output_count);
    printf("only a request knows its sizes; those that were tried do not fit: %s\n", info->unsized);
}

static void print_signatures(const struct ifd_model_info *info)
{
    if (info->signatures[0] != '\0') {
        printf("signatures: %s; the parameter `signature` of a config chooses\n", info->signatures);
    }
}

static enum ifd_code report(struct ifd_session *session, const struct check_options *options,
                            uint64_t *step_ns, struct ifd_err *err)
{
    const struct ifd_model_info *info = session->info;
    uint64_t run_ns = 0;
    if (info->unsized[0] != '\0') {
        report_unsized(info, options->session.path);
        return IFD_OK;
    }
    enum ifd_code code = measure(session, step_ns, &run_ns, err);
    if (code) {
        return code;
    }
    printf("%s runs: %s %u, %u operators\n", options->session.path, info->format,
           info->format_version, info->node_count);
    print_ports("input", info->input, info->input_count);
    print_ports("output", info->output, info->output_count);
    print_signatures(info);
    print_backends(session, options, step_ns);
    printf("memory: %.2f MB of weights (%.2f packed beside the file), %.2f MB for each instance\n",
           mb(info->constant_bytes), mb(info->packed_bytes),
           mb(ifd_instance_bytes(session->instance)));
    if (info->precision_why_not[0] != '\0') {
        printf("precision: %s: %s\n", ifd_precision_name(info->precision), info->precision_why_not);
    }
    if (info->taken_back[0] != '\0') {
        printf("left to the next backend: %s\n", info->taken_back);
    }
    printf("speed: %.3f ms a run (median of %u, %u thread%s); inferd bench says more\n",
           (double)run_ns / 1e6, RUNS, options->session.threads ? options->session.threads : 1,
           options->session.threads > 1 ? "s" : "");
    return IFD_OK;
}

static enum ifd_code check_options(void *arg, struct ifd_err *err)
{
    const struct check_options *options = arg;
    return ifd_session_check(options->host, &options->session, err);
}

static enum ifd_code check(void *arg, struct ifd_err *err)
{
    const struct check_options *options = arg;
    struct ifd_session session;
    enum ifd_code code = ifd_session_open(options->host, &options->session, &session, err);
    if (code) {
        return code;
    }
    const size_t steps = session.info->step_count;
    uint64_t *step_ns = ifd_acquire_zeroed(session.alloc, steps, sizeof(*step_ns));
    code = step_ns || steps == 0 ? report(&session, options, step_ns, err)
                                 : ifd_fail(err, IFD_NOMEM, "no memory for %zu times", steps);
    ifd_release(session.alloc, step_ns, steps * sizeof(*step_ns));
    ifd_session_close(&session);
    return code;
}

int ifd_tool_check(const struct ifd_tool_host *host, int argc, char **argv)
{
    struct check_options options = {.host = host};
    const struct ifd_arg args[] = {IFD_SESSION_ARGS(options.session)};
    const struct ifd_command command = {"check",
                                        "MODEL",
                                        "Says whether a model runs, on which backends, with how "
                                        "much memory, how fast.",
                                        args,
                                        sizeof(args) / sizeof(args[0]),
                                        check_options,
                                        check};
    return ifd_command_main(&command, argc, argv, &options.session.path, &options);
}

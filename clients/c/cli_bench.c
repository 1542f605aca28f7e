/* inferctl bench: asks one request again and again, by several clients; reports the rate and how
 * long answers took. */
#include "cli.h"
#include "spread.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

/* What all clients share. */
struct bench {
    const struct ifd_cli_arguments *args;
    const struct ifd_cli_request *request;
    uint64_t start_ns, counted_ns, end_ns; /* counted_ns: end of the warm-up */
    atomic_bool is_given_up;               /* no more requests */
    atomic_ulong next;                     /* place of the next request in the open loop */
    atomic_ulong answered;                 /* warm-up included, for who watches */
};

struct worker {
    struct bench *bench;
    struct ifd_client *client;
    pthread_t thread;
    bool is_started;
    unsigned long failed;
    struct ifd_client_err err; /* of the first failure */
    struct ifd_spread spread;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t at_ns)
{
    const struct timespec at = {.tv_sec = (time_t)(at_ns / SECOND_NS),
                                .tv_nsec = (long)(at_ns % SECOND_NS)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0) {
    }
}

/* When the next request is due: at once, or at its place in the open loop. A late client begins at
 * once, and its latency counts from the time that was due: waiting for it is part of the answer. */
static uint64_t next_due_ns(struct bench *bench)
{
    if (bench->args->rate == 0) {
        return now_ns();
    }
    const uint64_t place = atomic_fetch_add(&bench->next, 1);
    return bench->start_ns + place / bench->args->rate * SECOND_NS +
           place % bench->args->rate * SECOND_NS / bench->args->rate;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct bench *bench = w->bench;
    for (;;) {
        struct ifd_client_result *result = NULL;
        struct ifd_client_err err = {0};
        const uint64_t due_ns = next_due_ns(bench);
        if (due_ns >= bench->end_ns || atomic_load(&bench->is_given_up)) {
            return NULL;
        }
        sleep_until(due_ns);
        const enum ifd_client_code code =
            ifd_cli_request_send(w->client, bench->request, &result, &err);
        const uint64_t ns = now_ns() - due_ns;
        ifd_client_result_destroy(result);
        atomic_fetch_add(&bench->answered, 1);
        if (code != IFD_CLIENT_OK) {
            w->err = w->failed == 0 ? err : w->err;
            w->failed++;
        } else if (due_ns >= bench->counted_ns) {
            ifd_spread_add(&w->spread, ns);
        }
        if (code == IFD_CLIENT_TRANSPORT) {
            sleep_until(now_ns() + SECOND_NS / 10); /* nobody is there: do not spin */
        }
    }
}

/* A line on the terminal each second, until the end. */
static void watch(struct bench *bench)
{
    const bool is_shown = isatty(STDERR_FILENO) == 1;
    unsigned long before = 0;
    for (uint64_t at_ns = bench->start_ns + SECOND_NS; at_ns < bench->end_ns; at_ns += SECOND_NS) {
        sleep_until(at_ns);
        const unsigned long answered = atomic_load(&bench->answered);
        if (is_shown) {
            fprintf(stderr, "\r%s %llu of %u s: %lu requests/s \033[K",
                    at_ns <= bench->counted_ns ? "warm-up" : "measuring",
                    (unsigned long long)((at_ns - bench->start_ns) / SECOND_NS),
                    bench->args->warm_up + bench->args->seconds, answered - before);
        }
        before = answered;
    }
    if (is_shown) {
        fprintf(stderr, "\r\033[K");
    }
}

static const struct {
    const char *name;
    double share;
} percentiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}};

enum { PERCENTILE_COUNT = sizeof(percentiles) / sizeof(percentiles[0]) };

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

static double mean_ms(const struct ifd_spread *spread)
{
    return spread->count > 0 ? ms(spread->sum_ns) / (double)spread->count : 0;
}

static enum ifd_client_code report_json(const struct ifd_cli_arguments *args,
                                        const struct ifd_spread *spread, unsigned long failed,
                                        struct ifd_client_err *err)
{
    json_t *latency = json_pack("{s:f, s:f}", "mean", mean_ms(spread), "max", ms(spread->max_ns));
    for (size_t i = 0; i < PERCENTILE_COUNT; i++) {
        json_object_set_new(latency, percentiles[i].name,
                            json_real(ms(ifd_spread_at(spread, percentiles[i].share))));
    }
    json_t *root = json_pack(
        "{s:s, s:s, s:i, s:i, s:i, s:i, s:I, s:I, s:f, s:o}", "model", args->model, "loop",
        args->rate > 0 ? "open" : "closed", "clients", (int)args->clients, "rate", (int)args->rate,
        "warm_up_s", (int)args->warm_up, "seconds", (int)args->seconds, "requests",
        (json_int_t)spread->count, "failed", (json_int_t)failed, "requests_per_s",
        (double)spread->count / (double)args->seconds, "latency_ms", latency);
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(root);
    if (!text) {
        return ifd_cli_fail(err, "bench", "out of memory");
    }
    printf("%s\n", text);
    free(text);
    return IFD_CLIENT_OK;
}

static void report_text(const struct ifd_cli_arguments *args, const struct ifd_spread *spread,
                        unsigned long failed)
{
    printf("%s: %u client%s, ", args->model, args->clients, args->clients == 1 ? "" : "s");
    if (args->rate > 0) {
        printf("open loop of %u requests/s", args->rate);
    } else {
        printf("closed loop");
    }
    printf(", %u s after %u s of warm-up\nrequests %llu, %.1f/s, failed %lu\n", args->seconds,
           args->warm_up, (unsigned long long)spread->count,
           (double)spread->count / (double)args->seconds, failed);
    printf("latency mean %.3f ms", mean_ms(spread));
    for (size_t i = 0; i < PERCENTILE_COUNT; i++) {
        printf(", %s %.3f", percentiles[i].name, ms(ifd_spread_at(spread, percentiles[i].share)));
    }
    printf(", max %.3f\n", ms(spread->max_ns));
}

/* Adds up what the clients saw. The first failure decides how the command ends. */
static enum ifd_client_code report(const struct ifd_cli_arguments *args, struct worker *worker,
                                   struct ifd_client_err *err)
{
    struct ifd_spread *all = &worker[0].spread;
    unsigned long failed = worker[0].failed;
    const struct ifd_client_err *first = failed > 0 ? &worker[0].err : NULL;
    for (unsigned i = 1; i < args->clients; i++) {
        ifd_spread_merge(all, &worker[i].spread);
        first = first || worker[i].failed == 0 ? first : &worker[i].err;
        failed += worker[i].failed;
    }
    enum ifd_client_code code = IFD_CLIENT_OK;
    if (args->is_report_json) {
        code = report_json(args, all, failed, err);
    } else {
        report_text(args, all, failed);
    }
    if (code == IFD_CLIENT_OK && first) {
        *err = *first;
        code = first->code;
    }
    return code;
}

/* The first request asks whether the server answers at all, before many do. */
static enum ifd_client_code try_once(struct ifd_client *client,
                                     const struct ifd_cli_request *request,
                                     struct ifd_client_err *err)
{
    struct ifd_client_result *result = NULL;
    enum ifd_client_code code = ifd_cli_request_send(client, request, &result, err);
    ifd_client_result_destroy(result);
    return code;
}

static enum ifd_client_code start_workers(struct bench *bench, struct worker *worker,
                                          struct ifd_client_err *err)
{
    const struct ifd_cli_arguments *args = bench->args;
    enum ifd_client_code code = IFD_CLIENT_OK;
    for (unsigned i = 0; i < args->clients && code == IFD_CLIENT_OK; i++) {
        worker[i].bench = bench;
        code = ifd_client_create(args->connection, &worker[i].client, err);
    }
    bench->start_ns = now_ns();
    bench->counted_ns = bench->start_ns + args->warm_up * SECOND_NS;
    bench->end_ns = bench->counted_ns + args->seconds * SECOND_NS;
    for (unsigned i = 0; i < args->clients && code == IFD_CLIENT_OK; i++) {
        worker[i].is_started = pthread_create(&worker[i].thread, NULL, work, &worker[i]) == 0;
        if (!worker[i].is_started) {
            atomic_store(&bench->is_given_up, true);
            code = ifd_cli_fail(err, "bench", "no thread for another client");
        }
    }
    return code;
}

enum ifd_client_code ifd_cli_bench(struct ifd_client *client, const struct ifd_cli_arguments *args,
                                   struct ifd_client_err *err)
{
    struct ifd_cli_request *request = NULL;
    struct bench bench = {.args = args};
    struct worker *worker = calloc(args->clients, sizeof(*worker));
    enum ifd_client_code code = worker ? ifd_cli_request_create(client, args, &request, err)
                                       : ifd_cli_fail(err, "bench", "out of memory");
    if (code == IFD_CLIENT_OK) {
        bench.request = request;
        code = try_once(client, request, err);
    }
    if (code == IFD_CLIENT_OK) {
        code = start_workers(&bench, worker, err);
        if (code == IFD_CLIENT_OK) {
            watch(&bench);
        }
        for (unsigned i = 0; i < args->clients; i++) {
            if (worker[i].is_started) {
                pthread_join(worker[i].thread, NULL);
            }
            ifd_client_destroy(worker[i].client);
        }
        if (code == IFD_CLIENT_OK) {
            code = report(args, worker, err);
        }
    }
    ifd_cli_request_destroy(request);
    free(worker);
    return code;
}

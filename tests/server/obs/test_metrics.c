#include "server/obs/metrics.h"

#include <stdio.h>
#include <string.h>

#include "server/obs/process.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

struct fixture {
    struct ifd_metrics *metrics;
    struct ifd_buf buf;
    struct ifd_err err;
};

static void set_up(struct fixture *f, bool triton_names)
{
    const struct ifd_metrics_options options = {
        .alloc = ifd_alloc_system(), .version = "1.2 \"\\\n", .triton_names = triton_names};
    *f = (struct fixture){0};
    REQUIRE_OK(ifd_metrics_create(&options, &f->metrics, &f->err), &f->err);
    ifd_buf_init(&f->buf, ifd_alloc_system(), (size_t)1 << 20);
}

static void tear_down(struct fixture *f)
{
    ifd_buf_finish(&f->buf);
    ifd_metrics_destroy(f->metrics);
}

static struct ifd_metric_set *take(struct fixture *f, const char *name, const char *version)
{
    struct ifd_metric_set *set = NULL;
    REQUIRE_OK(ifd_metrics_take_model(f->metrics, name, version, &set, &f->err), &f->err);
    return set;
}

static const char *text_of(struct fixture *f)
{
    f->buf.size = 0;
    ifd_metrics_write(f->metrics, &f->buf);
    ifd_buf_add(&f->buf, "", 1);
    REQUIRE(!f->buf.failed);
    return (const char *)f->buf.data;
}

/* The lines of one family, from its HELP to the next. */
static const char *family(struct fixture *f, const char *name)
{
    static char part[16384], head[128];
    const char *text = text_of(f);
    (void)snprintf(head, sizeof(head), "# HELP %s ", name);
    const char *begin = strstr(text, head);
    part[0] = '\0';
    if (begin) {
        const char *end = strstr(begin + 1, "# HELP ");
        size_t size = end ? (size_t)(end - begin) : strlen(begin);
        REQUIRE(size < sizeof(part));
        memcpy(part, begin, size);
        part[size] = '\0';
    }
    return part;
}

static void counters_have_one_line_for_each_label(void)
{
    struct fixture f;
    set_up(&f, true);
    struct ifd_metric_set *server = ifd_metrics_server(f.metrics);
    ifd_metric_add(server, IFD_METRIC_HTTP_REQUESTS, 1, 3);
    ifd_metric_add(server, IFD_METRIC_HTTP_REQUESTS, 1, 4);
    ifd_metric_add_shared(server, IFD_METRIC_HTTP_REQUESTS, 5, UINT64_C(18446744073709551615));
    EXPECT_TEXT(family(&f, "inferd_http_requests_total"),
                "# HELP inferd_http_requests_total Finished requests of all routes, by outcome.\n"
                "# TYPE inferd_http_requests_total counter\n"
                "inferd_http_requests_total{outcome=\"ok\"} 0\n"
                "inferd_http_requests_total{outcome=\"client_error\"} 7\n"
                "inferd_http_requests_total{outcome=\"shed\"} 0\n"
                "inferd_http_requests_total{outcome=\"timeout\"} 0\n"
                "inferd_http_requests_total{outcome=\"failed\"} 0\n"
                "inferd_http_requests_total{outcome=\"aborted\"} 18446744073709551615\n");
    tear_down(&f);
}

static void gauges_go_down(void)
{
    struct fixture f;
    set_up(&f, true);
    struct ifd_metric_set *server = ifd_metrics_server(f.metrics);
    ifd_metric_add(server, IFD_METRIC_CONNECTIONS_OPEN, 0, 2);
    ifd_metric_add(server, IFD_METRIC_CONNECTIONS_OPEN, 0, (uint64_t)-1);
    EXPECT_INT(ifd_metric_get(server, IFD_METRIC_CONNECTIONS_OPEN, 0), 1);
    EXPECT_HAS(text_of(&f), "# TYPE inferd_http_connections_open gauge\n"
                            "inferd_http_connections_open 1\n");
    tear_down(&f);
}

static void histograms_are_cumulative_and_exact(void)
{
    struct fixture f;
    set_up(&f, true);
    struct ifd_metric_set *set = take(&f, "m", "7");
    const uint64_t values[] = {10000, 10001, 2500000000, UINT64_C(10000000001), 0};
    for (size_t i = 0; i < 5; i++) {
        ifd_metric_observe(set, IFD_METRIC_REQUEST_SECONDS, 0, values[i]);
    }
    EXPECT_TEXT(family(&f, "inferd_request_seconds"),
                "# HELP inferd_request_seconds Time of inference requests of every outcome, from "
                "their headers to the end of their answer.\n"
                "# TYPE inferd_request_seconds histogram\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"1e-05\"} 2\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"2.5e-05\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"5e-05\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"0.0001\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"0.00025\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"0.0005\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"0.001\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"0.0025\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"0.005\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"0.01\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"0.015\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"0.02\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"0.025\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"0.035\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"0.05\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"0.075\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"0.1\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"0.15\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"0.2\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"0.25\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"0.5\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"1\"} 3\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"2.5\"} 4\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"5\"} 4\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"10\"} 4\n"
                "inferd_request_seconds_bucket{model=\"m\",version=\"7\",le=\"+Inf\"} 5\n"
                "inferd_request_seconds_sum{model=\"m\",version=\"7\"} 12.500020002\n"
                "inferd_request_seconds_count{model=\"m\",version=\"7\"} 5\n");
    ifd_metrics_give_model(f.metrics, set);
    tear_down(&f);
}

static void labels_of_one_histogram_do_not_mix(void)
{
    struct fixture f;
    set_up(&f, true);
    struct ifd_metric_set *set = take(&f, "m", "1");
    ifd_metric_observe(set, IFD_METRIC_STAGE_SECONDS, IFD_STAGE_QUEUE, UINT64_C(20000000000));
    ifd_metric_observe(set, IFD_METRIC_STAGE_SECONDS, IFD_STAGE_ENCODE, 1500);
    const char *text = family(&f, "inferd_stage_seconds");
    EXPECT_HAS(text, "_count{model=\"m\",version=\"1\",stage=\"decode\"} 0\n");
    EXPECT_HAS(text, "_bucket{model=\"m\",version=\"1\",stage=\"queue\",le=\"10\"} 0\n");
    EXPECT_HAS(text, "_bucket{model=\"m\",version=\"1\",stage=\"queue\",le=\"+Inf\"} 1\n");
    EXPECT_HAS(text, "_sum{model=\"m\",version=\"1\",stage=\"queue\"} 20\n");
    EXPECT_HAS(text, "_count{model=\"m\",version=\"1\",stage=\"compute\"} 0\n");
    EXPECT_HAS(text, "_bucket{model=\"m\",version=\"1\",stage=\"encode\",le=\"1e-05\"} 1\n");
    EXPECT_HAS(text, "_sum{model=\"m\",version=\"1\",stage=\"encode\"} 0.0000015\n");
    ifd_metric_observe(set, IFD_METRIC_BATCH_SIZE, 0, 256);
    ifd_metric_observe(set, IFD_METRIC_BATCH_SIZE, 0, 257);
    text = family(&f, "inferd_execution_batch_size");
    EXPECT_HAS(text, "le=\"128\"} 0\n");
    EXPECT_HAS(text, "le=\"256\"} 1\n");
    EXPECT_HAS(text, "le=\"+Inf\"} 2\n");
    EXPECT_HAS(text, "_sum{model=\"m\",version=\"1\"} 513\n");
    ifd_metrics_give_model(f.metrics, set);
    tear_down(&f);
}

static void label_values_are_escaped(void)
{
    struct fixture f;
    set_up(&f, true);
    struct ifd_metric_set *set = take(&f, "a\"b\\c\nd", "1");
    EXPECT_HAS(text_of(&f), "inferd_build_info{version=\"1.2 \\\"\\\\\\n\"} 1\n");
    EXPECT_HAS(text_of(&f),
               "inferd_requests_accepted_total{model=\"a\\\"b\\\\c\\nd\",version=\"1\"} 0\n");
    ifd_metrics_give_model(f.metrics, set);
    tear_down(&f);
}

static void models_begin_at_zero_and_are_sorted(void)
{
    struct fixture f;
    set_up(&f, true);
    struct ifd_metric_set *b = take(&f, "b", "1"), *a2 = take(&f, "a", "2"),
                          *a1 = take(&f, "a", "1");
    ifd_metric_put(b, IFD_METRIC_MEMORY, IFD_MEMORY_ARENA, 12);
    EXPECT_TEXT(family(&f, "inferd_inferences_total"),
                "# HELP inferd_inferences_total Samples answered: a request with a batch of "
                "n counts n times.\n"
                "# TYPE inferd_inferences_total counter\n"
                "inferd_inferences_total{model=\"a\",version=\"1\"} 0\n"
                "inferd_inferences_total{model=\"a\",version=\"2\"} 0\n"
                "inferd_inferences_total{model=\"b\",version=\"1\"} 0\n");
    EXPECT_HAS(text_of(&f),
               "inferd_model_memory_bytes{model=\"b\",version=\"1\",kind=\"arena\"} 12\n");
    ifd_metrics_give_model(f.metrics, a2);
    ifd_metrics_give_model(f.metrics, a1);
    ifd_metrics_give_model(f.metrics, b);
    EXPECT_TEXT(family(&f, "inferd_inferences_total"), "");
    tear_down(&f);
}

static void version_that_replaces_another_goes_on_counting(void)
{
    struct fixture f;
    set_up(&f, true);
    struct ifd_metric_set *old = take(&f, "m", "1");
    ifd_metric_add(old, IFD_METRIC_ACCEPTED, 0, 5);
    struct ifd_metric_set *fresh = take(&f, "m", "1");
    ifd_metric_add(fresh, IFD_METRIC_ACCEPTED, 0, 1);
    ifd_metrics_give_model(f.metrics, old);
    EXPECT_HAS(text_of(&f), "inferd_requests_accepted_total{model=\"m\",version=\"1\"} 6\n");
    ifd_metrics_give_model(f.metrics, fresh);
    struct ifd_metric_set *later = take(&f, "m", "1");
    EXPECT_HAS(text_of(&f), "inferd_requests_accepted_total{model=\"m\",version=\"1\"} 0\n");
    ifd_metrics_give_model(f.metrics, later);
    tear_down(&f);
}

static void triton_names_can_be_left_out(void)
{
    struct fixture f;
    set_up(&f, true);
    struct ifd_metric_set *set = take(&f, "m", "1");
    ifd_metric_put(set, IFD_METRIC_NV_QUEUE, 0, 1234999);
    ifd_metric_put(set, IFD_METRIC_NV_FAILURE, IFD_NV_CANCELED, 2);
    EXPECT_HAS(text_of(&f), "nv_inference_queue_duration_us{model=\"m\",version=\"1\"} 1234\n");
    EXPECT_HAS(text_of(&f), "nv_inference_request_failure{model=\"m\",version=\"1\","
                            "reason=\"CANCELED\"} 2\n");
    ifd_metrics_give_model(f.metrics, set);
    tear_down(&f);
    set_up(&f, false);
    set = take(&f, "m", "1");
    EXPECT(!strstr(text_of(&f), "nv_"));
    ifd_metrics_give_model(f.metrics, set);
    tear_down(&f);
}

static void families_come_once_and_lines_are_whole(void)
{
    struct fixture f;
    set_up(&f, true);
    struct ifd_metric_set *a = take(&f, "a", "1"), *b = take(&f, "b", "1");
    const char *text = text_of(&f), *line = text;
    char current[128] = "";
    size_t families = 0;
    for (; *line != '\0'; line = strchr(line, '\n') + 1) {
        REQUIRE(strchr(line, '\n') != NULL);
        if (strncmp(line, "# HELP ", 7) == 0) {
            (void)snprintf(current, sizeof(current), "%.*s", (int)strcspn(line + 7, " "), line + 7);
            char head[160];
            (void)snprintf(head, sizeof(head), "# HELP %s ", current);
            EXPECT(strstr(text, head) == line && !strstr(line + 1, head));
            families++;
        } else if (strncmp(line, "# TYPE ", 7) == 0) {
            EXPECT(strncmp(line + 7, current, strlen(current)) == 0);
        } else {
            EXPECT(strncmp(line, current, strlen(current)) == 0);
        }
    }
    EXPECT_INT(families, IFD_METRIC_COUNT);
    ifd_metrics_give_model(f.metrics, a);
    ifd_metrics_give_model(f.metrics, b);
    tear_down(&f);
}

static void what_does_not_belong_is_not_counted(void)
{
    struct fixture f;
    set_up(&f, true);
    struct ifd_metric_set *server = ifd_metrics_server(f.metrics), *set = take(&f, "m", "1");
    ifd_metric_add(NULL, IFD_METRIC_ACCEPTED, 0, 1);
    ifd_metric_observe(NULL, IFD_METRIC_REQUEST_SECONDS, 0, 1);
    ifd_metric_add(server, IFD_METRIC_ACCEPTED, 0, 1);      /* a model's */
    ifd_metric_add(set, IFD_METRIC_HTTP_ACCEPTED, 0, 1);    /* the server's */
    ifd_metric_add(server, IFD_METRIC_HTTP_REQUESTS, 6, 1); /* no such label */
    for (const char *line = text_of(&f); *line != '\0'; line = strchr(line, '\n') + 1) {
        const char *end = strchr(line, '\n');
        EXPECT(line[0] == '#' || strncmp(line, "inferd_build_info", 17) == 0 ||
               strncmp(end - 2, " 0", 2) == 0);
    }
    EXPECT_INT(ifd_metric_status(200), 0);
    EXPECT_INT(ifd_metric_status(299), ifd_metric_status(600));
    EXPECT(ifd_metric_status(503) != ifd_metric_status(299));
    ifd_metrics_give_model(f.metrics, set);
    tear_down(&f);
}

static void lack_of_memory_is_an_error(void)
{
    for (long k = 1;; k++) {
        struct fail_alloc fail;
        struct ifd_metrics *metrics = NULL;
        struct ifd_metric_set *set = NULL;
        struct ifd_err err = {0};
        fail_alloc_init(&fail, k);
        const struct ifd_metrics_options options = {.alloc = &fail.alloc, .version = "1"};
        enum ifd_code code = ifd_metrics_create(&options, &metrics, &err);
        if (!code) {
            code = ifd_metrics_take_model(metrics, "m", "1", &set, &err);
            ifd_metrics_give_model(metrics, set);
            ifd_metrics_destroy(metrics);
        }
        fail_alloc_finish(&fail);
        EXPECT_INT(code, fail.failed ? IFD_NOMEM : IFD_OK);
        if (!fail.failed) {
            EXPECT(k > 3);
            return;
        }
    }
}

static void process_is_alive(void)
{
    struct ifd_process process;
    ifd_process_read(&process);
    EXPECT(process.start_ns > UINT64_C(1500000000000000000));
    EXPECT(process.threads >= 1);
    EXPECT(process.open_fds >= 1 && process.open_fds <= process.max_fds);
    EXPECT(process.resident_bytes > 100000 && process.resident_bytes < process.virtual_bytes);
}

/* The label of a limit is the name of a setting. */
static void every_limit_is_named_as_its_setting(void)
{
    static const char *const flags[] = {
#define SETTING(section, member, flag, ...)       flag,
#define LIVE(applier, section, member, flag, ...) flag,
#include "server/config/config_list.inc"
#undef LIVE
#undef SETTING
    };
    static const char *const limits[] = {
#define X(id, name) name,
        IFD_LIMITS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        bool is_setting = false;
        for (size_t k = 0; k < sizeof(flags) / sizeof(flags[0]); k++) {
            is_setting = is_setting || strcmp(flags[k], limits[i]) == 0;
        }
        test_expect(is_setting, __FILE__, __LINE__, limits[i], false);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(counters_have_one_line_for_each_label),
        T(gauges_go_down),
        T(histograms_are_cumulative_and_exact),
        T(labels_of_one_histogram_do_not_mix),
        T(label_values_are_escaped),
        T(models_begin_at_zero_and_are_sorted),
        T(version_that_replaces_another_goes_on_counting),
        T(triton_names_can_be_left_out),
        T(families_come_once_and_lines_are_whole),
        T(what_does_not_belong_is_not_counted),
        T(lack_of_memory_is_an_error),
        T(process_is_alive),
        T(every_limit_is_named_as_its_setting),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

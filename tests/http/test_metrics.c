/* /metrics of a running server, and the law that its counters keep. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/http/live.h"
#include "tests/support/test.h"

struct page {
    char text[1 << 18];
};

/* The whole answer of the metrics port to a request. */
static void ask(const struct live *live, const char *request, struct page *page)
{
    const struct live at_metrics = {.port = live->metrics_port};
    size_t used = 0;
    int fd = client_connect(&at_metrics);
    REQUIRE(fd >= 0);
    client_send_text(fd, request);
    for (;;) {
        ssize_t got = recv(fd, page->text + used, sizeof(page->text) - 1 - used, 0);
        REQUIRE(got >= 0);
        if (got == 0) {
            break;
        }
        used += (size_t)got;
    }
    page->text[used] = '\0';
    (void)close(fd);
}

static void scrape(const struct live *live, struct page *page)
{
    ask(live, "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", page);
}

/* The value of a series; the test fails if it is absent. */
static long long value(const struct page *page, const char *series)
{
    char line[256];
    (void)snprintf(line, sizeof(line), "\n%s ", series);
    const char *at = strstr(page->text, line);
    test_expect(at != NULL, __FILE__, __LINE__, series, true);
    return strtoll(at + strlen(line), NULL, 10);
}

static long long model_value(const struct page *page, const char *name, const char *model,
                             const char *more)
{
    char series[256];
    (void)snprintf(series, sizeof(series), "%s{model=\"%s\",version=\"1\"%s}", name, model, more);
    return value(page, series);
}

static const char *const outcomes[] = {"ok",      "client_error", "shed",
                                       "timeout", "failed",       "aborted"};
static const char *const models[] = {"echo", "slow", "narrow", "hasty"};

static long long ended(const struct page *page, const char *model, const char *outcome)
{
    char label[64];
    (void)snprintf(label, sizeof(label), ",outcome=\"%s\"", outcome);
    return model_value(page, "inferd_requests_total", model, label);
}

/* Requests of a model by Triton's names, each at most once. */
static long long triton_sum(const struct page *page, const char *model)
{
    long long sum = model_value(page, "nv_inference_request_success", model, "");
    static const char *const reasons[] = {"REJECTED", "CANCELED", "BACKEND", "OTHER"};
    for (size_t i = 0; i < 4; i++) {
        char label[64];
        (void)snprintf(label, sizeof(label), ",reason=\"%s\"", reasons[i]);
        sum += model_value(page, "nv_inference_request_failure", model, label);
    }
    return sum;
}

/* accepted = ok + client_error + shed + timeout + failed + aborted + inflight, of each model and of
 * all requests. */
static void check_law(const struct page *page)
{
    long long total = value(page, "inferd_http_requests_inflight");
    for (size_t i = 0; i < 6; i++) {
        char series[128];
        (void)snprintf(series, sizeof(series), "inferd_http_requests_total{outcome=\"%s\"}",
                       outcomes[i]);
        total += value(page, series);
    }
    EXPECT_INT(total, value(page, "inferd_http_requests_accepted_total"));
    for (size_t m = 0; m < 4; m++) {
        long long sum = model_value(page, "inferd_requests_inflight", models[m], "");
        for (size_t i = 0; i < 6; i++) {
            sum += ended(page, models[m], outcomes[i]);
        }
        EXPECT_INT(sum, model_value(page, "inferd_requests_accepted_total", models[m], ""));
        EXPECT(triton_sum(page, models[m]) <= sum);
    }
}

/* Scrapes until nothing is in flight: an answer may be read before the server knows that it was
 * sent. */
static void scrape_idle(const struct live *live, struct page *page)
{
    for (int i = 0; i < 1000; i++) {
        scrape(live, page);
        if (value(page, "inferd_http_requests_inflight") == 0) {
            return;
        }
        (void)usleep(10000);
    }
    EXPECT(false); /* never idle */
}

static int infer(const struct live *live, const char *model)
{
    int fd = client_connect(live);
    REQUIRE(fd >= 0);
    client_send_text(fd, client_infer_text(model, 1));
    int status = client_read(fd).status;
    (void)close(fd);
    return status;
}

static void page_is_served_on_its_own_port_only(void)
{
    static struct page page;
    struct live live;
    live_start(&live, NULL);
    scrape(&live, &page);
    EXPECT_HAS(page.text, "HTTP/1.1 200 OK\r\n");
    EXPECT_HAS(page.text, "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
    EXPECT_HAS(page.text, "\r\n\r\n# HELP ");
    EXPECT_INT(page.text[strlen(page.text) - 1], '\n');
    EXPECT_INT(value(&page, "inferd_http_requests_accepted_total"), 0); /* itself not counted */
    EXPECT_INT(value(&page, "inferd_build_info{version=\"0\"}"), 1);
    EXPECT_INT(value(&page, "inferd_model_versions{state=\"ready\"}"), 4);
    EXPECT_INT(value(&page, "inferd_model_loads_total{result=\"ok\"}"), 4);
    EXPECT(value(&page, "process_open_fds") > 3);
    ask(&live, "HEAD /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", &page);
    EXPECT_HAS(page.text, "HTTP/1.1 200 OK\r\n");
    EXPECT(!strstr(page.text, "# HELP"));
    ask(&live,
        "POST /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
        &page);
    EXPECT_HAS(page.text, "HTTP/1.1 405 ");
    EXPECT_HAS(page.text, "\r\nAllow: GET, HEAD\r\n");
    ask(&live, "GET /v2/models/echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", &page);
    EXPECT_HAS(page.text, "HTTP/1.1 404 ");
    EXPECT_INT(client_get(&live, "/metrics").status, 404);
    live_stop(&live);
}

static void metrics_can_be_switched_off(void)
{
    struct live live;
    live_start(&live, (const char *const[]){"--allow-metrics=false", NULL});
    EXPECT_INT(live.metrics_port, 0);
    EXPECT_INT(infer(&live, "echo"), 200);
    live_stop(&live);
}

static void requests_are_counted_by_outcome(void)
{
    static struct page page;
    struct live live;
    live_start(&live, NULL);
    EXPECT_INT(infer(&live, "echo"), 200);
    EXPECT_INT(infer(&live, "echo"), 200);
    EXPECT_INT(infer(&live, "absent"), 404);
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(
        fd, "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n{");
    EXPECT_INT(client_read(fd).status, 400);
    client_send_text(fd, "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n"
                         "Content-Length: 2147483648\r\n\r\n");
    EXPECT_INT(client_read(fd).status, 413);
    (void)close(fd);
    scrape_idle(&live, &page);
    check_law(&page);
    EXPECT_INT(ended(&page, "echo", "ok"), 2);
    EXPECT_INT(ended(&page, "echo", "client_error"), 2);
    EXPECT_INT(value(&page, "inferd_http_requests_accepted_total"), 5);
    EXPECT_INT(value(&page, "inferd_http_responses_total{code=\"200\"}"), 2);
    EXPECT_INT(value(&page, "inferd_http_responses_total{code=\"400\"}"), 1);
    EXPECT_INT(value(&page, "inferd_http_responses_total{code=\"404\"}"), 1);
    EXPECT_INT(value(&page, "inferd_http_responses_total{code=\"413\"}"), 1);
    EXPECT_INT(value(&page, "inferd_limit_hits_total{limit=\"http-max-input-size\"}"), 1);
    EXPECT_INT(value(&page, "inferd_http_connections_accepted_total"), 4);
    EXPECT_INT(model_value(&page, "inferd_inferences_total", "echo", ""), 2);
    EXPECT_INT(model_value(&page, "inferd_executions_total", "echo", ""), 2);
    EXPECT_INT(model_value(&page, "inferd_request_seconds_count", "echo", ""), 4);
    EXPECT_INT(model_value(&page, "inferd_execution_batch_size_sum", "echo", ""), 2);
    EXPECT_INT(model_value(&page, "nv_inference_request_success", "echo", ""), 2);
    EXPECT_INT(model_value(&page, "nv_inference_count", "echo", ""), 2);
    static const char *const stages[] = {"decode", "queue", "compute", "encode"};
    for (size_t i = 0; i < 4; i++) {
        char label[64];
        (void)snprintf(label, sizeof(label), ",stage=\"%s\"", stages[i]);
        EXPECT_INT(model_value(&page, "inferd_stage_seconds_count", "echo", label), 2);
    }
    live_stop(&live);
}

static void questions_about_a_model_are_no_inferences(void)
{
    static const char *const paths[] = {"/v2/models/echo",        "/v2/models/echo/versions/1",
                                        "/v2/models/echo/config", "/v2/models/echo/ready",
                                        "/v2/models/echo/stats",  "/v2/models/echo/trace/setting"};
    static struct page page;
    struct live live;
    live_start(&live, NULL);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        EXPECT_INT(client_get(&live, paths[i]).status, 200);
    }
    scrape_idle(&live, &page);
    check_law(&page);
    EXPECT_INT(value(&page, "inferd_http_requests_total{outcome=\"ok\"}"), 6);
    EXPECT_INT(model_value(&page, "inferd_requests_inflight", "echo", ""), 0);
    EXPECT_INT(model_value(&page, "inferd_requests_accepted_total", "echo", ""), 0);
    EXPECT_INT(model_value(&page, "inferd_request_seconds_count", "echo", ""), 0);
    EXPECT_INT(ended(&page, "echo", "ok"), 0);
    live_stop(&live);
}

static void counters_go_on_when_a_version_is_replaced(void)
{
    static const char load[] =
        "{\"parameters\":{\"config\":\"{\\\"backend\\\":\\\"identity\\\",\\\"input\\\":[{"
        "\\\"name\\\":"
        "\\\"IN\\\",\\\"data_type\\\":\\\"TYPE_FP32\\\",\\\"dims\\\":[-1]}],\\\"output\\\":[{"
        "\\\"name\\\":"
        "\\\"NEW\\\",\\\"data_type\\\":\\\"TYPE_FP32\\\",\\\"dims\\\":[-1]}]}\"}}";
    static const char *const series[] = {
        "inferd_inferences_total",      "inferd_executions_total", "inferd_request_seconds_count",
        "nv_inference_request_success", "nv_inference_count",      "nv_inference_exec_count"};
    static struct page page;
    struct live live;
    char text[1000];
    live_start(&live, (const char *const[]){"--model-control-mode=explicit", "--load-model=*",
                                            "--admin-on-http", NULL});
    EXPECT_INT(infer(&live, "echo"), 200);
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    (void)snprintf(text, sizeof(text),
                   "POST /v2/repository/models/echo/load HTTP/1.1\r\nHost: a\r\n"
                   "Content-Length: %zu\r\n\r\n%s",
                   sizeof(load) - 1, load);
    client_send_text(fd, text);
    EXPECT_INT(client_read(fd).status, 200);
    (void)close(fd);
    EXPECT_HAS(client_get(&live, "/v2/models/echo").body, "\"NEW\"");
    EXPECT_HAS(client_get(&live, "/v2/models/echo/stats").body, "\"inference_count\":0");
    EXPECT_INT(infer(&live, "echo"), 200);
    scrape_idle(&live, &page);
    for (size_t i = 0; i < sizeof(series) / sizeof(series[0]); i++) {
        EXPECT_INT(model_value(&page, series[i], "echo", ""), 2);
    }
    live_stop(&live);
}

static void refused_connections_are_counted(void)
{
    static struct page page;
    struct live live;
    live_start(&live, (const char *const[]){"--http-max-connections-per-address=2", NULL});
    int fd[2] = {client_connect(&live), client_connect(&live)};
    for (int i = 0; i < 2; i++) {
        REQUIRE(fd[i] >= 0);
        client_send_text(fd[i], client_infer_text("echo", 1));
        EXPECT_INT(client_read(fd[i]).status, 200);
    }
    int third = client_connect(&live);
    REQUIRE(third >= 0);
    EXPECT_INT(client_read(third).status, 429);
    (void)close(third);
    scrape(&live, &page);
    EXPECT_INT(value(&page, "inferd_http_connections_refused_total{reason=\"address\"}"), 1);
    EXPECT_INT(value(&page, "inferd_limit_hits_total{limit=\"http-max-connections-per-address\"}"),
               1);
    EXPECT_INT(value(&page, "inferd_http_connections_accepted_total"), 2);
    EXPECT_INT(value(&page, "inferd_http_connections_open"), 2);
    (void)close(fd[0]);
    (void)close(fd[1]);
    live_stop(&live);
}

static void reaching_the_most_connections_is_counted(void)
{
    static struct page page;
    struct live live;
    live_start(&live, (const char *const[]){"--http-max-connections=1", NULL});
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(fd, client_infer_text("echo", 1));
    EXPECT_INT(client_read(fd).status, 200);
    EXPECT_INT(client_get(&live, "/v2/health/live").status, 200);
    struct answer answer = client_get(&live, "/v2");
    EXPECT_INT(answer.status, 503);
    EXPECT_HAS(answer.head, "Retry-After: 1\r\n");
    EXPECT_HAS(answer.body, "{\"error\":\"too many connections\"}");
    scrape(&live, &page); /* its port has separate connections */
    EXPECT_INT(value(&page, "inferd_http_connections_refused_total{reason=\"connections\"}"), 1);
    (void)close(fd);
    EXPECT_INT(value(&page, "inferd_limit_hits_total{limit=\"http-max-connections\"}"), 1);
    live_stop(&live);
}

static void slow_requests_are_timeouts(void)
{
    static struct page page;
    struct live live;
    live_start(&live, (const char *const[]){"--http-receive-timeout-secs=1", NULL});
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(
        fd, "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{");
    EXPECT_INT(client_read(fd).status, 408);
    EXPECT(client_is_closed(fd));
    (void)close(fd);
    scrape_idle(&live, &page);
    check_law(&page);
    EXPECT_INT(ended(&page, "echo", "timeout"), 1);
    EXPECT_INT(value(&page, "inferd_limit_hits_total{limit=\"http-receive-timeout-secs\"}"), 1);
    live_stop(&live);
}

static void requests_are_logged_when_they_are_over(void)
{
    struct live live;
    char path[] = "/tmp/ifd_access_XXXXXX", option[64], text[1024] = "";
    int made = mkstemp(path);
    REQUIRE(made >= 0);
    (void)snprintf(option, sizeof(option), "--access-log=%s", path);
    live_start(&live, (const char *const[]){option, NULL});
    EXPECT_INT(infer(&live, "echo"), 200);
    EXPECT_INT(client_get(&live, "/nowhere").status, 404);
    int fd = client_connect(&live);
    client_send_text(fd, "POST /half HTTP/1.1\r\nHost: a\r\n");
    (void)usleep(50000);
    (void)close(fd);
    live_stop(&live);
    ssize_t got = read(made, text, sizeof(text) - 1);
    EXPECT(got > 0);
    EXPECT_HAS(
        text,
        " client=127.0.0.1 method=POST path=\"/v2/models/echo/infer\" status=200 outcome=ok ");
    EXPECT_HAS(text, " method=GET path=\"/nowhere\" status=404 outcome=client_error bytes_in=0 ");
    /* The library gives the method when the header is complete. */
    EXPECT_HAS(text, " method=- path=\"/half\" status=0 outcome=aborted ");
    (void)close(made);
    (void)unlink(path);
}

/* ---- the law under load ---- */

struct load {
    const struct live *live;
    atomic_bool is_over;
    atomic_llong echo_ok, narrow_ok, narrow_shed, hasty_ok, hasty_late;
};

static void send_infer(int fd, const char *model, const char *data, size_t cut)
{
    char text[512], body[256];
    (void)snprintf(
        body, sizeof(body),
        "{\"inputs\":[{\"name\":\"IN\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":%s}]}", data);
    int size =
        snprintf(text, sizeof(text),
                 "POST /v2/models/%s/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n%s",
                 model, strlen(body), body);
    client_send(fd, text, (size_t)size - cut);
}

static void good_client(void *arg)
{
    struct load *load = arg;
    int fd = client_connect(load->live);
    REQUIRE(fd >= 0);
    while (!atomic_load(&load->is_over)) {
        send_infer(fd, "echo", "[1]", 0);
        atomic_fetch_add(&load->echo_ok, client_read(fd).status == 200);
        send_infer(fd, "echo", "[\"x\"]", 0);
        EXPECT_INT(client_read(fd).status, 400);
        client_send_text(fd, "GET /v2/models/echo/config HTTP/1.1\r\nHost: a\r\n\r\n");
        EXPECT_INT(client_read(fd).status, 200);
    }
    (void)close(fd);
}

/* Leaves in the middle of the body, while the request waits or runs, and before reading the
 * answer. */
static void aborting_client(void *arg)
{
    struct load *load = arg;
    for (int i = 0; !atomic_load(&load->is_over); i++) {
        int fd = client_connect(load->live);
        REQUIRE(fd >= 0);
        send_infer(fd, i % 3 == 2 ? "echo" : "slow", "[2]", i % 3 == 0 ? 10 : 0);
        (void)usleep(5000);
        (void)close(fd);
    }
}

/* Three at a time on a queue of one. */
static void crowding_client(void *arg)
{
    struct load *load = arg;
    while (!atomic_load(&load->is_over)) {
        int fd[4];
        for (int i = 0; i < 4; i++) {
            fd[i] = client_connect(load->live);
            REQUIRE(fd[i] >= 0);
            send_infer(fd[i], i < 3 ? "narrow" : "hasty", "[3]", 0);
        }
        for (int i = 0; i < 4; i++) {
            int status = client_read(fd[i]).status;
            atomic_fetch_add(i < 3 ? &load->narrow_ok : &load->hasty_ok, status == 200);
            atomic_fetch_add(i < 3 ? &load->narrow_shed : &load->hasty_late, status == 503);
            (void)close(fd[i]);
        }
    }
}

static void counters_add_up_at_every_scrape_under_load(void)
{
    static struct page page;
    static void (*const clients[])(void *arg) = {good_client,     good_client,     aborting_client,
                                                 aborting_client, crowding_client, crowding_client};
    struct live live;
    struct load load = {.live = &live};
    struct ifd_thread thread[6];
    struct ifd_err err = {0};
    long long seen_inflight = 0;
    live_start(&live, NULL);
    for (size_t i = 0; i < 6; i++) {
        REQUIRE_OK(
            ifd_thread_start(&thread[i], "client", clients[i], &load, ifd_alloc_system(), &err),
            &err);
    }
    for (int i = 0; i < 150; i++) {
        scrape(&live, &page);
        check_law(&page);
        seen_inflight += value(&page, "inferd_http_requests_inflight");
        (void)usleep(10000);
    }
    atomic_store(&load.is_over, true);
    for (size_t i = 0; i < 6; i++) {
        ifd_thread_join(&thread[i]);
    }
    scrape_idle(&live, &page);
    check_law(&page);
    EXPECT(seen_inflight > 0);
    EXPECT(load.echo_ok > 0 && load.narrow_shed > 0 && load.hasty_late > 0);
    /* what an aborting client sends to echo may be answered before it leaves */
    EXPECT(ended(&page, "echo", "ok") >= load.echo_ok);
    EXPECT(ended(&page, "echo", "client_error") > 0);
    EXPECT(ended(&page, "slow", "aborted") > 0);
    EXPECT_INT(ended(&page, "narrow", "ok"), load.narrow_ok);
    EXPECT_INT(ended(&page, "narrow", "shed"), load.narrow_shed);
    EXPECT_INT(ended(&page, "hasty", "ok"), load.hasty_ok);
    EXPECT_INT(ended(&page, "hasty", "timeout"), load.hasty_late);
    EXPECT_INT(value(&page, "inferd_limit_hits_total{limit=\"default-max-queue-size\"}"),
               load.narrow_shed);
    EXPECT_INT(value(&page, "inferd_limit_hits_total{limit=\"default-timeout-ms\"}"),
               load.hasty_late);
    EXPECT_INT(model_value(&page, "nv_inference_request_failure", "narrow", ",reason=\"REJECTED\""),
               load.narrow_shed);
    for (size_t m = 0; m < 4; m++) {
        EXPECT_INT(model_value(&page, "inferd_requests_inflight", models[m], ""), 0);
        EXPECT_INT(model_value(&page, "inferd_queue_requests", models[m], ""), 0);
    }
    live_stop(&live);
}

/* An incomplete request delays the end for as long as the test needs. */
static void metrics_are_served_while_stopping(void)
{
    static struct page page;
    struct live live;
    live_start(&live, NULL);
    int fd = client_connect(&live), refused = 0;
    REQUIRE(fd >= 0);
    send_infer(fd, "echo", "[1]", 1);
    do {
        scrape(&live, &page);
    } while (value(&page, "inferd_http_requests_inflight") != 1);
    ifd_server_stop(live.server);
    while (refused >= 0) {
        refused = client_connect(&live);
        (void)(refused >= 0 && close(refused));
    }
    scrape(&live, &page);
    EXPECT_INT(value(&page, "inferd_http_requests_inflight"), 1);
    client_send_text(fd, "}");
    EXPECT_INT(client_read(fd).status, 200);
    (void)close(fd);
    live_join(&live);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(page_is_served_on_its_own_port_only),       T(metrics_can_be_switched_off),
        T(requests_are_counted_by_outcome),           T(questions_about_a_model_are_no_inferences),
        T(counters_go_on_when_a_version_is_replaced), T(refused_connections_are_counted),
        T(reaching_the_most_connections_is_counted),  T(slow_requests_are_timeouts),
        T(requests_are_logged_when_they_are_over),    T(counters_add_up_at_every_scrape_under_load),
        T(metrics_are_served_while_stopping),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

#include "server/obs/access_log.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "engine/base/str.h"
#include "engine/base/thread.h"
#include "tests/support/test.h"

struct fixture {
    char path[64], text[8192];
    struct ifd_metrics *metrics;
    struct ifd_access_log *log;
    struct ifd_err err;
};

static void set_up(struct fixture *f, bool is_json)
{
    int fd = -1;
    const struct ifd_metrics_options metrics = {.alloc = ifd_alloc_system(), .version = "1"};
    *f = (struct fixture){.path = "/tmp/ifd_access_XXXXXX"};
    int made = mkstemp(f->path);
    REQUIRE(made >= 0);
    REQUIRE(write(made, "before\n", 7) == 7);
    (void)close(made);
    REQUIRE_OK(ifd_metrics_create(&metrics, &f->metrics, &f->err), &f->err);
    REQUIRE_OK(ifd_access_log_open(f->path, &fd, &f->err), &f->err);
    REQUIRE_OK(ifd_access_log_create(fd, is_json, ifd_metrics_server(f->metrics), NULL,
                                     ifd_alloc_system(), &f->log, &f->err),
               &f->err);
}

/* Ends the log and returns the content of its file. */
static const char *tear_down(struct fixture *f)
{
    ifd_access_log_destroy(f->log);
    ifd_metrics_destroy(f->metrics);
    FILE *in = fopen(f->path, "r");
    REQUIRE(in != NULL);
    f->text[fread(f->text, 1, sizeof(f->text) - 1, in)] = '\0';
    (void)fclose(in);
    (void)unlink(f->path);
    return f->text;
}

static void add(struct fixture *f, const char *path)
{
    struct sockaddr_in client = {.sin_family = AF_INET};
    REQUIRE(inet_pton(AF_INET, "192.0.2.7", &client.sin_addr) == 1);
    ifd_access_log_add(f->log, &(struct ifd_access){.method = "POST",
                                                    .outcome = "ok",
                                                    .path = ifd_str(path),
                                                    .client = (const struct sockaddr *)&client,
                                                    .status = 200,
                                                    .body_bytes = 64,
                                                    .answer_bytes = 120,
                                                    .took_ns = 310999});
}

static void lines_are_appended_in_order(void)
{
    struct fixture f;
    set_up(&f, false);
    add(&f, "/v2/models/a/infer");
    add(&f, "/v2/models/b/infer");
    const char *text = tear_down(&f);
    EXPECT(strncmp(text, "before\ntime=2", 13) == 0);
    EXPECT_HAS(text,
               "Z client=192.0.2.7 method=POST path=\"/v2/models/a/infer\" status=200 outcome=ok "
               "bytes_in=64 bytes_out=120 took_us=310\n"
               "time=2");
    EXPECT_HAS(text, "path=\"/v2/models/b/infer\" status=200 outcome=ok bytes_in=64 bytes_out=120 "
                     "took_us=310\n");
}

static void name_of_the_token_follows_the_client(void)
{
    const struct ifd_access named = {.method = "GET", .outcome = "ok", .caller = "camera-1"},
                            long_name = {.method = "GET",
                                         .outcome = "ok",
                                         .caller = "a2345678901234567890123456789012x"};
    struct fixture f;
    set_up(&f, false);
    ifd_access_log_add(f.log, &named);
    ifd_access_log_add(f.log, &long_name);
    const char *text = tear_down(&f);
    EXPECT_HAS(text, " client=- token=camera-1 method=GET path=");
    EXPECT_HAS(text, " token=a2345678901234567890123456789012 method=GET");
    set_up(&f, true);
    ifd_access_log_add(f.log, &named);
    json_t *line = json_loads(tear_down(&f) + strlen("before\n"), 0, NULL);
    REQUIRE(line != NULL);
    EXPECT_TEXT(json_string_value(json_object_get(line, "token")), "camera-1");
    EXPECT_TEXT(json_string_value(json_object_get(line, "method")), "GET");
    json_decref(line);
}

static void source_of_a_frame_follows_the_path(void)
{
    const struct ifd_access frame = {
        .method = "POST", .outcome = "shed", .path = ifd_str("/p"), .source = "front \"door\"\n"};
    struct fixture f;
    set_up(&f, false);
    ifd_access_log_add(f.log, &frame);
    EXPECT_HAS(tear_down(&f), " path=\"/p\" source=\"front \\\"door\\\"\\u000a\" status=0 ");
    set_up(&f, true);
    ifd_access_log_add(f.log, &frame);
    json_t *line = json_loads(tear_down(&f) + strlen("before\n"), 0, NULL);
    REQUIRE(line != NULL);
    EXPECT_TEXT(json_string_value(json_object_get(line, "source")), "front \"door\"\n");
    json_decref(line);
}

/* The client of one line in each format. */
static void expect_client(const struct sockaddr *client, const char *want)
{
    for (int is_json = 0; is_json < 2; is_json++) {
        struct fixture f;
        char field[64];
        set_up(&f, is_json == 1);
        ifd_access_log_add(f.log, &(struct ifd_access){.method = "GET",
                                                       .outcome = "shed",
                                                       .path = ifd_str("/p"),
                                                       .client = client,
                                                       .status = 503,
                                                       .body_bytes = 1,
                                                       .answer_bytes = 2,
                                                       .took_ns = 3999});
        (void)snprintf(field, sizeof(field),
                       is_json ? "\",\"client\":\"%s\",\"method\":\"GET\",\"path\":\"/p\","
                               : " client=%s method=GET path=\"/p\" ",
                       want);
        const char *text = tear_down(&f);
        EXPECT_HAS(text, field);
        EXPECT_HAS(text, is_json ? "\"status\":503,\"outcome\":\"shed\",\"bytes_in\":1,"
                                   "\"bytes_out\":2,\"took_us\":3}\n"
                                 : " status=503 outcome=shed bytes_in=1 bytes_out=2 took_us=3\n");
    }
}

static void clients_of_every_family_are_named(void)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    const struct sockaddr local = {.sa_family = AF_UNIX};
    REQUIRE(inet_pton(AF_INET, "198.51.100.9", &v4.sin_addr) == 1);
    REQUIRE(inet_pton(AF_INET6, "2001:db8::17", &v6.sin6_addr) == 1);
    expect_client((const struct sockaddr *)&v4, "198.51.100.9");
    expect_client((const struct sockaddr *)&v6, "2001:db8::17");
    expect_client(&local, "unix");
    expect_client(NULL, "-");
}

static void hostile_paths_stay_on_their_line(void)
{
    struct fixture f;
    char big[400];
    memset(big, '\x01', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    set_up(&f, false);
    add(&f, "/a\" status=500\nx\\\x1b[31m\xff");
    add(&f, "/caf\xc3\xa9\xc2\x9b");
    add(&f, big);
    ifd_access_log_add(f.log, &(struct ifd_access){.method = "GET", .outcome = "aborted"});
    const char *text = tear_down(&f);
    EXPECT_HAS(text, "path=\"/a\\\" status=500\\u000ax\\\\\\u001b[31m\\u00ff\" status=200");
    EXPECT_HAS(text, "path=\"/caf\xc3\xa9\\u009b\" status=200");
    EXPECT_HAS(text, "client=- method=GET path=\"\" status=0 outcome=aborted");
    size_t lines = 0;
    for (const char *at = strchr(text, '\n'); at; at = strchr(at + 1, '\n')) {
        lines++;
    }
    EXPECT_INT(lines, 5);
}

static void json_lines_are_json(void)
{
    struct fixture f;
    set_up(&f, true);
    add(&f, "/a\"b\\c\n\xff");
    const char *text = tear_down(&f);
    json_t *line = json_loads(text + strlen("before\n"), 0, NULL);
    REQUIRE(line != NULL);
    EXPECT_TEXT(json_string_value(json_object_get(line, "path")), "/a\"b\\c\n\xc3\xbf");
    EXPECT_TEXT(json_string_value(json_object_get(line, "client")), "192.0.2.7");
    EXPECT_INT(json_integer_value(json_object_get(line, "status")), 200);
    EXPECT_TEXT(json_string_value(json_object_get(line, "outcome")), "ok");
    EXPECT_INT(json_integer_value(json_object_get(line, "bytes_in")), 64);
    EXPECT_INT(json_integer_value(json_object_get(line, "bytes_out")), 120);
    EXPECT_INT(json_integer_value(json_object_get(line, "took_us")), 310);
    EXPECT_INT(strlen(json_string_value(json_object_get(line, "time"))), 24);
    json_decref(line);
}

static void many_lines_are_all_written(void)
{
    struct fixture f;
    long lines = 0;
    int c = 0;
    set_up(&f, false);
    for (int i = 0; i < 4000; i++) {
        add(&f, "/many");
    }
    EXPECT_INT(ifd_metric_get(ifd_metrics_server(f.metrics), IFD_METRIC_ACCESS_LOG_DROPPED, 0), 0);
    ifd_access_log_destroy(f.log);
    f.log = NULL;
    FILE *in = fopen(f.path, "r");
    REQUIRE(in != NULL);
    while ((c = fgetc(in)) != EOF) {
        lines += c == '\n';
    }
    (void)fclose(in);
    EXPECT_INT(lines, 4001);
    (void)tear_down(&f);
}

/* Nobody reads the pipe: the loop continues, lost lines are counted, and the end does not hang. */
static void stuck_reader_costs_lines_not_time(void)
{
    struct fixture f;
    int ends[2];
    const int count = 20000;
    set_up(&f, false);
    ifd_access_log_destroy(f.log);
    f.log = NULL;
    REQUIRE(pipe(ends) == 0);
    REQUIRE_OK(ifd_access_log_create(ends[1], false, ifd_metrics_server(f.metrics), NULL,
                                     ifd_alloc_system(), &f.log, &f.err),
               &f.err);
    for (int i = 0; i < count; i++) {
        add(&f, "/stuck");
    }
    ifd_access_log_destroy(f.log);
    f.log = NULL;
    long long lost =
        (long long)ifd_metric_get(ifd_metrics_server(f.metrics), IFD_METRIC_ACCESS_LOG_DROPPED, 0);
    long long lines = 0;
    char piece[4096];
    for (ssize_t got = read(ends[0], piece, sizeof(piece)); got > 0;
         got = read(ends[0], piece, sizeof(piece))) {
        for (ssize_t i = 0; i < got; i++) {
            lines += piece[i] == '\n';
        }
    }
    (void)close(ends[0]);
    EXPECT(lost > 0 && lines > 0);
    EXPECT_INT(lost + lines, count);
    (void)tear_down(&f);
}

/* Events of the server's log. Only the writer thread logs, and it has ended when this is read. */
static char told[512];

static void hear(void *context, enum ifd_log_level level, const char *sentence, const char *fields)
{
    (void)context;
    const size_t used = strlen(told);
    (void)snprintf(told + used, sizeof(told) - used, "%s %s %s\n", ifd_log_level_name(level),
                   sentence, fields);
}

/* Adds one line and waits until it was dropped, so that each line is one write. */
static void add_alone(struct fixture *f, const char *path, uint64_t dropped)
{
    add(f, path);
    while (ifd_metric_get(ifd_metrics_server(f->metrics), IFD_METRIC_ACCESS_LOG_DROPPED, 0) <
           dropped) {
        (void)usleep(1000);
    }
}

static void full_disk_is_told_once_and_that_it_is_over(void)
{
    struct fixture f;
    struct ifd_log errors = {.levels = IFD_LOG_UP_TO(IFD_LOG_INFO), .write = hear};
    int fd = -1;
    if (access("/dev/full", W_OK) != 0) {
        test_skip("there is no /dev/full");
    }
    set_up(&f, false);
    ifd_access_log_destroy(f.log);
    told[0] = '\0';
    REQUIRE_OK(ifd_access_log_open("/dev/full", &fd, &f.err), &f.err);
    REQUIRE_OK(ifd_access_log_create(fd, false, ifd_metrics_server(f.metrics), &errors,
                                     ifd_alloc_system(), &f.log, &f.err),
               &f.err);
    add_alone(&f, "/lost", 1);
    add_alone(&f, "/lost", 2);
    REQUIRE_OK(ifd_access_log_open(f.path, &fd, &f.err), &f.err);
    ifd_access_log_reopen(f.log, fd);
    add(&f, "/kept");
    add(&f, "/kept");
    const char *text = tear_down(&f);
    EXPECT_HAS(text, "/kept");
    EXPECT(strstr(text, "/lost") == NULL);
    EXPECT_TEXT(told, "warn access log write failed, lines are lost "
                      "reason=\"No space left on device\"\n"
                      "info access log recovered \n");
}

static void file_that_cannot_be_opened_is_named(void)
{
    struct ifd_err err = {0};
    int fd = -1;
    EXPECT_INT(ifd_access_log_open("/nowhere/at/all", &fd, &err), IFD_IO);
    EXPECT_HAS(err.text, "/nowhere/at/all");
    ifd_access_log_add(NULL, &(struct ifd_access){.method = "GET"});
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(lines_are_appended_in_order),
        T(name_of_the_token_follows_the_client),
        T(source_of_a_frame_follows_the_path),
        T(clients_of_every_family_are_named),
        T(hostile_paths_stay_on_their_line),
        T(json_lines_are_json),
        T(many_lines_are_all_written),
        T(stuck_reader_costs_lines_not_time),
        T(full_disk_is_told_once_and_that_it_is_over),
        T(file_that_cannot_be_opened_is_named),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* The wall clock jumps a day ahead, a day back, and to and fro, as after a suspend or by an
 * operator: deadlines, settling and durations must not change. The test replaces clock_gettime,
 * time and gettimeofday, also for libraries. The kernel keeps the right time, so a wait until a
 * moment of the wall clock goes wrong as well: a day too long or not at all. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "tests/http/live.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#define DAY_SECS    86400
#define CLIENTS     4
#define PATIENCE_MS 60000
#define POLL        "--model-control-mode=poll", "--repository-poll-secs=1"

/* ---- the clock ---- */

static atomic_long offset_secs;

#define EXPORTED __attribute__((visibility("default")))

static int ask_kernel(clockid_t clock, struct timespec *ret)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, ret);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
        ret->tv_sec += atomic_load(&offset_secs);
    }
    return failed;
}

EXPORTED int clock_gettime(clockid_t clock, struct timespec *ret)
{
    return ask_kernel(clock, ret);
}

EXPORTED time_t time(time_t *ret)
{
    struct timespec now = {0};
    (void)ask_kernel(CLOCK_REALTIME, &now);
    if (ret) {
        *ret = now.tv_sec;
    }
    return now.tv_sec;
}

EXPORTED int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec now = {0};
    (void)zone;
    int failed = ask_kernel(CLOCK_REALTIME, &now);
    ret->tv_sec = now.tv_sec;
    ret->tv_usec = now.tv_nsec / 1000;
    return failed;
}

static void jump(long days)
{
    atomic_store(&offset_secs, days * DAY_SECS);
}

static void pause_ms(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

struct jumper {
    struct ifd_thread thread;
    atomic_bool stop;
};

static void jump_about(void *arg)
{
    static const long days[] = {0, 1, -1, 1, 0, -1};
    struct jumper *jumper = arg;
    for (unsigned i = 0; !atomic_load(&jumper->stop); i++) {
        jump(days[i % 6]);
        pause_ms(7);
    }
    jump(0);
}

static void start_jumping(struct jumper *jumper)
{
    struct ifd_err err = {0};
    *jumper = (struct jumper){0};
    REQUIRE_OK(
        ifd_thread_start(&jumper->thread, "jumper", jump_about, jumper, ifd_alloc_system(), &err),
        &err);
}

static void stop_jumping(struct jumper *jumper)
{
    atomic_store(&jumper->stop, true);
    ifd_thread_join(&jumper->thread);
}

/* ---- a repository ---- */

/* Replaces the model's file by renaming, with the given modification time. */
static void put_model(const char *source, time_t changed)
{
    static uint8_t data[1 << 18];
    const struct timespec times[2] = {{.tv_sec = changed}, {.tv_sec = changed}};
    FILE *in = fopen(test_source(source), "rb");
    REQUIRE(in != NULL);
    size_t size = fread(data, 1, sizeof(data), in);
    (void)fclose(in);
    FILE *out = fopen(folder_at("m/1/.new"), "wb");
    REQUIRE(out != NULL && fwrite(data, 1, size, out) == size && fclose(out) == 0);
    REQUIRE(utimensat(AT_FDCWD, folder_at("m/1/.new"), times, 0) == 0);
    REQUIRE(rename(folder_at("m/1/.new"), folder_at("m/1/model.tflite")) == 0);
}

#define SIMPLE "tests/data/repository/simple/1/model.tflite"
#define DIGITS "models/digits/1/model.tflite"

/* "m", and "late", which delays requests to batch them. */
static void start(struct live *live, const char *const *options)
{
    const char *all[12];
    char repository[100], log[100];
    size_t count = 0;
    folder_begin();
    REQUIRE(mkdir(folder_at("m"), 0700) == 0 && mkdir(folder_at("m/1"), 0700) == 0);
    REQUIRE(mkdir(folder_at("late"), 0700) == 0);
    put_model(SIMPLE, time(NULL));
    FILE *out = fopen(folder_at("late/config.pbtxt"), "w");
    REQUIRE(out != NULL);
    (void)fputs("backend: \"identity\" max_batch_size: 8 "
                "dynamic_batching { max_queue_delay_microseconds: 20000 } "
                "input { name: \"IN\" data_type: TYPE_FP32 dims: -1 } "
                "output { name: \"OUT\" data_type: TYPE_FP32 dims: -1 }",
                out);
    REQUIRE(fclose(out) == 0);
    (void)snprintf(repository, sizeof(repository), "--model-repository=%s", folder_path());
    (void)snprintf(log, sizeof(log), "--access-log=%s", folder_at("access.log"));
    all[count++] = repository;
    all[count++] = log;
    while (*options) {
        all[count++] = *options++;
    }
    all[count] = NULL;
    live_start(live, all);
}

static void remove_repository(void)
{
    static const char *const names[] = {"m/1/model.tflite",  "m/1",  "m",
                                        "late/config.pbtxt", "late", "access.log"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)remove(folder_at(names[i]));
    }
    folder_end();
}

static void end(struct live *live)
{
    live_stop(live);
    remove_repository();
}

static bool is_digits(const struct live *live)
{
    struct answer answer = client_get(live, "/v2/models/m");
    EXPECT_INT(answer.status, 200);
    return strstr(answer.body, "INPUT0") == NULL;
}

static bool becomes_digits(const struct live *live, bool wanted)
{
    for (int waited = 0; waited < PATIENCE_MS; waited += 20) {
        if (is_digits(live) == wanted) {
            return true;
        }
        pause_ms(20);
    }
    return false;
}

/* ---- requests ---- */

struct client {
    struct ifd_thread thread;
    const struct live *live;
    const char *body, *path;
    int requests, right;
};

static void ask(void *arg)
{
    struct client *client = arg;
    char text[1024];
    int fd = client_connect(client->live);
    REQUIRE(fd >= 0);
    (void)snprintf(text, sizeof(text),
                   "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n%s", client->path,
                   strlen(client->body), client->body);
    for (int i = 0; i < client->requests; i++) {
        client_send_text(fd, text);
        struct answer answer = client_read(fd);
        client->right += answer.status == 200 && strstr(answer.body, "[7") != NULL;
    }
    (void)close(fd);
}

/* A request may wait a minute, or the model's batch delay of 20 ms; none may time out or hang. */
static void jumps_end_no_request_and_hold_up_none(void)
{
    static const char plain[] =
        "{\"parameters\":{\"timeout\":60000000},\"inputs\":[{\"name\":\"IN\","
        "\"shape\":[1],\"datatype\":\"FP32\",\"data\":[7]}]}";
    static const char batch[] =
        "{\"parameters\":{\"timeout\":60000000},\"inputs\":[{\"name\":\"IN\","
        "\"shape\":[1,1],\"datatype\":\"FP32\",\"data\":[7]}]}";
    struct client client[CLIENTS];
    struct jumper jumper;
    struct live live;
    struct ifd_err err = {0};
    start(&live, (const char *const[]){"--inline-identity=false", NULL});
    start_jumping(&jumper);
    for (int i = 0; i < CLIENTS; i++) {
        client[i] =
            (struct client){.live = &live,
                            .path = i % 2 ? "/v2/models/slow/infer" : "/v2/models/late/infer",
                            .body = i % 2 ? plain : batch,
                            .requests = i % 2 ? 3 : 50};
        REQUIRE_OK(ifd_thread_start(&client[i].thread, "client", ask, &client[i],
                                    ifd_alloc_system(), &err),
                   &err);
    }
    for (int i = 0; i < CLIENTS; i++) {
        ifd_thread_join(&client[i].thread);
        EXPECT_INT(client[i].right, client[i].requests);
    }
    stop_jumping(&jumper);
    end(&live);
}

/* A request that may wait 200 ms behind one of 800 ms is late, however the wall clock jumps. */
static void jumps_save_no_request_from_its_deadline(void)
{
    for (long day = -1; day <= 1; day++) {
        struct live live;
        start(&live, (const char *const[]){"--http-header-timeout-secs=1", NULL});
        int first = client_connect(&live), second = client_connect(&live);
        int silent = client_connect(&live);
        REQUIRE(first >= 0 && second >= 0 && silent >= 0);
        client_send_text(silent, "GET / HTTP/1.1\r\n");
        client_send_text(first, client_infer_text("hasty", 1));
        pause_ms(100);
        client_send_text(second, client_infer_text("hasty", 2));
        pause_ms(50);
        jump(day);
        EXPECT_INT(client_read(second).status, 503);
        EXPECT_INT(client_read(first).status, 200);
        EXPECT_INT(client_read(silent).status, 408);
        jump(0);
        (void)close(first);
        (void)close(second);
        (void)close(silent);
        end(&live);
    }
}

/* A connection's limits are an hour away; a jump of a day must not reach them. */
static void jump_ahead_cuts_no_connection_off(void)
{
    struct live live;
    start(&live, (const char *const[]){
                     "--http-header-timeout-secs=3600", "--http-idle-timeout-secs=3600",
                     "--http-receive-timeout-secs=3600", "--http-min-receive-rate=0", NULL});
    int idle = client_connect(&live), header = client_connect(&live), body = client_connect(&live);
    REQUIRE(idle >= 0 && header >= 0 && body >= 0);
    const char *request = client_infer_text("echo", 5);
    size_t size = strlen(request);
    client_send(idle, request, size);
    EXPECT_INT(client_read(idle).status, 200);
    client_send(header, request, 20);
    client_send(body, request, size - 5);
    pause_ms(100);
    jump(1);
    pause_ms(1000); /* connections are looked at every 250 ms */
    client_send(header, request + 20, size - 20);
    client_send(body, request + size - 5, 5);
    client_send(idle, request, size);
    EXPECT_INT(client_read(header).status, 200);
    EXPECT_INT(client_read(body).status, 200);
    EXPECT_INT(client_read(idle).status, 200);
    jump(0);
    (void)close(idle);
    (void)close(header);
    (void)close(body);
    end(&live);
}

/* ---- the repository ---- */

static void jump_ahead_settles_nothing(void)
{
    struct live live;
    start(&live, (const char *const[]){POLL, "--repository-settle-ms=3600000", NULL});
    put_model(DIGITS, time(NULL));
    pause_ms(1500); /* a scan has seen it */
    jump(1);
    pause_ms(2500);
    EXPECT(!is_digits(&live));
    jump(0);
    end(&live);
}

static void jump_back_stops_neither_polls_nor_settling(void)
{
    struct live live;
    start(&live, (const char *const[]){POLL, "--repository-settle-ms=100",
                                       "--repository-dwell-secs=1", NULL});
    put_model(DIGITS, time(NULL));
    pause_ms(500);
    jump(-1);
    EXPECT(becomes_digits(&live, true));
    put_model(SIMPLE, time(NULL)); /* a day older than what it replaces */
    jump(-2);
    EXPECT(becomes_digits(&live, false));
    jump(0);
    end(&live);
}

static void file_is_taken_whatever_its_time(void)
{
    const time_t times[] = {time(NULL) - DAY_SECS, 0, time(NULL) + DAY_SECS, time(NULL)};
    struct live live;
    start(&live, (const char *const[]){POLL, "--repository-settle-ms=100",
                                       "--repository-dwell-secs=0", NULL});
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        put_model(i % 2 ? SIMPLE : DIGITS, times[i]);
        EXPECT(becomes_digits(&live, i % 2 == 0));
    }
    end(&live);
}

/* ---- logs ---- */

/* The largest number behind name in the access log. */
static double largest_in_log(const char *name)
{
    char line[2048];
    double most = 0;
    FILE *in = fopen(folder_at("access.log"), "r");
    REQUIRE(in != NULL);
    while (fgets(line, sizeof(line), in)) {
        const char *field = strstr(line, name);
        EXPECT(field != NULL);
        double value = field ? strtod(field + strlen(name), NULL) : 0;
        EXPECT(value >= 0);
        most = value > most ? value : most;
    }
    (void)fclose(in);
    return most;
}

static void durations_are_not_those_of_the_wall_clock(void)
{
    static const char body[] = "{\"inputs\":[{\"name\":\"IN\",\"shape\":[1,1],\"datatype\":"
                               "\"FP32\",\"data\":[7]}]}";
    struct jumper jumper;
    struct live live;
    uint64_t begun_ns = ifd_monotonic_ns();
    start(&live, (const char *const[]){"--inline-identity=false", NULL});
    struct client client = {
        .live = &live, .path = "/v2/models/late/infer", .requests = 50, .body = body};
    start_jumping(&jumper);
    ask(&client);
    stop_jumping(&jumper);
    jump(1);
    ask(&client);
    EXPECT_INT(client.right, 100);
    struct answer stats = client_get(&live, "/v2/models/late/stats");
    const char *last = strstr(stats.body, "\"last_inference\":");
    REQUIRE(last != NULL); /* this is a moment and shows that the clock jumped */
    jump(0);
    EXPECT(strtoll(last + 17, NULL, 10) / 1000 > time(NULL) + DAY_SECS / 2);
    live_wait_for_metric(&live, "\ninferd_http_requests_inflight ", 0);
    EXPECT_INT(live_metric(&live, "\ninferd_http_requests_total{outcome=\"ok\"} "),
               live_metric(&live, "\ninferd_http_requests_accepted_total "));
    long long told_secs =
        live_metric(&live, "\ninferd_request_seconds_sum{model=\"late\",version=\"1\"} ");
    live_stop(&live);
    /* One client, one request at a time: all of them together took no longer than the test. */
    double elapsed_us = (double)(ifd_monotonic_ns() - begun_ns) / 1000;
    EXPECT((double)told_secs * 1e6 <= elapsed_us);
    EXPECT(largest_in_log(" took_us=") <= elapsed_us);
    remove_repository();
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(jumps_end_no_request_and_hold_up_none),      T(jumps_save_no_request_from_its_deadline),
        T(jump_ahead_cuts_no_connection_off),          T(jump_ahead_settles_nothing),
        T(jump_back_stops_neither_polls_nor_settling), T(file_is_taken_whatever_its_time),
        T(durations_are_not_those_of_the_wall_clock),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

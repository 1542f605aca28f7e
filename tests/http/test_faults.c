/* Faults of the system: full disks, no threads, no memory, unreadable folders. Loaded models stay
 * served, and refused requests work again when the fault is over. */
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/http/live.h"
#include "tests/support/test.h"

#define NOBODY      65534
#define PATIENCE_MS 60000
#define DROPPED     "\ninferd_access_log_dropped_total "

static void pause_ms(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

static int infer(const struct live *live, const char *model)
{
    int fd = client_connect(live);
    REQUIRE(fd >= 0);
    client_send_text(fd, client_infer_text(model, 5));
    int status = client_read(fd).status;
    (void)close(fd);
    return status;
}

/* ---- the access log ---- */

/* Requests are served, and every line that could not be written is counted. */
static void expect_lines_lost(const char *path)
{
    struct live live;
    char option[100];
    long long lost = 0;
    (void)snprintf(option, sizeof(option), "--access-log=%s", path);
    live_start(&live, (const char *const[]){option, NULL});
    for (int i = 0; i < 20; i++) {
        EXPECT_INT(infer(&live, "echo"), 200);
    }
    for (int waited = 0; waited < PATIENCE_MS && lost < 20; waited += 10) {
        pause_ms(10);
        lost = live_metric(&live, DROPPED);
    }
    EXPECT_INT(lost, 20);
    EXPECT_INT(infer(&live, "echo"), 200);
    live_stop(&live);
}

static void full_disk_costs_lines_of_the_access_log_and_nothing_else(void)
{
    if (access("/dev/full", W_OK) != 0) {
        test_skip("there is no /dev/full");
    }
    expect_lines_lost("/dev/full"); /* ENOSPC */
}

static void failing_disk_costs_lines_of_the_access_log_and_nothing_else(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    char path[100];
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 ||
        ptsname_r(master, path, sizeof(path)) != 0) {
        test_does_not_apply("there are no pseudo terminals");
    }
    int slave = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    REQUIRE(slave >= 0);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", slave);
    struct live live;
    char option[120];
    (void)snprintf(option, sizeof(option), "--access-log=%s", path);
    live_start(&live, (const char *const[]){option, NULL});
    (void)close(master); /* from now on every write is EIO */
    for (int i = 0; i < 20; i++) {
        EXPECT_INT(infer(&live, "echo"), 200);
    }
    for (int waited = 0; waited < PATIENCE_MS && live_metric(&live, DROPPED) < 20; waited += 10) {
        pause_ms(10);
    }
    EXPECT_INT(live_metric(&live, DROPPED), 20);
    live_stop(&live);
    (void)close(slave);
}

/* ---- limits of the process; each case runs in its own process ---- */

static void limit(__rlimit_resource_t resource, rlim_t value)
{
    struct rlimit now;
    REQUIRE(getrlimit(resource, &now) == 0);
    now.rlim_cur = value < now.rlim_max ? value : now.rlim_max;
    REQUIRE(setrlimit(resource, &now) == 0);
}

/* Root may start any number of threads and read any folder. */
static void become_nobody(void)
{
    if (geteuid() == 0) {
        REQUIRE(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
        /* a search for leaks may still look at the process */
        REQUIRE(prctl(PR_SET_DUMPABLE, 1) == 0);
    }
}

/* Models have no threads of their own. */
static void without_threads_models_are_loaded_and_served(void)
{
    struct live live;
    become_nobody();
    live_start(&live, (const char *const[]){"--model-control-mode=explicit", "--load-model=echo",
                                            "--admin-on-http", NULL});
    limit(RLIMIT_NPROC, 0);
    EXPECT_INT(client_post(&live, "/v2/repository/models/slow/load").status, 200);
    EXPECT_INT(infer(&live, "slow"), 200);
    EXPECT_INT(infer(&live, "echo"), 200);
    limit(RLIMIT_NPROC, RLIM_INFINITY); /* a search for leaks needs a thread */
    live_stop(&live);
}

static size_t address_space(void)
{
    unsigned long pages = 0;
    char text[100];
    FILE *in = fopen("/proc/self/statm", "re");
    REQUIRE(in != NULL && fgets(text, sizeof(text), in) != NULL);
    (void)fclose(in);
    pages = strtoul(text, NULL, 10);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Sends a binary request of bytes. Returns its status; 0: the connection ended without an
 * answer. */
static int infer_large(const struct live *live, size_t bytes)
{
    char head[400], json[200];
    int fd = client_connect(live);
    REQUIRE(fd >= 0);
    int size = snprintf(json, sizeof(json),
                        "{\"inputs\":[{\"name\":\"IN\",\"shape\":[%zu],\"datatype\":\"FP32\","
                        "\"parameters\":{\"binary_data_size\":%zu}}],\"parameters\":"
                        "{\"binary_data_output\":true}}",
                        bytes / 4, bytes);
    (void)snprintf(head, sizeof(head),
                   "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n"
                   "Inference-Header-Content-Length: %d\r\n\r\n%s",
                   bytes + (size_t)size, size, json);
    client_send_text(fd, head);
    static const char zeros[1 << 16];
    for (size_t sent = 0; sent < bytes;) {
        size_t rest = bytes - sent;
        ssize_t got = send(fd, zeros, rest < sizeof(zeros) ? rest : sizeof(zeros), MSG_NOSIGNAL);
        if (got <= 0) {
            break; /* refused before all of it was sent */
        }
        sent += (size_t)got;
    }
    int status = client_read(fd).status;
    (void)close(fd);
    return status;
}

static void without_memory_large_requests_are_refused_and_small_ones_served(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    test_does_not_apply("a sanitizer needs address space of its own");
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    test_does_not_apply("a sanitizer needs address space of its own");
#endif
#endif
    struct live live;
    const size_t large = (size_t)160 << 20; /* more than glibc has in reserve for a thread */
    live_start(&live, (const char *const[]){"--http-max-input-size=200000000", NULL});
    EXPECT_INT(infer(&live, "echo"), 200);
    limit(RLIMIT_AS, address_space() + ((rlim_t)24 << 20));
    for (int i = 0; i < 5; i++) {
        int status = infer_large(&live, large);
        EXPECT_INT(status, 503);
        EXPECT_INT(infer(&live, "echo"), 200);
    }
    EXPECT_INT(client_get(&live, "/v2/health/ready").status, 200);
    limit(RLIMIT_AS, RLIM_INFINITY);
    EXPECT_INT(infer_large(&live, large), 200);
    live_stop(&live);
}

/* ---- folders ---- */

static void repository_that_may_not_be_read_any_more_is_served_on(void)
{
    struct live live;
    become_nobody();
    live_start(&live, (const char *const[]){"--model-control-mode=poll", "--repository-poll-secs=1",
                                            "--repository-settle-ms=10",
                                            "--repository-dwell-secs=0", NULL});
    REQUIRE(chmod(live.dir, 0) == 0);
    pause_ms(3500); /* three polls, which is more than two that tell absence */
    EXPECT_INT(infer(&live, "echo"), 200);
    EXPECT_INT(client_get(&live, "/v2/health/ready").status, 200);
    REQUIRE(chmod(live.dir, 0700) == 0);
    pause_ms(1500);
    EXPECT_INT(infer(&live, "echo"), 200);
    live_stop(&live);
}

/* A copy that a full disk cut short looks like a model, but is none. */
static void copy_that_a_full_disk_cut_short_does_not_replace_what_serves(void)
{
    struct live live;
    char path[200], to[220];
    static char whole[1 << 20];
    FILE *in = fopen(test_source("models/digits/1/model.tflite"), "re");
    REQUIRE(in != NULL);
    size_t size = fread(whole, 1, sizeof(whole), in);
    (void)fclose(in);
    live_start(&live, (const char *const[]){"--model-control-mode=explicit", "--load-model=echo",
                                            "--admin-on-http", NULL});
    const char *parts[] = {"digits", "digits/1"};
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", live.dir, parts[i]);
        REQUIRE(mkdir(path, 0700) == 0);
    }
    (void)snprintf(to, sizeof(to), "%s/model.tflite", path);
    for (int part = 1; part <= 4; part++) {
        int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        REQUIRE(fd >= 0);
        size_t written = part == 4 ? size : size / 4 * (size_t)part;
        REQUIRE(write(fd, whole, written) == (ssize_t)written);
        REQUIRE(close(fd) == 0);
        EXPECT_INT(client_post(&live, "/v2/repository/models/digits/load").status,
                   part < 4 ? 400 : 200);
        EXPECT_INT(infer(&live, "echo"), 200);
    }
    EXPECT_INT(client_get(&live, "/v2/models/digits/ready").status, 200);
    live_stop(&live);
    EXPECT(unlink(to) == 0);
    EXPECT(rmdir(path) == 0);
    path[strlen(path) - 2] = '\0';
    EXPECT(rmdir(path) == 0);
    EXPECT(rmdir(live.dir) == 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(full_disk_costs_lines_of_the_access_log_and_nothing_else),
        T(failing_disk_costs_lines_of_the_access_log_and_nothing_else),
        T(copy_that_a_full_disk_cut_short_does_not_replace_what_serves),
        T(without_memory_large_requests_are_refused_and_small_ones_served),
        T(without_threads_models_are_loaded_and_served), /* both end as nobody */
        T(repository_that_may_not_be_read_any_more_is_served_on),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

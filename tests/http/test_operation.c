/* Interfaces of an operator's tools: SIGHUP, rotation of the access log, service manager. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/http/live.h"
#include "tests/http/notes.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#define CLIENTS     3
#define HANGUPS     300
#define PATIENCE_MS 60000

/* ---- a folder for files ---- */

static long count_lines(const char *name)
{
    FILE *in = fopen(folder_at(name), "re");
    long lines = 0;
    REQUIRE(in != NULL);
    for (int c = fgetc(in); c != EOF; c = fgetc(in)) {
        lines += c == '\n';
    }
    (void)fclose(in);
    return lines;
}

static void remove_file(const char *name)
{
    EXPECT(unlink(folder_at(name)) == 0);
}

/* ---- clients that count ---- */

struct client {
    const struct live *live;
    struct ifd_thread thread;
    atomic_bool *stop;
    atomic_long sent;
    long right;
};

static void keep_asking(void *arg)
{
    struct client *client = arg;
    int fd = client_connect(client->live);
    REQUIRE(fd >= 0);
    while (!atomic_load(client->stop)) {
        const long number = 1000 + atomic_load(&client->sent) % 9000;
        char want[32];
        (void)snprintf(want, sizeof(want), "\"data\":[%ld.0]", number);
        char body[256], text[1024];
        (void)snprintf(body, sizeof(body),
                       "{\"inputs\":[{\"name\":\"IN\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":"
                       "[%ld]}]}",
                       number);
        (void)snprintf(text, sizeof(text),
                       "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: "
                       "%zu\r\n\r\n%s",
                       strlen(body), body);
        client_send_text(fd, text);
        struct answer answer = client_read(fd);
        client->right += answer.status == 200 && strstr(answer.body, want) != NULL;
        atomic_fetch_add(&client->sent, 1);
    }
    (void)close(fd);
}

/* ---- a service manager ---- */

static int manager;

static const char *listen_as_manager(void)
{
    static struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", folder_at("notify"));
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    REQUIRE(manager >= 0);
    REQUIRE(bind(manager, (const struct sockaddr *)&at, sizeof(at)) == 0);
    return at.sun_path;
}

/* Next message with this start; NULL if none comes. */
static const char *heard(const char *start)
{
    static char message[600];
    struct pollfd ready = {.fd = manager, .events = POLLIN};
    while (poll(&ready, 1, PATIENCE_MS) == 1) {
        ssize_t size = recv(manager, message, sizeof(message) - 1, 0);
        REQUIRE(size >= 0);
        message[size] = '\0';
        if (strncmp(message, start, strlen(start)) == 0) {
            return message;
        }
    }
    return NULL;
}

static void service_manager_hears_ready_pings_reload_and_stop(void)
{
    struct live live;
    folder_begin();
    const char *path = listen_as_manager();
    live_start_as(&live, NULL, &(struct live_options){.notify_socket = path, .watchdog_us = 40000});
    const char *ready = heard("READY=1\n");
    REQUIRE(ready != NULL);
    EXPECT_HAS(ready, "STATUS=4 of 4 models ready");
    for (int i = 0; i < 5; i++) {
        EXPECT(heard("WATCHDOG=1") != NULL);
    }
    ifd_server_reread(live.server);
    const char *reloading = heard("RELOADING=1\nMONOTONIC_USEC=");
    REQUIRE(reloading != NULL);
    EXPECT(strtoull(reloading + 27, NULL, 10) > 0);
    EXPECT(heard("READY=1\n") != NULL);
    ifd_server_stop(live.server);
    EXPECT(heard("STOPPING=1\n") != NULL);
    live_join(&live);
    (void)close(manager);
    remove_file("notify");
    folder_end();
}

static void manager_that_is_gone_hurts_nobody(void)
{
    struct live live;
    folder_begin();
    const char *path = listen_as_manager();
    (void)close(manager);
    live_start_as(&live, NULL, &(struct live_options){.notify_socket = path, .watchdog_us = 4000});
    EXPECT_INT(client_get(&live, "/v2/health/ready").status, 200);
    live_stop(&live);
    remove_file("notify");
    folder_end();
}

/* ---- SIGHUP ---- */

static bool were_all_answered(struct client *client)
{
    for (int i = 0; i < CLIENTS; i++) {
        if (atomic_load(&client[i].sent) == 0) {
            return false;
        }
    }
    return true;
}

static void storm_of_hangups_loses_no_request_and_no_line(void)
{
    struct live live;
    struct client client[CLIENTS];
    struct ifd_err err = {0};
    atomic_bool stop = false;
    char log_option[160], config_option[160];
    long sent = 0, lines = 0;
    folder_begin();
    folder_put("inferd.conf", "exit-timeout-secs = 20\n");
    (void)snprintf(log_option, sizeof(log_option), "--access-log=%s", folder_at("log"));
    (void)snprintf(config_option, sizeof(config_option), "--config=%s", folder_at("inferd.conf"));
    live_start_as(&live, (const char *const[]){log_option, config_option, NULL},
                  &(struct live_options){.handles_signals = true});
    for (int i = 0; i < CLIENTS; i++) {
        client[i] = (struct client){.live = &live, .stop = &stop};
        REQUIRE_OK(ifd_thread_start(&client[i].thread, "client", keep_asking, &client[i],
                                    ifd_alloc_system(), &err),
                   &err);
    }
    for (int i = 0; i < HANGUPS; i++) {
        if (i % 100 == 50) { /* as logrotate does */
            char old[16];
            (void)snprintf(old, sizeof(old), "log.%d", i / 100);
            REQUIRE(rename(folder_at("log"), folder_at(old)) == 0);
        }
        REQUIRE(kill(getpid(), SIGHUP) == 0);
        while (i % 100 == 50 && access(folder_at("log"), F_OK) != 0) {
            (void)usleep(1000);
        }
        (void)usleep(500);
    }
    while (!were_all_answered(client)) { /* a busy machine may be late */
        REQUIRE(kill(getpid(), SIGHUP) == 0);
        (void)usleep(500);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < CLIENTS; i++) {
        ifd_thread_join(&client[i].thread);
        EXPECT_INT(client[i].right, client[i].sent);
        sent += client[i].sent;
    }
    /* if the log's thread gets no time, lines are dropped and counted */
    const long dropped = (long)live_metric(&live, "\ninferd_access_log_dropped_total ");
    live_stop(&live);
    lines = count_lines("log") + count_lines("log.0") + count_lines("log.1") + count_lines("log.2");
    EXPECT_INT(lines + dropped, sent);
    static const char *const files[] = {"log", "log.0", "log.1", "log.2", "inferd.conf"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        remove_file(files[i]);
    }
    folder_end();
}

static bool verbose_becomes(const struct live *live, bool is_verbose)
{
    for (int waited = 0; waited < PATIENCE_MS; waited += 5) {
        if (ifd_log_takes(&live->log, IFD_LOG_DEBUG) == is_verbose) {
            return true;
        }
        (void)usleep(5000);
    }
    return false;
}

static void hangup_takes_live_settings_and_keeps_all_when_the_file_is_wrong(void)
{
    struct live live;
    char option[160];
    folder_begin();
    const char *path = listen_as_manager();
    folder_put("inferd.conf", "log-verbose = 0\n");
    (void)snprintf(option, sizeof(option), "--config=%s", folder_at("inferd.conf"));
    live_start_as(&live, (const char *const[]){option, NULL},
                  &(struct live_options){.notify_socket = path});
    REQUIRE(heard("READY=1\n") != NULL);
    folder_put("inferd.conf", "log-verbose = 1\nhttp-port = 1\n");
    ifd_server_reread(live.server);
    EXPECT(verbose_becomes(&live, true));
    EXPECT(heard("READY=1\n") != NULL);
    folder_put("inferd.conf", "log-verbose = 0\nexit-timeout-secs = soon\n");
    ifd_server_reread(live.server);
    EXPECT(heard("RELOADING=1\n") != NULL);
    EXPECT(heard("READY=1\n") != NULL); /* it is over */
    EXPECT(ifd_log_takes(&live.log, IFD_LOG_DEBUG));
    EXPECT_INT(client_get(&live, "/v2/health/ready").status, 200);
    folder_put("inferd.conf", "log-verbose = 0\n");
    ifd_server_reread(live.server);
    EXPECT(verbose_becomes(&live, false));
    live_stop(&live);
    (void)close(manager);
    remove_file("inferd.conf");
    remove_file("notify");
    folder_end();
}

static void hangup_changes_limits_of_open_connections(void)
{
    struct live live;
    char option[160];
    folder_begin();
    folder_put("inferd.conf", "http-idle-timeout-secs = 3600\n");
    (void)snprintf(option, sizeof(option), "--config=%s", folder_at("inferd.conf"));
    live_start(&live, (const char *const[]){option, NULL});
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(fd, "GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_INT(client_read(fd).status, 200);
    folder_put("inferd.conf", "http-idle-timeout-secs = 1\n");
    ifd_server_reread(live.server);
    EXPECT(client_is_closed(fd)); /* waits for it */
    (void)close(fd);
    live_stop(&live);
    remove_file("inferd.conf");
    folder_end();
}

static int ask_for_server(int fd)
{
    client_send_text(fd, "GET /v2 HTTP/1.1\r\nHost: a\r\n\r\n");
    return client_read(fd).status;
}

/* Opens at most max connections, until one is refused and closed; returns how many stay open. */
static int open_until_refused(const struct live *live, int *fd, int max)
{
    int count = 0;
    for (int status = 200; count < max && status == 200; count += status == 200) {
        fd[count] = client_connect(live);
        REQUIRE(fd[count] >= 0);
        status = ask_for_server(fd[count]);
        if (status != 200) {
            EXPECT_INT(status, 503);
            (void)close(fd[count]);
        }
    }
    return count;
}

static void reread(const struct live *live, const char *settings)
{
    notes_clear(); /* nothing is under way */
    folder_put("inferd.conf", settings);
    ifd_server_reread(live->server);
    EXPECT(notes_have("settings reloaded"));
}

static void hangup_changes_how_many_connections_and_how_large_bodies_may_be(void)
{
    struct live live;
    char option[160];
    int fd[40];
    folder_begin();
    folder_put("inferd.conf", "http-max-connections = 2\nhttp-max-input-size = 1024\n");
    (void)snprintf(option, sizeof(option), "--config=%s", folder_at("inferd.conf"));
    live_start_as(&live, (const char *const[]){option, NULL},
                  &(struct live_options){.log = notes_take});
    EXPECT_INT(open_until_refused(&live, fd, 40), 2);
    client_send_text(fd[0], "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n"
                            "Content-Length: 2000\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_INT(client_read(fd[0]).status, 413);
    (void)close(fd[0]);
    live_wait_for_metric(&live, "\ninferd_http_connections_open ", 1);
    /* More than the limit at the start and the spare ones for probes. */
    reread(&live, "http-max-connections = 30\nhttp-max-input-size = 4096\n");
    EXPECT(notes_have("setting changed setting=http-max-connections"));
    EXPECT(notes_have("setting changed setting=http-max-input-size"));
    EXPECT_INT(open_until_refused(&live, fd + 2, 38), 29);
    client_send_text(fd[2], "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n"
                            "Content-Length: 2000\r\n\r\n");
    static const char blanks[2000] = {' '};
    client_send(fd[2], blanks, sizeof(blanks));
    EXPECT_INT(client_read(fd[2]).status, 400); /* it was read */
    /* Fewer than open ones: these stay, new ones are refused. */
    reread(&live, "http-max-connections = 1\n");
    EXPECT_INT(open_until_refused(&live, fd, 1), 0);
    for (int i = 3; i < 31; i++) {
        EXPECT_INT(ask_for_server(fd[i]), 200);
    }
    for (int i = 1; i < 31; i++) {
        (void)close(fd[i]);
    }
    live_stop(&live);
    remove_file("inferd.conf");
    folder_end();
}

/* One setting of each applier that the test above does not have (config_list.inc). */
static void hangup_changes_log_levels_and_what_is_read_at_each_use(void)
{
    struct live live;
    char option[160];
    folder_begin();
    folder_put("inferd.conf", "exit-timeout-secs = 30\n");
    (void)snprintf(option, sizeof(option), "--config=%s", folder_at("inferd.conf"));
    live_start_as(&live, (const char *const[]){option, NULL},
                  &(struct live_options){.log = notes_take});
    EXPECT_HAS(client_get(&live, "/v2/logging").body, "\"log_verbose_level\":0");
    reread(&live, "log-verbose = 1\nexit-timeout-secs = 0\ndefault-timeout-ms = 100\n");
    EXPECT_HAS(client_get(&live, "/v2/logging").body, "\"log_verbose_level\":1");
    int busy = client_connect(&live), late = client_connect(&live);
    client_send_text(busy, client_infer_text("slow", 1)); /* 300 ms */
    live_wait_for_metric(&live, "\ninferd_requests_inflight{model=\"slow\",version=\"1\"} ", 1);
    client_send_text(late, client_infer_text("slow", 2));
    EXPECT_HAS(client_read(late).body, "Request timeout expired");
    EXPECT_INT(client_read(busy).status, 200);
    client_send_text(busy, client_infer_text("narrow", 1)); /* 800 ms */
    live_wait_for_metric(&live, "\ninferd_requests_inflight{model=\"narrow\",version=\"1\"} ", 1);
    ifd_server_stop(live.server);
    EXPECT(notes_have("exit timeout passed"));
    (void)close(busy);
    (void)close(late);
    live_join(&live);
    remove_file("inferd.conf");
    folder_end();
}

static void hangup_names_what_needs_a_restart(void)
{
    static const char *const names[] = {"http-max-header-size", "request-memory",
                                        "default-max-queue-size", "image-max-pixels"};
    struct live live;
    char option[160], text[200], wanted[100];
    folder_begin();
    folder_put("inferd.conf", "");
    (void)snprintf(option, sizeof(option), "--config=%s", folder_at("inferd.conf"));
    live_start_as(&live, (const char *const[]){option, NULL},
                  &(struct live_options){.log = notes_take});
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(text, sizeof(text), "%s = 2048\n", names[i]);
        reread(&live, text);
        (void)snprintf(wanted, sizeof(wanted), "setting needs a restart setting=%s\n", names[i]);
        EXPECT(notes_have(wanted));
    }
    live_stop(&live);
    remove_file("inferd.conf");
    folder_end();
}

static void log_levels_change_on_the_admin_socket_only(void)
{
    struct live live;
    static const char set[] = "POST /v2/logging HTTP/1.1\r\nHost: a\r\nContent-Length: "
                              "40\r\n\r\n{\"log_info\":false,\"log_verbose_level\":1}";
    live_start(&live, NULL);
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(fd, set);
    EXPECT_INT(client_read(fd).status, 403);
    (void)close(fd);
    live_stop(&live);
    live_start(&live, (const char *const[]){"--admin-on-http", NULL});
    fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(fd, set);
    struct answer answer = client_read(fd);
    EXPECT_INT(answer.status, 200);
    EXPECT_HAS(answer.body, "\"log_info\":false,\"log_warning\":false,\"log_error\":true");
    EXPECT(ifd_log_takes(&live.log, IFD_LOG_DEBUG));
    EXPECT(!ifd_log_takes(&live.log, IFD_LOG_INFO));
    (void)close(fd);
    live_stop(&live);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(service_manager_hears_ready_pings_reload_and_stop),
        T(manager_that_is_gone_hurts_nobody),
        T(storm_of_hangups_loses_no_request_and_no_line),
        T(hangup_changes_limits_of_open_connections),
        T(hangup_changes_how_many_connections_and_how_large_bodies_may_be),
        T(hangup_changes_log_levels_and_what_is_read_at_each_use),
        T(hangup_names_what_needs_a_restart),
        T(log_levels_change_on_the_admin_socket_only),
        T(hangup_takes_live_settings_and_keeps_all_when_the_file_is_wrong),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

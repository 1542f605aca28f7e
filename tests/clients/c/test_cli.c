/* inferctl as a program: output and exit status against a scripted server. */
#include "tests/clients/fake_http.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct run {
    char output[8192]; /* standard output and standard error together */
    int status;
};

static void run_inferctl(struct run *run, const char *url, const char *arguments)
{
    char command[1024];
    int n = snprintf(command, sizeof(command), "2>&1 '%s' --url '%s' %s", INFERCTL, url, arguments);
    REQUIRE(n > 0 && (size_t)n < sizeof(command));
    FILE *pipe = popen(command, "r");
    REQUIRE(pipe != NULL);
    size_t size = fread(run->output, 1, sizeof(run->output) - 1, pipe);
    run->output[size] = '\0';
    int status = pclose(pipe);
    REQUIRE(WIFEXITED(status));
    run->status = WEXITSTATUS(status);
}

static void index_is_a_header_and_one_line_a_model(void)
{
    struct fake_http *server = fake_http_start();
    fake_http_answer_text(
        server, 200,
        "[{\"name\":\"digits\",\"version\":\"1\",\"state\":\"READY\"},"
        "{\"name\":\"bad\",\"state\":\"UNAVAILABLE\",\"reason\":\"no file\"},"
        "{\"name\":\"new\",\"pending\":\"settles\"},"
        "{\"name\":\"old\",\"version\":\"2\",\"state\":\"READY\",\"reason\":\"slow "
        "disk\",\"attempts\":\"3\",\"next_retry\":\"8\"}]");
    struct run run;
    run_inferctl(&run, fake_http_url(server), "index");
    EXPECT_INT(run.status, 0);
    EXPECT_TEXT(run.output, "MODEL\tVERSION\tSTATE\tPENDING\tREASON\tATTEMPTS\tNEXT_RETRY\n"
                            "digits\t1\tREADY\nbad\t\tUNAVAILABLE\t\tno file\nnew\t\t\tsettles\n"
                            "old\t2\tREADY\t\tslow disk\t3\t8\n");
    fake_http_stop(server);
}

static void output_that_is_lost_is_status_two(void)
{
    if (access("/dev/full", W_OK) != 0) {
        test_skip("needs /dev/full");
    }
    struct fake_http *server = fake_http_start();
    fake_http_answer_text(server, 200, "[{\"name\":\"a\",\"version\":\"1\",\"state\":\"READY\"}]");
    struct run run;
    run_inferctl(&run, fake_http_url(server), "index >/dev/full");
    EXPECT_INT(run.status, 2);
    EXPECT_TEXT(run.output, "inferctl: standard output: it cannot be written\n");
    fake_http_stop(server);
}

static void refusal_is_printed_and_is_status_one(void)
{
    struct fake_http *server = fake_http_start();
    fake_http_answer_text(server, 404,
                          "{\"error\":\"Request for unknown model: 'x' is not found\"}");
    struct run run;
    run_inferctl(&run, fake_http_url(server), "metadata x");
    EXPECT_INT(run.status, 1);
    EXPECT_TEXT(run.output, "inferctl: Request for unknown model: 'x' is not found\n");
    fake_http_stop(server);
}

static void silence_is_status_three(void)
{
    struct fake_http *server = fake_http_start(); /* no answers: it hangs up */
    struct run run;
    run_inferctl(&run, fake_http_url(server), "live");
    EXPECT_INT(run.status, 3);
    EXPECT_HAS(run.output, fake_http_url(server));
    fake_http_stop(server);
}

static void wrong_usage_is_status_two(void)
{
    static const char *const wrong[] = {
        "",
        "dance",
        "config",
        "live extra",
        "infer m",
        "infer m --input x=/nonexistent.npy --top 0",
        "infer m --input a.png --input b.png",
        "infer m --input a.png --top 2",
        "infer m --input /nonexistent.png",
        "ready --nope",
        "live --timeout soon",
        "log level",
        "load m --config /nonexistent.json",
        "live --token-file /nonexistent",
        "live --url ''",
        "live --url ftp://127.0.0.1",
        "live --url http://127.0.0.1:port",
        "live --url http://127.0.0.1:99999",
        "bench",
        "bench m --clients 0",
        "bench m --clients 1025",
        "bench m --rate many",
        "bench m --seconds -1",
        "live http://127.0.0.1:1 extra",
    };
    struct fake_http *server = fake_http_start();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct run run;
        run_inferctl(&run, fake_http_url(server), wrong[i]);
        EXPECT_INT(run.status, 2);
        EXPECT(run.output[0] != '\0');
    }
    fake_http_stop(server);
}

static void wrong_number_is_named_with_its_option(void)
{
    struct fake_http *server = fake_http_start();
    struct run run;
    run_inferctl(&run, fake_http_url(server), "bench m --rate many");
    EXPECT_TEXT(run.output, "inferctl: --rate: \"many\" is not a number from 1 to 1000000\n");
    fake_http_stop(server);
}

static void what_is_no_file_to_send_is_named(void)
{
    char folder[] = "/tmp/inferctl_files_XXXXXX", arguments[120], huge[64], fifo[64], want[200];
    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(huge, sizeof(huge), "%s/huge.npy", folder);
    snprintf(fifo, sizeof(fifo), "%s/fifo.png", folder);
    FILE *file = fopen(huge, "wb");
    REQUIRE(file && ftruncate(fileno(file), (off_t)5 << 30) == 0 && fclose(file) == 0);
    REQUIRE(mkfifo(fifo, 0600) == 0);
    const struct {
        const char *path, *why;
    } rows[] = {
        {folder, "is a directory, expected a file"},
        {fifo, "is no regular file"},
        {huge, "has 5368709120 bytes, at most 2147483647 can be sent"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fake_http *server = fake_http_start();
        struct run run;
        fake_http_answer_text(server, 200, "{\"inputs\":[{\"name\":\"x\"}]}"); /* metadata */
        snprintf(arguments, sizeof(arguments), "infer m --input %s", rows[i].path);
        snprintf(want, sizeof(want), "inferctl: %s: %s\n", rows[i].path, rows[i].why);
        run_inferctl(&run, fake_http_url(server), arguments);
        EXPECT_INT(run.status, 2);
        EXPECT_TEXT(run.output, want);
        snprintf(arguments, sizeof(arguments), "load m --config %s", rows[i].path);
        run_inferctl(&run, fake_http_url(server), arguments);
        EXPECT_INT(run.status, 2);
        EXPECT_TEXT(run.output, want);
        fake_http_stop(server);
    }
    unlink(huge);
    unlink(fifo);
    rmdir(folder);
}

static void wrong_command_is_named(void)
{
    struct fake_http *server = fake_http_start();
    struct run run;
    run_inferctl(&run, fake_http_url(server), "dance");
    EXPECT_TEXT(run.output, "inferctl: there is no command \"dance\"; --help lists them\n");
    run_inferctl(&run, fake_http_url(server), "load");
    EXPECT_TEXT(run.output, "inferctl: load needs the name of a model\n");
    run_inferctl(&run, fake_http_url(server), "unload m n");
    EXPECT_TEXT(run.output, "inferctl: unload: unexpected argument \"n\"\n");
    fake_http_stop(server);
}

static void unreachable_socket_is_named(void)
{
    struct run run;
    run_inferctl(&run, "http://127.0.0.1:9", "live --admin-socket /nonexistent.sock");
    EXPECT_INT(run.status, 3);
    EXPECT_HAS(run.output, "inferctl: /nonexistent.sock: ");
}

static void token_comes_from_a_file_that_is_private(void)
{
    static const struct {
        const char *text;
        mode_t mode;
        const char *why; /* NULL: it is sent */
    } rows[] = {
        {"my.token\n", 0600, NULL},
        {"my.token\r\nsecond line", 0400, NULL},
        {"my.token", 0640, "other users may read or write this token: chmod 600"},
        {"my.token", 0602, "other users may read or write this token: chmod 600"},
        {"", 0600, "its first line is empty or too long for a token"},
        {"\nmy.token", 0600, "its first line is empty or too long for a token"},
        {"my token", 0600, "has a character that tokens may not have"},
    };
    char path[] = "/tmp/inferctl_token_XXXXXX", arguments[80];
    int fd = mkstemp(path);
    REQUIRE(fd >= 0);
    snprintf(arguments, sizeof(arguments), "live --token-file %s", path);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fake_http *server = fake_http_start();
        struct run run;
        REQUIRE(ftruncate(fd, 0) == 0 && fchmod(fd, rows[i].mode) == 0);
        REQUIRE(pwrite(fd, rows[i].text, strlen(rows[i].text), 0) == (ssize_t)strlen(rows[i].text));
        fake_http_answer_text(server, 200, "{}");
        run_inferctl(&run, fake_http_url(server), arguments);
        EXPECT_INT(run.status, rows[i].why ? 2 : 0);
        if (rows[i].why) {
            EXPECT_HAS(run.output, rows[i].why);
            EXPECT(!strstr(run.output, "my.token") && !strstr(run.output, "my token"));
            EXPECT_INT(fake_http_connection_count(server), 0);
        } else {
            EXPECT_HAS(fake_http_request(server, 0).head, "\r\nAuthorization: Bearer my.token\r\n");
        }
        fake_http_stop(server);
    }
    close(fd);
    unlink(path);
    struct run run;
    run_inferctl(&run, "http://127.0.0.1:9", arguments);
    EXPECT_INT(run.status, 2);
    EXPECT_HAS(run.output, "No such file");
}

static void statistics_are_one_line_a_version(void)
{
    struct fake_http *server = fake_http_start();
    fake_http_answer_text(
        server, 200,
        "{\"model_stats\":[{\"name\":\"m\",\"version\":\"2\",\"inference_count\":6,"
        "\"execution_count\":3,\"inference_stats\":{\"success\":{\"count\":4,\"ns\":10000},"
        "\"fail\":{\"count\":1,\"ns\":9},\"queue\":{\"count\":4,\"ns\":2000},"
        "\"compute_infer\":{\"count\":0,\"ns\":0}}}]}");
    struct run run;
    run_inferctl(&run, fake_http_url(server), "stats");
    EXPECT_INT(run.status, 0);
    EXPECT_HAS(run.output, "COMPUTE_US\nm\t2\t6\t3\t1\t2.5\t0.5\t0.0\n");
    EXPECT_HAS(fake_http_request(server, 0).head, "GET /v2/models/stats HTTP/1.1\r\n");
    fake_http_stop(server);
}

static void url_may_stand_before_the_model(void)
{
    struct fake_http *server = fake_http_start();
    struct run run;
    char arguments[200];
    fake_http_answer_text(server, 200, "{}");
    snprintf(arguments, sizeof(arguments), "ready %s m", fake_http_url(server));
    run_inferctl(&run, "http://127.0.0.1:9", arguments);
    EXPECT_TEXT(run.output, "ready\n");
    EXPECT_HAS(fake_http_request(server, 0).head, "GET /v2/models/m/ready HTTP/1.1\r\n");
    fake_http_stop(server);
}

static void load_says_what_serves(void)
{
    struct fake_http *server = fake_http_start();
    struct run run;
    fake_http_answer_text(server, 200, "");
    fake_http_answer_text(server, 200,
                          "[{\"name\":\"m\",\"version\":\"2\",\"state\":\"READY\"},"
                          "{\"name\":\"n\",\"version\":\"7\",\"state\":\"READY\"}]");
    run_inferctl(&run, fake_http_url(server), "load m");
    EXPECT_TEXT(run.output, "loaded m version 2\n");
    fake_http_answer_text(server, 200, "");
    fake_http_answer_text(server, 403, "{\"error\":\"wrong class\"}");
    run_inferctl(&run, fake_http_url(server), "load m");
    EXPECT_TEXT(run.output, "loaded m\n");
    EXPECT_INT(run.status, 0);
    fake_http_stop(server);
}

static void bench_of_what_is_refused_asks_once(void)
{
    struct fake_http *server = fake_http_start();
    struct run run;
    fake_http_answer_text(server, 404, "{\"error\":\"no such model\"}");
    run_inferctl(&run, fake_http_url(server), "bench m --clients 3");
    EXPECT_INT(run.status, 1);
    EXPECT_TEXT(run.output, "inferctl: no such model\n");
    fake_http_stop(server);
}

static void log_setting_is_sent_as_json(void)
{
    struct fake_http *server = fake_http_start();
    struct run run;
    for (int i = 0; i < 3; i++) {
        fake_http_answer_text(server, 200, "{}");
    }
    run_inferctl(&run, fake_http_url(server), "log");
    EXPECT_HAS(fake_http_request(server, 0).head, "GET /v2/logging HTTP/1.1\r\n");
    run_inferctl(&run, fake_http_url(server), "log log_info=false");
    EXPECT_TEXT(fake_http_request(server, 1).body, "{\"log_info\":false}");
    run_inferctl(&run, fake_http_url(server), "log log_format=ISO8601");
    EXPECT_TEXT(fake_http_request(server, 2).body, "{\"log_format\":\"ISO8601\"}");
    run_inferctl(&run, fake_http_url(server), "log loud");
    EXPECT_INT(run.status, 2);
    EXPECT_HAS(run.output, "NAME=VALUE");
    fake_http_stop(server);
}

static void picture_is_sent_and_what_it_shows_is_printed(void)
{
    struct fake_http *server = fake_http_start();
    fake_http_answer_text(
        server, 200,
        "{\"model_name\":\"digits\",\"image\":{\"width\":8},\"classes\":["
        "{\"label\":\"three\",\"score\":0.9},{\"label\":\"five\",\"score\":0.1}]}");
    char arguments[512];
    snprintf(arguments, sizeof(arguments), "infer digits --input '%s'",
             test_source("models/digits/examples/three.png"));
    struct run run;
    run_inferctl(&run, fake_http_url(server), arguments);
    EXPECT_INT(run.status, 0);
    EXPECT_TEXT(run.output, "{\"label\": \"three\", \"score\": 0.9}\n"
                            "{\"label\": \"five\", \"score\": 0.1}\n");
    struct fake_request request = fake_http_request(server, 0);
    EXPECT_HAS(request.head, "Content-Type: image/png\r\n");
    EXPECT_BYTES(request.body, "\x89PNG", 4);
    fake_http_stop(server);
}

static void sound_is_sent_and_each_window_is_printed(void)
{
    struct fake_http *server = fake_http_start();
    fake_http_answer_text(server, 200, "{\"windows\":[{\"from\":0,\"classes\":[]}]}");
    char path[] = "/tmp/inferd_XXXXXX.WAV", arguments[64];
    int fd = mkstemps(path, 4);
    REQUIRE(fd >= 0);
    REQUIRE(write(fd, "RIFF", 4) == 4);
    REQUIRE(close(fd) == 0);
    snprintf(arguments, sizeof(arguments), "infer m --input %s", path);
    struct run run;
    run_inferctl(&run, fake_http_url(server), arguments);
    EXPECT_INT(unlink(path), 0);
    EXPECT_INT(run.status, 0);
    EXPECT_TEXT(run.output, "{\"from\": 0, \"classes\": []}\n");
    EXPECT_HAS(fake_http_request(server, 0).head, "Content-Type: audio/wav\r\n");
    fake_http_stop(server);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(index_is_a_header_and_one_line_a_model),
        T(output_that_is_lost_is_status_two),
        T(refusal_is_printed_and_is_status_one),
        T(silence_is_status_three),
        T(wrong_usage_is_status_two),
        T(wrong_number_is_named_with_its_option),
        T(what_is_no_file_to_send_is_named),
        T(wrong_command_is_named),
        T(unreachable_socket_is_named),
        T(token_comes_from_a_file_that_is_private),
        T(statistics_are_one_line_a_version),
        T(url_may_stand_before_the_model),
        T(load_says_what_serves),
        T(bench_of_what_is_refused_asks_once),
        T(log_setting_is_sent_as_json),
        T(picture_is_sent_and_what_it_shows_is_printed),
        T(sound_is_sent_and_each_window_is_printed),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

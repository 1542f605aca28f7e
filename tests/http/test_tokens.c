/* A server with tokens: what each token gets on each socket, also while tokens change. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/builtin.h"
#include "tests/http/live.h"
#include "tests/http/notes.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#define CLIENTS   3
#define ROTATIONS 40

/* sha256sum of the tokens of these names. */
#define SUM_DATA "17413446c86d23ac699051a000aefb38232952d793ddb1f6256e451e4215a3e6" /* data-token */
#define SUM_OBSERVE                                                                                \
    "ce05f0774d17716bc7dc8dd27d838d7889c35a9db4b77f69d9c7fa376c8d0af0" /* observe-token */
#define SUM_ADMIN                                                                                  \
    "10a4c7c9fc5206d6f36dc6944a81bb6f4a3cb0e25014ae3b12e6c3e52712292a" /* admin-token */
#define SUM_NEXT "666dd069b1cba88c5ca7a11a30bbae649a1553fbffd73f9ab9d2fb154b6070c1" /* data-next */
#define SUM_CAMERA                                                                                 \
    "eb54f3aa0d6edf3bb45233ea631fe7676245b7b8843641666612fc6edc287bbe" /* camera-observe */

static const char all_tokens[] =
    "# who may ask\n"
    "clients data sha256:" SUM_DATA "\n"
    "dashboard observe sha256:" SUM_OBSERVE "\n"
    "operator admin sha256:" SUM_ADMIN "\n"
    "camera data,observe,admin sha256:" SUM_CAMERA " models=cam_*,slo?\n";

/* ---- the file, the server, a request ---- */

static char token_option[160];

static void put_tokens(const char *text)
{
    folder_put("tokens", text);
    REQUIRE(chmod(folder_at("tokens"), 0600) == 0);
}

static void begin(struct live *live, const char *text, const char *const *more,
                  const struct live_options *as)
{
    const char *options[10] = {token_option};
    folder_begin();
    put_tokens(text);
    (void)snprintf(token_option, sizeof(token_option), "--token-file=%s", folder_at("tokens"));
    for (size_t i = 1; more && *more; i++) {
        REQUIRE(i < 9);
        options[i] = *more++;
    }
    live_start_as(live, options, as ? as : &(struct live_options){0});
}

static void end(struct live *live)
{
    live_stop(live);
    EXPECT(unlink(folder_at("tokens")) == 0);
    folder_end();
}

/* rest: what follows the authorization; token NULL: none. */
static void send_request(int fd, const char *line, const char *token, const char *rest)
{
    char text[2048];
    REQUIRE(snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: a\r\n%s%s%s%s", line,
                     token ? "Authorization: Bearer " : "", token ? token : "", token ? "\r\n" : "",
                     rest) < (int)sizeof(text));
    client_send_text(fd, text);
}

static struct answer ask_at(uint16_t port, const char *line, const char *token)
{
    const struct live at = {.port = port};
    int fd = client_connect(&at);
    REQUIRE(fd >= 0);
    send_request(fd, line, token,
                 strncmp(line, "POST", 4) == 0 ? "Content-Length: 0\r\n\r\n" : "\r\n");
    struct answer answer = client_read(fd);
    (void)close(fd);
    return answer;
}

static int status_of(const struct live *live, const char *line, const char *token)
{
    return ask_at(live->port, line, token).status;
}

static const char infer_rest[] =
    "Content-Length: 67\r\n\r\n"
    "{\"inputs\":[{\"name\":\"IN\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[7]}]}";

static struct answer infer_on(int fd, const char *model, const char *token)
{
    char line[80];
    (void)snprintf(line, sizeof(line), "POST /v2/models/%s/infer", model);
    send_request(fd, line, token, infer_rest);
    return client_read(fd);
}

static int infer(const struct live *live, const char *model, const char *token)
{
    int fd = client_connect(live);
    REQUIRE(fd >= 0);
    int status = infer_on(fd, model, token).status;
    (void)close(fd);
    return status;
}

/* ---- classes and models ---- */

static void each_class_gets_its_routes_and_no_other(void)
{
    static const char *const tokens[] = {"data-token", "observe-token", "admin-token"};
    static const struct {
        const char *line;
        int class, status; /* of the token that fits */
    } rows[] = {
        {"GET /v2", 0, 200},
        {"GET /v2/models/echo", 0, 200},
        {"GET /v2/models/echo/versions/1", 0, 200},
        {"GET /v2/models/echo/ready", 0, 200},
        {"GET /v2/models/echo/config", 0, 200},
        {"POST /v2/models/echo/infer", 0, 400}, /* it has no body */
        {"POST /v2/models/nothing/infer", 0, 404},
        {"GET /v2/systemsharedmemory/status", 0, 200},
        {"GET /v2/models/stats", 1, 200},
        {"GET /v2/models/echo/stats", 1, 200},
        {"POST /v2/repository/index", 1, 200},
        {"GET /v2/logging", 1, 200},
        {"GET /v2/trace/setting", 1, 200},
        {"POST /v2/repository/models/echo/load", 2, 200},
        {"POST /v2/repository/models/echo/unload", 2, 200},
        {"POST /v2/logging", 2, 200},
        {"POST /v2/trace/setting", 2, 200},
    };
    struct live live;
    begin(&live, all_tokens,
          (const char *const[]){"--admin-on-http", "--model-control-mode=explicit",
                                "--load-model=*", NULL},
          NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        EXPECT_INT(status_of(&live, rows[i].line, NULL), 401);
        EXPECT_INT(status_of(&live, rows[i].line, "no-token"), 401);
        for (int k = 0; k < 3; k++) {
            EXPECT_INT(status_of(&live, rows[i].line, tokens[k]),
                       k == rows[i].class ? rows[i].status : 403);
        }
    }
    EXPECT_INT(status_of(&live, "GET /v2/nothing", NULL), 401);
    EXPECT_INT(status_of(&live, "GET /v2/nothing", "admin-token"), 404);
    EXPECT_INT(status_of(&live, "GET /v2/health/live", NULL), 200);
    EXPECT_INT(status_of(&live, "GET /v2/health/ready", "no-token"), 200);
    end(&live);
}

static void token_for_models_is_for_no_others(void)
{
    struct live live;
    begin(&live, all_tokens, (const char *const[]){"--admin-on-http", NULL}, NULL);
    EXPECT_INT(infer(&live, "slow", "camera-observe"), 200);
    EXPECT_INT(infer(&live, "echo", "camera-observe"), 403);
    EXPECT_INT(infer(&live, "%65cho", "camera-observe"), 403);
    EXPECT_INT(infer(&live, "cam_1", "camera-observe"), 404);
    EXPECT_INT(status_of(&live, "GET /v2", "camera-observe"), 200);
    EXPECT_INT(status_of(&live, "GET /v2/models/slow/stats", "camera-observe"), 200);
    EXPECT_INT(status_of(&live, "GET /v2/models/echo/stats", "camera-observe"), 403);
    EXPECT_INT(status_of(&live, "GET /v2/models/stats", "camera-observe"), 403);
    EXPECT_INT(status_of(&live, "POST /v2/repository/index", "camera-observe"), 403);
    EXPECT_INT(status_of(&live, "POST /v2/logging", "camera-observe"), 403);
    EXPECT_INT(status_of(&live, "POST /v2/repository/models/echo/unload", "camera-observe"), 403);
    end(&live);
}

static void metrics_are_for_observers(void)
{
    struct live live;
    begin(&live, all_tokens, NULL, NULL);
    const uint16_t port = live.metrics_port;
    struct answer answer = ask_at(port, "GET /metrics", NULL);
    EXPECT_INT(answer.status, 401);
    EXPECT_HAS(answer.head, "\r\nWWW-Authenticate: Bearer realm=\"inferd\"\r\n");
    EXPECT(!strstr(answer.body, "inferd_"));
    EXPECT_INT(ask_at(port, "GET /nothing", NULL).status, 401);
    EXPECT_INT(ask_at(port, "GET /metrics", "data-token").status, 403);
    EXPECT_INT(ask_at(port, "GET /metrics", "camera-observe").status, 403); /* all models */
    EXPECT_INT(ask_at(port, "GET /metrics", "observe-token").status, 200);
    EXPECT_INT(live_metric_as(&live, "observe-token",
                              "\ninferd_http_requests_denied_total{reason=\"no_token\"} "),
               2);
    EXPECT_INT(live_metric_as(&live, "observe-token",
                              "\ninferd_http_requests_denied_total{reason=\"class\"} "),
               1);
    EXPECT_INT(live_metric_as(&live, "observe-token",
                              "\ninferd_http_requests_denied_total{reason=\"model\"} "),
               1);
    end(&live);
}

static int connect_unix(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0);
    return fd;
}

static void only_the_admin_socket_needs_no_token(void)
{
    struct live live;
    char http[160], admin[160];
    folder_begin();
    char folder[80];
    (void)snprintf(folder, sizeof(folder), "%s", folder_path());
    EXPECT(rmdir(folder) == 0);
    (void)snprintf(http, sizeof(http), "--http-socket=%s.http", folder);
    (void)snprintf(admin, sizeof(admin), "--admin-socket=%s.admin", folder);
    begin(&live, all_tokens, (const char *const[]){http, admin, NULL}, NULL);
    int fd = connect_unix(strchr(http, '=') + 1);
    EXPECT_INT(infer_on(fd, "echo", NULL).status, 401);
    EXPECT_INT(infer_on(fd, "echo", "data-token").status, 200);
    (void)close(fd);
    fd = connect_unix(strchr(admin, '=') + 1);
    EXPECT_INT(infer_on(fd, "echo", NULL).status, 200);
    send_request(fd, "POST /v2/logging", NULL, "Content-Length: 0\r\n\r\n");
    EXPECT_INT(client_read(fd).status, 200);
    (void)close(fd);
    end(&live);
}

static void control_is_closed_on_http_without_leave(void)
{
    struct live live;
    begin(&live, all_tokens, NULL, NULL);
    struct answer answer = ask_at(live.port, "POST /v2/logging", "admin-token");
    EXPECT_INT(answer.status, 403);
    EXPECT_HAS(answer.body, "--admin-on-http");
    end(&live);
}

/* ---- before the body ---- */

static void refusal_comes_before_the_body(void)
{
    struct live live;
    begin(&live, all_tokens, NULL, NULL);
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    send_request(fd, "POST /v2/models/echo/infer", "no-token", "Content-Length: 60000000\r\n\r\n");
    struct answer answer = client_read(fd); /* of the body nothing was sent */
    EXPECT_INT(answer.status, 401);
    EXPECT_HAS(answer.head,
               "\r\nWWW-Authenticate: Bearer realm=\"inferd\", error=\"invalid_token\"\r\n");
    EXPECT_HAS(answer.head, "\r\nConnection: close\r\n");
    (void)close(fd);
    fd = client_connect(&live);
    REQUIRE(fd >= 0);
    send_request(fd, "POST /v2/models/echo/infer", NULL,
                 "Content-Length: 67\r\nExpect: 100-continue\r\n\r\n");
    answer = client_read(fd);
    EXPECT_INT(answer.status, 401);
    (void)close(fd);
    fd = client_connect(&live); /* a small one does not cost the connection */
    REQUIRE(fd >= 0);
    EXPECT_INT(infer_on(fd, "echo", NULL).status, 401);
    EXPECT_INT(infer_on(fd, "echo", "observe-token").status, 403);
    EXPECT_INT(infer_on(fd, "echo", "data-token").status, 200);
    (void)close(fd);
    while (live_metric_as(&live, "observe-token", "\ninferd_http_requests_inflight ") > 0) {
    }
    EXPECT_INT(live_metric_as(&live, "observe-token", "\ninferd_http_request_body_bytes_total "),
               67);
    end(&live);
}

/* ---- metrics and logs ---- */

static void refusals_are_client_errors_and_keep_the_law(void)
{
    static const char *const outcomes[] = {"ok",      "client_error", "shed",
                                           "timeout", "failed",       "aborted"};
    struct live live;
    char series[120];
    long long sum = 0;
    begin(&live, all_tokens, NULL, NULL);
    for (int i = 0; i < 5; i++) {
        EXPECT_INT(infer(&live, "echo", NULL), 401);
        EXPECT_INT(infer(&live, "echo", "no-token"), 401);
        EXPECT_INT(infer(&live, "echo", "admin-token"), 403);
        EXPECT_INT(infer(&live, "echo", "camera-observe"), 403);
        EXPECT_INT(infer(&live, "echo", "data-token"), 200);
    }
    while (live_metric_as(&live, "observe-token", "\ninferd_http_requests_inflight ") > 0) {
    }
    EXPECT_INT(live_metric_as(&live, "observe-token",
                              "\ninferd_http_requests_total{outcome=\"client_error\"} "),
               20);
    EXPECT_INT(
        live_metric_as(&live, "observe-token", "\ninferd_http_responses_total{code=\"401\"} "), 10);
    EXPECT_INT(
        live_metric_as(&live, "observe-token", "\ninferd_http_responses_total{code=\"403\"} "), 10);
    static const char *const reasons[] = {"no_token", "unknown_token", "class", "model"};
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(series, sizeof(series),
                       "\ninferd_http_requests_denied_total{reason=\"%s\"} ", reasons[i]);
        EXPECT_INT(live_metric_as(&live, "observe-token", series), 5);
    }
    for (size_t i = 0; i < 6; i++) {
        (void)snprintf(series, sizeof(series), "\ninferd_http_requests_total{outcome=\"%s\"} ",
                       outcomes[i]);
        sum += live_metric_as(&live, "observe-token", series);
    }
    EXPECT_INT(live_metric_as(&live, "observe-token", "\ninferd_http_requests_accepted_total "),
               25);
    EXPECT_INT(sum, 25);
    /* refused requests never reached the model */
    EXPECT_INT(live_metric_as(&live, "observe-token",
                              "\ninferd_requests_accepted_total{model=\"echo\",version=\"1\"} "),
               5);
    end(&live);
}

static void reread(const struct live *live, const char *tokens, const char *wanted)
{
    notes_clear(); /* nothing is in progress */
    put_tokens(tokens);
    ifd_server_reread(live->server);
    EXPECT(notes_have(wanted));
    EXPECT(notes_have("settings ")); /* it is over */
}

static void logs_name_the_token_and_never_show_it(void)
{
    static char text[8192];
    struct live live;
    char log[160];
    begin(&live, all_tokens, NULL, NULL);
    live_stop(&live);
    (void)snprintf(log, sizeof(log), "--access-log=%s", folder_at("log"));
    notes_clear();
    live_start_as(&live, (const char *const[]){token_option, log, "--log-verbose=2", NULL},
                  &(struct live_options){.log = notes_take});
    live.log.levels = IFD_LOG_UP_TO(IFD_LOG_DEBUG);
    EXPECT_INT(infer(&live, "echo", "data-token"), 200);
    EXPECT_INT(infer(&live, "echo", "admin-token"), 403);
    EXPECT_INT(infer(&live, "echo", "no-token"), 401);
    EXPECT_INT(status_of(&live, "GET /v2/models/echo/config", "data-token"), 200);
    live_stop(&live);
    FILE *in = fopen(folder_at("log"), "re");
    REQUIRE(in != NULL);
    text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
    (void)fclose(in);
    EXPECT_HAS(text, " client=127.0.0.1 token=clients method=POST path=\"/v2/models/echo/infer\" "
                     "status=200 ");
    EXPECT_HAS(text, " client=127.0.0.1 token=operator method=POST path=\"/v2/models/echo/infer\" "
                     "status=403 ");
    EXPECT_HAS(text, " client=127.0.0.1 method=POST path=\"/v2/models/echo/infer\" status=401 ");
    static const char *const secrets[] = {"data-token", "admin-token", "no-token", SUM_DATA};
    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
        EXPECT(!strstr(text, secrets[i]));
        EXPECT(!strstr(notes_text(), secrets[i]));
    }
    EXPECT(unlink(folder_at("log")) == 0);
    EXPECT(unlink(folder_at("tokens")) == 0);
    folder_end();
}

/* ---- SIGHUP ---- */

static void bad_file_keeps_the_tokens_and_is_counted(void)
{
    struct live live;
    begin(&live, all_tokens, NULL, &(struct live_options){.log = notes_take});
    reread(&live, "clients data s3cret\n", "settings reload failed");
    EXPECT_HAS(notes_text(), "line 1: the third word");
    EXPECT(!strstr(notes_text(), "s3cret"));
    EXPECT_INT(infer(&live, "echo", "data-token"), 200);
    reread(&live, "", "it holds no token"); /* just being written */
    put_tokens(all_tokens);
    REQUIRE(chmod(folder_at("tokens"), 0644) == 0);
    notes_clear();
    ifd_server_reread(live.server);
    EXPECT(notes_have("its mode is 0644"));
    EXPECT_INT(infer(&live, "echo", "data-token"), 200);
    EXPECT_INT(live_metric_as(&live, "observe-token",
                              "\ninferd_config_reloads_total{result=\"invalid\"} "),
               3);
    EXPECT(unlink(folder_at("tokens")) == 0);
    notes_clear();
    ifd_server_reread(live.server);
    EXPECT(notes_have("No such file"));
    EXPECT_INT(
        live_metric_as(&live, "observe-token", "\ninferd_config_reloads_total{result=\"i/o\"} "),
        1);
    EXPECT_INT(
        live_metric_as(&live, "observe-token", "\ninferd_config_reloads_total{result=\"ok\"} "), 0);
    reread(&live, "dashboard observe sha256:" SUM_OBSERVE "\n", "tokens reloaded file=");
    EXPECT_INT(infer(&live, "echo", "data-token"), 401);
    EXPECT_INT(
        live_metric_as(&live, "observe-token", "\ninferd_config_reloads_total{result=\"ok\"} "), 1);
    end(&live);
}

static void open_request_outlives_its_token(void)
{
    struct live live;
    begin(&live, all_tokens, NULL, &(struct live_options){.log = notes_take});
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    send_request(fd, "POST /v2/models/narrow/infer", "data-token", infer_rest);
    while (live_metric_as(&live, "observe-token",
                          "\ninferd_requests_inflight{model=\"narrow\",version=\"1\"} ") == 0) {
    }
    reread(&live, "dashboard observe sha256:" SUM_OBSERVE "\n", "tokens reloaded");
    EXPECT_INT(client_read(fd).status, 200);
    EXPECT_INT(infer_on(fd, "echo", "data-token").status, 401); /* on the same connection */
    (void)close(fd);
    end(&live);
}

static struct {
    atomic_bool stop;
    atomic_int turn; /* odd: data-next is the token to use */
} rotation;

struct client {
    const struct live *live;
    struct ifd_thread thread;
    atomic_int seen_turn; /* answered with the token of this turn */
    long sent, right;
};

static void keep_asking(void *arg)
{
    struct client *client = arg;
    int fd = client_connect(client->live);
    REQUIRE(fd >= 0);
    while (!atomic_load(&rotation.stop)) {
        const int turn = atomic_load(&rotation.turn);
        client->sent++;
        client->right += infer_on(fd, "echo", turn % 2 ? "data-next" : "data-token").status == 200;
        atomic_store(&client->seen_turn, turn);
    }
    (void)close(fd);
}

/* Adds a new token, lets clients switch, removes the old one. */
static void rotation_under_load_loses_no_request(void)
{
    static const char *const lines[] = {"clients data sha256:" SUM_DATA "\n",
                                        "clients data sha256:" SUM_NEXT "\n"};
    static const char *const old_token[] = {"data-token", "data-next"};
    struct live live;
    struct client client[CLIENTS];
    struct ifd_err err = {0};
    char text[512];
    begin(&live, lines[0], NULL, &(struct live_options){.log = notes_take});
    for (int i = 0; i < CLIENTS; i++) {
        client[i] = (struct client){.live = &live};
        REQUIRE_OK(ifd_thread_start(&client[i].thread, "client", keep_asking, &client[i],
                                    ifd_alloc_system(), &err),
                   &err);
    }
    for (int turn = 1; turn <= ROTATIONS; turn++) {
        (void)snprintf(text, sizeof(text), "%s%s", lines[0], lines[1]);
        reread(&live, text, "tokens=2");
        atomic_store(&rotation.turn, turn);
        for (int i = 0; i < CLIENTS; i++) {
            while (atomic_load(&client[i].seen_turn) != turn) {
                (void)usleep(200);
            }
        }
        reread(&live, lines[turn % 2], "tokens=1");
        EXPECT_INT(infer(&live, "echo", old_token[(turn + 1) % 2]), 401);
    }
    atomic_store(&rotation.stop, true);
    for (int i = 0; i < CLIENTS; i++) {
        ifd_thread_join(&client[i].thread);
        EXPECT_INT(client[i].right, client[i].sent);
        EXPECT(client[i].sent >= ROTATIONS);
    }
    end(&live);
}

/* ---- the start ---- */

static void expect_start(const char *const *more, enum ifd_code want, const char *why)
{
    char *argv[8] = {(char *)(uintptr_t)folder_path(), (char *)(uintptr_t) "--http-port=0",
                     (char *)(uintptr_t) "--metrics-port=0"};
    int argc = 3;
    struct ifd_config config = {0};
    struct ifd_log log = {0};
    struct ifd_server *server = NULL;
    struct ifd_err err = {0};
    for (; *more; more++) {
        argv[argc++] = (char *)(uintptr_t)*more;
    }
    REQUIRE_OK(ifd_config_parse(argc, argv, &config, &err), &err);
    struct ifd_server_options options = {.alloc = ifd_alloc_system(),
                                         .config = &config,
                                         .argc = argc,
                                         .argv = argv,
                                         .log = &log,
                                         .program_version = "0"};
    options.backends = ifd_backends_builtin(&options.backend_count);
    EXPECT_CODE(ifd_server_create(&options, &server, &err), want, &err);
    if (want) {
        EXPECT_HAS(err.text, why);
    }
    ifd_server_destroy(server);
}

static void start_is_refused_where_tokens_protect_nothing(void)
{
    folder_begin();
    put_tokens(all_tokens);
    (void)snprintf(token_option, sizeof(token_option), "--token-file=%s", folder_at("tokens"));
    expect_start((const char *const[]){token_option, NULL}, IFD_OK, NULL);
    expect_start((const char *const[]){"--admin-on-http", "--http-address=0.0.0.0", NULL},
                 IFD_INVALID, "--admin-on-http on address 0.0.0.0 would let everyone there");
    expect_start((const char *const[]){"--admin-on-http", NULL}, IFD_OK, NULL);
    expect_start((const char *const[]){"--admin-on-http", "--http-address=127.0.0.2", NULL}, IFD_OK,
                 NULL);
    expect_start((const char *const[]){"--http-address=0.0.0.0", NULL}, IFD_OK, NULL);
    expect_start(
        (const char *const[]){"--admin-on-http", "--http-address=0.0.0.0", token_option, NULL},
        IFD_OK, NULL);
    REQUIRE(chmod(folder_at("tokens"), 0644) == 0);
    expect_start((const char *const[]){token_option, NULL}, IFD_INVALID,
                 "its mode is 0644, which lets others read or write it; expected 0600");
    EXPECT(unlink(folder_at("tokens")) == 0);
    expect_start((const char *const[]){token_option, NULL}, IFD_IO, "No such file");
    folder_end();
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(each_class_gets_its_routes_and_no_other),
        T(token_for_models_is_for_no_others),
        T(metrics_are_for_observers),
        T(only_the_admin_socket_needs_no_token),
        T(control_is_closed_on_http_without_leave),
        T(refusal_comes_before_the_body),
        T(refusals_are_client_errors_and_keep_the_law),
        T(logs_name_the_token_and_never_show_it),
        T(bad_file_keeps_the_tokens_and_is_counted),
        T(open_request_outlives_its_token),
        T(rotation_under_load_loses_no_request),
        T(start_is_refused_where_tokens_protect_nothing),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

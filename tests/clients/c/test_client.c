/* The C client's calls without tensors, against a server that answers from a script. */
#include "inferd_client.h"
#include "tests/clients/fake_http.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A server and a client that speaks to it. */
struct pair {
    struct fake_http *server;
    struct ifd_client *client;
    struct ifd_client_err err;
};

static void open_pair(struct pair *pair, size_t max_answer_bytes)
{
    *pair = (struct pair){.server = fake_http_start()};
    struct ifd_client_options options = {.url = fake_http_url(pair->server),
                                         .max_answer_bytes = max_answer_bytes};
    REQUIRE(ifd_client_create(&options, &pair->client, &pair->err) == IFD_CLIENT_OK);
}

static void close_pair(struct pair *pair)
{
    ifd_client_destroy(pair->client);
    fake_http_stop(pair->server);
}

static bool begins(const char *text, const char *part)
{
    return strncmp(text, part, strlen(part)) == 0;
}

static void live_asks_the_health_route(void)
{
    struct pair p;
    open_pair(&p, 0);
    fake_http_answer_text(p.server, 200, "{\"live\":true}");
    EXPECT_INT(ifd_client_live(p.client, &p.err), IFD_CLIENT_OK);
    EXPECT(begins(fake_http_request(p.server, 0).head, "GET /v2/health/live HTTP/1.1\r\n"));
    close_pair(&p);
}

static void ready_gives_the_reason_of_the_server(void)
{
    struct pair p;
    open_pair(&p, 0);
    fake_http_answer_text(p.server, 400, "{\"error\":\"model \\\"m\\\" is loading\"}");
    EXPECT_INT(ifd_client_ready(p.client, "m", NULL, &p.err), IFD_CLIENT_REFUSED);
    EXPECT_TEXT(p.err.text, "model \"m\" is loading");
    EXPECT_INT(p.err.http_status, 400);
    EXPECT(begins(fake_http_request(p.server, 0).head, "GET /v2/models/m/ready HTTP/1.1\r\n"));
    close_pair(&p);
}

static void refusal_without_json_names_the_status(void)
{
    struct pair p;
    open_pair(&p, 0);
    fake_http_answer_text(p.server, 502, "<html>bad gateway</html>");
    EXPECT_INT(ifd_client_ready(p.client, NULL, NULL, &p.err), IFD_CLIENT_REFUSED);
    EXPECT_HAS(p.err.text, "502");
    EXPECT_INT(p.err.http_status, 502);
    close_pair(&p);
}

static void names_in_paths_are_escaped(void)
{
    struct pair p;
    open_pair(&p, 0);
    fake_http_answer_text(p.server, 200, "{}");
    char *json = NULL;
    EXPECT_INT(ifd_client_config(p.client, "a/b c", "3", &json, &p.err), IFD_CLIENT_OK);
    EXPECT(begins(fake_http_request(p.server, 0).head,
                  "GET /v2/models/a%2Fb%20c/versions/3/config HTTP/1.1\r\n"));
    EXPECT_TEXT(json, "{}");
    ifd_client_text_free(json);
    close_pair(&p);
}

static void empty_model_name_is_refused_before_sending(void)
{
    struct pair p;
    open_pair(&p, 0);
    char *json = NULL;
    EXPECT_INT(ifd_client_metadata(p.client, "", NULL, &json, &p.err), IFD_CLIENT_INVALID);
    EXPECT_INT(fake_http_connection_count(p.server), 0);
    close_pair(&p);
}

static void metadata_of_server_and_model_are_different_routes(void)
{
    struct pair p;
    open_pair(&p, 0);
    fake_http_answer_text(p.server, 200, "{\"name\":\"s\"}");
    fake_http_answer_text(p.server, 200, "{\"name\":\"m\"}");
    char *server_json = NULL, *model_json = NULL;
    REQUIRE(ifd_client_metadata(p.client, NULL, NULL, &server_json, &p.err) == IFD_CLIENT_OK);
    REQUIRE(ifd_client_metadata(p.client, "m", NULL, &model_json, &p.err) == IFD_CLIENT_OK);
    EXPECT(begins(fake_http_request(p.server, 0).head, "GET /v2 HTTP/1.1\r\n"));
    EXPECT(begins(fake_http_request(p.server, 1).head, "GET /v2/models/m HTTP/1.1\r\n"));
    EXPECT_TEXT(server_json, "{\"name\":\"s\"}");
    EXPECT_TEXT(model_json, "{\"name\":\"m\"}");
    ifd_client_text_free(server_json);
    ifd_client_text_free(model_json);
    close_pair(&p);
}

static void index_asks_for_ready_models_only_when_told(void)
{
    struct pair p;
    open_pair(&p, 0);
    fake_http_answer_text(p.server, 200, "[]");
    fake_http_answer_text(p.server, 200, "[]");
    for (int ready_only = 0; ready_only < 2; ready_only++) {
        char *json = NULL;
        EXPECT_INT(ifd_client_index(p.client, ready_only != 0, &json, &p.err), IFD_CLIENT_OK);
        ifd_client_text_free(json);
    }
    EXPECT(begins(fake_http_request(p.server, 0).head, "POST /v2/repository/index HTTP/1.1\r\n"));
    EXPECT_INT(fake_http_request(p.server, 0).body_bytes, 0);
    EXPECT_TEXT(fake_http_request(p.server, 1).body, "{\"ready\":true}");
    close_pair(&p);
}

static void load_and_unload_name_the_model_and_carry_the_config(void)
{
    struct pair p;
    open_pair(&p, 0);
    for (int i = 0; i < 3; i++) {
        fake_http_answer_text(p.server, 200, "");
    }
    EXPECT_INT(ifd_client_load(p.client, "a b", NULL, &p.err), IFD_CLIENT_OK);
    EXPECT_INT(ifd_client_load(p.client, "m", "{\"max_batch_size\": 2}", &p.err), IFD_CLIENT_OK);
    EXPECT_INT(ifd_client_unload(p.client, "m", &p.err), IFD_CLIENT_OK);
    EXPECT(begins(fake_http_request(p.server, 0).head,
                  "POST /v2/repository/models/a%20b/load HTTP/1.1\r\n"));
    EXPECT_INT(fake_http_request(p.server, 0).body_bytes, 0);
    EXPECT_TEXT(fake_http_request(p.server, 1).body,
                "{\"parameters\":{\"config\":\"{\\\"max_batch_size\\\": 2}\"}}");
    EXPECT(begins(fake_http_request(p.server, 2).head,
                  "POST /v2/repository/models/m/unload HTTP/1.1\r\n"));
    close_pair(&p);
}

static void calls_share_one_connection(void)
{
    struct pair p;
    open_pair(&p, 0);
    for (int i = 0; i < 3; i++) {
        fake_http_answer_text(p.server, i == 1 ? 400 : 200, "{}");
    }
    EXPECT_INT(ifd_client_live(p.client, &p.err), IFD_CLIENT_OK);
    EXPECT_INT(ifd_client_live(p.client, &p.err), IFD_CLIENT_REFUSED);
    EXPECT_INT(ifd_client_live(p.client, &p.err), IFD_CLIENT_OK);
    EXPECT_INT(fake_http_connection_count(p.server), 1);
    close_pair(&p);
}

static void slash_at_the_end_of_the_url_does_not_matter(void)
{
    struct fake_http *server = fake_http_start();
    struct ifd_client_err err;
    char url[80] = "";
    strncat(url, fake_http_url(server), sizeof(url) - 2);
    url[strlen(url)] = '/';
    struct ifd_client *client = NULL;
    REQUIRE(ifd_client_create(&(struct ifd_client_options){.url = url}, &client, &err) ==
            IFD_CLIENT_OK);
    fake_http_answer_text(server, 200, "{}");
    EXPECT_INT(ifd_client_live(client, &err), IFD_CLIENT_OK);
    EXPECT(begins(fake_http_request(server, 0).head, "GET /v2/health/live HTTP/1.1\r\n"));
    ifd_client_destroy(client);
    fake_http_stop(server);
}

static void unix_socket_is_reached_by_its_path(void)
{
    char folder[] = "/tmp/inferd_client_XXXXXX", path[64];
    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/socket", folder);
    struct fake_http *server = fake_http_start_unix(path);
    fake_http_answer_text(server, 200, "{}");
    struct ifd_client *client = NULL;
    struct ifd_client_err err;
    const struct ifd_client_options options = {.url = fake_http_url(server)};
    REQUIRE(ifd_client_create(&options, &client, &err) == IFD_CLIENT_OK);
    EXPECT_INT(ifd_client_live(client, &err), IFD_CLIENT_OK);
    EXPECT(begins(fake_http_request(server, 0).head, "GET /v2/health/live HTTP/1.1\r\n"));
    ifd_client_destroy(client);
    fake_http_stop(server);
    unlink(path);
    rmdir(folder);
}

static void token_is_sent_with_every_call(void)
{
    struct fake_http *server = fake_http_start();
    struct ifd_client *client = NULL;
    struct ifd_client_err err;
    char token[] = "aZ09-._~+/==";
    const struct ifd_client_options options = {.url = fake_http_url(server), .token = token};
    REQUIRE(ifd_client_create(&options, &client, &err) == IFD_CLIENT_OK);
    memset(token, 'x', sizeof(token) - 1); /* the client has its own copy */
    fake_http_answer_text(server, 200, "{}");
    fake_http_answer_text(server, 401, "{\"error\":\"the server does not know this token\"}");
    EXPECT_INT(ifd_client_live(client, &err), IFD_CLIENT_OK);
    EXPECT_INT(ifd_client_load(client, "m", "{}", &err), IFD_CLIENT_REFUSED);
    EXPECT_INT(err.http_status, 401);
    EXPECT_TEXT(err.text, "the server does not know this token");
    for (size_t i = 0; i < 2; i++) {
        EXPECT_HAS(fake_http_request(server, i).head, "\r\nAuthorization: Bearer aZ09-._~+/==\r\n");
    }
    ifd_client_destroy(client);
    fake_http_stop(server);
}

static void what_is_no_token_is_not_sent(void)
{
    static const char *const wrong[] = {"", "=", "a b", "a\r\nX: y", "a=b", "\xc3\xa4"};
    struct fake_http *server = fake_http_start();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct ifd_client *client = NULL;
        struct ifd_client_err err;
        const struct ifd_client_options options = {.url = fake_http_url(server), .token = wrong[i]};
        EXPECT_INT(ifd_client_create(&options, &client, &err), IFD_CLIENT_INVALID);
        EXPECT_TEXT(err.text, "the token is empty or has a character that tokens may not have");
        EXPECT(!client);
    }
    EXPECT_INT(fake_http_connection_count(server), 0);
    fake_http_stop(server);
}

static void lost_connection_is_a_transport_error(void)
{
    struct pair p;
    open_pair(&p, 0); /* no answer is prepared: the server hangs up */
    EXPECT_INT(ifd_client_live(p.client, &p.err), IFD_CLIENT_TRANSPORT);
    EXPECT_HAS(p.err.text, fake_http_url(p.server));
    EXPECT_INT(p.err.http_status, 0);
    close_pair(&p);
}

static void absent_socket_is_named_with_the_systems_reason(void)
{
    struct ifd_client *client = NULL;
    struct ifd_client_err err;
    const struct ifd_client_options options = {.url = "unix:/nowhere/admin.sock"};
    REQUIRE(ifd_client_create(&options, &client, &err) == IFD_CLIENT_OK);
    EXPECT_INT(ifd_client_live(client, &err), IFD_CLIENT_TRANSPORT);
    EXPECT_TEXT(err.text, "/nowhere/admin.sock: No such file or directory");
    ifd_client_destroy(client);
}

static void answer_above_the_limit_is_refused(void)
{
    struct pair p;
    open_pair(&p, 8);
    fake_http_answer_text(p.server, 200, "{\"name\":\"long\"}");
    char *json = NULL;
    EXPECT_INT(ifd_client_metadata(p.client, NULL, NULL, &json, &p.err), IFD_CLIENT_PROTOCOL);
    EXPECT_HAS(p.err.text, "8 bytes");
    EXPECT(json == NULL);
    close_pair(&p);
}

static void error_text_longer_than_the_buffer_is_cut(void)
{
    struct pair p;
    open_pair(&p, 0);
    char body[2000] = "{\"error\":\"";
    memset(body + strlen(body), 'x', 1500);
    memcpy(body + strlen(body), "\"}", 3);
    fake_http_answer_text(p.server, 400, body);
    EXPECT_INT(ifd_client_live(p.client, &p.err), IFD_CLIENT_REFUSED);
    EXPECT_INT(strlen(p.err.text), sizeof(p.err.text) - 1);
    close_pair(&p);
}

static void missing_err_is_allowed(void)
{
    struct pair p;
    open_pair(&p, 0);
    fake_http_answer_text(p.server, 400, "{\"error\":\"no\"}");
    EXPECT_INT(ifd_client_live(p.client, NULL), IFD_CLIENT_REFUSED);
    close_pair(&p);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(live_asks_the_health_route),
        T(ready_gives_the_reason_of_the_server),
        T(refusal_without_json_names_the_status),
        T(names_in_paths_are_escaped),
        T(empty_model_name_is_refused_before_sending),
        T(metadata_of_server_and_model_are_different_routes),
        T(index_asks_for_ready_models_only_when_told),
        T(load_and_unload_name_the_model_and_carry_the_config),
        T(calls_share_one_connection),
        T(slash_at_the_end_of_the_url_does_not_matter),
        T(unix_socket_is_reached_by_its_path),
        T(token_is_sent_with_every_call),
        T(what_is_no_token_is_not_sent),
        T(lost_connection_is_a_transport_error),
        T(absent_socket_is_named_with_the_systems_reason),
        T(answer_above_the_limit_is_refused),
        T(error_text_longer_than_the_buffer_is_cut),
        T(missing_err_is_allowed),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

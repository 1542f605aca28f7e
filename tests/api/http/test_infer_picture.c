/* Pictures as bodies and as strings. */
#include "engine/base/str.h"
#include "tests/support/loopback.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static const char *const jpeg[] = {"Content-Type", "image/jpeg", NULL};
static struct loopback loop;
static struct loopback_answer answer;

static void begin(void)
{
    loopback_init(&loop, ifd_alloc_system());
}

static void end(void)
{
    loopback_release(&answer);
    loopback_finish(&loop);
}

static void a_picture_body_is_answered_with_classes(void)
{
    begin();
    loopback_ask(&loop, "POST", "/v2/models/picture/infer", jpeg, "FAKE\7", 5, &answer);
    EXPECT_INT(answer.status, 200);
    EXPECT_TEXT(loopback_text(&answer),
                "{\"model_name\":\"picture\",\"model_version\":\"1\",\"image\":{\"width\":0,"
                "\"height\":0},\"classes\":[{\"label\":\"zero\",\"index\":0,\"score\":0.7},"
                "{\"label\":\"one\",\"index\":1,\"score\":0.7},{\"label\":\"two\",\"index\":2,"
                "\"score\":0.7},{\"label\":\"three\",\"index\":3,\"score\":0.7},{\"label\":"
                "\"four\",\"index\":4,\"score\":0.7}]}");
    end();
}

static void ask_picture(const char *query)
{
    char path[100];
    (void)snprintf(path, sizeof(path), "/v2/models/picture/infer?%s", query);
    loopback_release(&answer);
    loopback_ask(&loop, "POST", path, jpeg, "FAKE\7", 5, &answer);
}

static void a_query_chooses_what_is_answered(void)
{
    begin();
    ask_picture("top_k=1&unknown=%31&&outputs=objects");
    EXPECT_INT(answer.status, 200);
    EXPECT_HAS(loopback_text(&answer),
               "\"classes\":[{\"label\":\"zero\",\"index\":0,\"score\":0.7}]}");
    ask_picture("timing=1&top_k=%31");
    EXPECT_HAS(loopback_text(&answer), "0.7}],\"time_ms\":{\"decode\":");
    ask_picture("outputs=tensors");
    EXPECT_HAS(loopback_text(&answer),
               "\"datatype\":\"UINT8\",\"shape\":[1,12],\"data\":[7,7,7,7,7,7,7,7,7,7,7,7]");
    end();
}

static void wrong_queries_are_refused(void)
{
    static const char *const wrong[][2] = {
        {"outputs=boxes", "outputs: \\\"boxes\\\" is not objects or tensors"},
        {"timing=yes", "timing: \\\"yes\\\" is not 0 or 1"},
        {"top_k=many", "top_k: not a count"},
        {"top_k=%3", "query: '%' without two hexadecimal digits"}};
    begin();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ask_picture(wrong[i][0]);
        EXPECT_INT(answer.status, 400);
        EXPECT_HAS(loopback_text(&answer), wrong[i][1]);
    }
    end();
}

static void a_body_that_is_no_picture_is_refused(void)
{
    begin();
    loopback_ask(&loop, "POST", "/v2/models/picture/infer", jpeg, "GIF89", 5, &answer);
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(loopback_text(&answer), "neither JPEG nor PNG");
    loopback_release(&answer);
    loopback_ask(&loop, "POST", "/v2/models/picture/infer", jpeg, "", 0, &answer);
    EXPECT_INT(answer.status, 400);
    end();
}

static void models_without_a_picture_input_refuse_pictures(void)
{
    static const char *const models[] = {"identity", "simple", "strings"};
    begin();
    for (size_t i = 0; i < 3; i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/v2/models/%s/infer", models[i]);
        loopback_release(&answer);
        loopback_ask(&loop, "POST", path, jpeg, "FAKE\7", 5, &answer);
        EXPECT_INT(answer.status, 400);
        EXPECT_HAS(loopback_text(&answer), "does not take one picture");
    }
    end();
}

/* Two pictures as strings behind the JSON. */
static void ask_strings(const char *shape, const void *tail, size_t size)
{
    char body[1000], length[24];
    const char *headers[] = {"Inference-Header-Content-Length", length, NULL};
    int json = snprintf(body, sizeof(body),
                        "{\"inputs\":[{\"name\":\"IMAGE\",\"datatype\":\"BYTES\",\"shape\":%s,"
                        "\"parameters\":{\"binary_data_size\":%zu}}]}",
                        shape, size);
    memcpy(body + json, tail, size);
    (void)snprintf(length, sizeof(length), "%d", json);
    loopback_release(&answer);
    loopback_ask(&loop, "POST", "/v2/models/picture/infer", headers, body, (size_t)json + size,
                 &answer);
}

static void strings_sent_to_a_picture_input_are_pictures(void)
{
    begin();
    ask_strings("[2]", "\5\0\0\0FAKE\1\5\0\0\0FAKE\2", 18);
    EXPECT_INT(answer.status, 200);
    EXPECT_HAS(loopback_text(&answer),
               "\"datatype\":\"UINT8\",\"shape\":[2,12],\"data\":[1,1,1,1,1,"
               "1,1,1,1,1,1,1,2,2,2,2,2,2,2,2,2,2,2,2]");
    ask_strings("[2,1]", "\5\0\0\0FAKE\1\5\0\0\0FAKE\2", 18);
    EXPECT_INT(answer.status, 200);
    ask_strings("[2]", "\5\0\0\0FAKE\1\5\0\0\0BAD!\2", 18);
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(loopback_text(&answer), "neither JPEG nor PNG");
    ask_strings("[5]", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
    EXPECT_HAS(loopback_text(&answer), "batch-size must be <= 4");
    ask_strings("[0]", "", 0);
    EXPECT_HAS(loopback_text(&answer), "no picture");
    end();
}

static void pictures_in_json_are_base64(void)
{
    begin();
    loopback_post(&loop, "/v2/models/picture/infer",
                  "{\"inputs\":[{\"name\":\"IMAGE\",\"datatype\":\"BYTES\",\"shape\":[2],\"data\":["
                  "\"RkFLRQc=\",\"RkFLRQg=\"]}]}",
                  &answer);
    EXPECT_INT(answer.status, 200);
    EXPECT_HAS(loopback_text(&answer),
               "\"data\":[7,7,7,7,7,7,7,7,7,7,7,7,8,8,8,8,8,8,8,8,8,8,8,8]");
    loopback_release(&answer);
    loopback_post(&loop, "/v2/models/picture/infer",
                  "{\"inputs\":[{\"name\":\"IMAGE\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":["
                  "\"FAKE\\u0007\"]}]}",
                  &answer);
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(loopback_text(&answer), "input 'IMAGE': element 0 is not base64");
    end();
}

static void an_abandoned_picture_is_waited_for_and_not_run(void)
{
    struct loopback_exchange exchange;
    begin();
    loopback_begin(&loop, "POST", "/v2/models/picture/infer", jpeg, "FAKE\7", 5, &exchange);
    EXPECT(!exchange.is_answered);
    EXPECT(!ifd_api_abandon(loop.api, &exchange.http));
    fake_service_run(&loop.fake);
    EXPECT(exchange.is_answered);
    EXPECT_INT(exchange.http.response.status, 503);
    loopback_end(&exchange, NULL);
    loopback_finish(&loop);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_picture_body_is_answered_with_classes),
        T(a_query_chooses_what_is_answered),
        T(wrong_queries_are_refused),
        T(a_body_that_is_no_picture_is_refused),
        T(models_without_a_picture_input_refuse_pictures),
        T(strings_sent_to_a_picture_input_are_pictures),
        T(pictures_in_json_are_base64),
        T(an_abandoned_picture_is_waited_for_and_not_run),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

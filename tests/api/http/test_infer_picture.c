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
    char path[200];
    (void)snprintf(path, sizeof(path), "/v2/models/picture/infer?%s", query);
    loopback_release(&answer);
    loopback_ask(&loop, "POST", path, jpeg, "FAKE\7", 5, &answer);
}

static void a_query_chooses_what_is_answered(void)
{
    begin();
    ask_picture("top_k=1&unknown=%31&test_1=1&&id=7&k=v&outputs=objects");
    EXPECT_INT(answer.status, 200);
    ask_picture("task=a&size=640&reason=motion&resume=1&ion=1&time=9&version=2&top_k=1");
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

/* In the query, a form, JSON, the config; the query wins. */
static void frames_name_their_source(void)
{
    static const char *const form[] = {"Content-Type", "multipart/form-data; boundary=b", NULL};
    static const char text[] =
        "--b\r\nContent-Disposition: form-data; name=\"source\"\r\n\r\nyard\r\n"
        "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n"
        "FAKE\7\r\n--b--\r\n";
    static const char *const json[][2] = {
        {"\"gate\"", "gate"}, {"7", "7"}, {"\"\"", ""}, {"0", ""}};
    char body[300];
    begin();
    ask_picture("source=front%20door");
    EXPECT_INT(answer.status, 200);
    EXPECT_TEXT(loop.fake.last_camera, "front door");
    loopback_release(&answer);
    loopback_ask(&loop, "POST", "/v2/models/picture/infer", form, text, strlen(text), &answer);
    EXPECT_INT(answer.status, 200);
    EXPECT_TEXT(loop.fake.last_camera, "yard");
    for (size_t i = 0; i < sizeof(json) / sizeof(json[0]); i++) {
        loop.fake.last_camera[0] = '\0';
        (void)snprintf(body, sizeof(body),
                       "{\"parameters\":{\"source\":%s},\"inputs\":[{\"name\":\"INPUT0\","
                       "\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1]}]}",
                       json[i][0]);
        loopback_release(&answer);
        loopback_post(&loop, "/v2/models/identity/infer", body, &answer);
        EXPECT_INT(answer.status, 200);
        EXPECT_TEXT(loop.fake.last_camera, json[i][1]);
        loopback_release(&answer);
        loopback_post(&loop, "/v2/models/identity/infer?source=query", body, &answer);
        EXPECT_TEXT(loop.fake.last_camera, "query");
    }
    static const struct ifd_parameter_info usual = {.key = "source", .value = "usual"};
    for (uint32_t i = 0; i < loop.fake.model_count; i++) {
        loop.fake.model[i].desc.parameter = &usual;
    }
    ask_picture("top_k=1");
    EXPECT_TEXT(loop.fake.last_camera, "usual");
    ask_picture("source=door&source=gate"); /* the last one counts */
    EXPECT_TEXT(loop.fake.last_camera, "gate");
    loop.fake.refuse_turn = IFD_EXISTS;
    ask_picture("source=door");
    EXPECT_INT(answer.status, 409);
    EXPECT_TEXT(loopback_text(&answer), "{\"error\":\"a newer frame came\"}");
    end();
}

static void names_of_sources_are_bounded(void)
{
    char query[160];
    begin();
    (void)snprintf(query, sizeof(query), "source=%0129d", 0);
    ask_picture(query);
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(loopback_text(&answer), "source: a name of 129 bytes, at most 128");
    (void)snprintf(query, sizeof(query), "source=%0128d", 0);
    ask_picture(query);
    EXPECT_INT(answer.status, 200);
    loopback_release(&answer);
    loopback_post(&loop, "/v2/models/identity/infer",
                  "{\"parameters\":{\"source\":true},\"inputs\":[]}", &answer);
    EXPECT_INT(answer.status, 400);
    end();
}

static void the_accepted_type_chooses_a_picture_or_json(void)
{
    static const char *const wanted[][2] = {
        {"image/png", "PNG with 2"},
        {"text/html, image/jpeg;q=0.5, application/json", "JPEG with 2"},
        {"image/*", "JPEG with 2"},
        {"application/json, image/png", "{\"model_name\""},
        {"*/*", "{\"model_name\""},
        {"text/html", "{\"model_name\""},
    };
    begin();
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        const char *const headers[] = {"Content-Type", "image/jpeg", "Accept", wanted[i][0], NULL};
        loopback_release(&answer);
        loopback_ask(&loop, "POST", "/v2/models/picture/infer?top_k=2", headers, "FAKE\7", 5,
                     &answer);
        EXPECT_INT(answer.status, 200);
        EXPECT_HAS(loopback_text(&answer), wanted[i][1]);
    }
    end();
}

static void wrong_queries_are_refused(void)
{
    static const char *const wrong[][2] = {
        {"outputs=boxes", "outputs: \\\"boxes\\\" is not objects or tensors"},
        {"timing=yes", "timing: \\\"yes\\\" is not 0 or 1"},
        {"top_k=many", "top_k: not a count"},
        {"thresold=1", "no parameter \\\"thresold\\\"; the nearest name is \\\"threshold\\\""},
        {"Threshold=1", "no parameter \\\"Threshold\\\"; the nearest name is \\\"threshold\\\""},
        {"topk=1", "no parameter \\\"topk\\\"; the nearest name is \\\"top_k\\\""},
        {"clases=cat", "no parameter \\\"clases\\\"; the nearest name is \\\"classes\\\""},
        {"x=1&output=tensors", "no parameter \\\"output\\\"; the nearest name is \\\"outputs\\\""},
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

/* ---- forms of a picture ---- */

static void ask_as(const char *type, const char *query, const void *body, size_t size)
{
    const char *headers[] = {type ? "Content-Type" : NULL, type, NULL};
    char path[200];
    (void)snprintf(path, sizeof(path), "/v2/models/picture/infer%s", query);
    loop.fake.source_count = 0;
    loopback_release(&answer);
    loopback_ask(&loop, "POST", path, headers, body, size, &answer);
}

static void expect_classes(void)
{
    EXPECT_INT(answer.status, 200);
    EXPECT_HAS(loopback_text(&answer), "{\"label\":\"zero\",\"index\":0,");
}

static void first_bytes_tell_a_picture_whatever_the_type_says(void)
{
    static const char *const types[] = {NULL, "application/octet-stream",
                                        "application/x-www-form-urlencoded", "text/plain"};
    begin();
    for (size_t i = 0; i < 4; i++) {
        ask_as(types[i], "", "BMKE\7", 5);
        expect_classes();
    }
    ask_as(NULL, "", "FAKE\7", 5);
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(loopback_text(&answer), "failed to parse the request JSON buffer: it is not an "
                                       "object, and begins as no known picture or sound");
    end();
}

static void a_frame_is_described_by_its_type(void)
{
    begin();
    ask_as("video/x-raw; format=nv12; Width=640;height=\"480\"; stride=704", "", "FAKE\7", 5);
    expect_classes();
    const struct ifd_picture_source *source = &loop.fake.last_source[0];
    EXPECT_INT(source->format, IFD_FRAME_NV12);
    EXPECT_INT(source->width, 640);
    EXPECT_INT(source->height, 480);
    EXPECT_INT(source->stride, 704);
    static const char *const wrong[] = {"video/x-raw",
                                        "video/x-raw; format=NV21; width=1; height=1",
                                        "video/x-raw; format=RGB; width=1",
                                        "video/x-raw; format=RGB; width=1; height=0",
                                        "video/x-raw; format=RGB; width=1; height=5000000000",
                                        "video/x-raw; format=RGB; width=1; height=1; stride=-1"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ask_as(wrong[i], "", "FAKE\7", 5);
        EXPECT_INT(answer.status, 400);
        EXPECT_HAS(loopback_text(&answer), "Content-Type video/x-raw: ");
    }
    end();
}

static void regions_are_a_batch_and_resize_counts_for_all(void)
{
    begin();
    ask_as("image/jpeg", "?region=1,2,3,4&resize=letterbox&region=5,%206,7,8", "FAKE\7", 5);
    EXPECT_INT(answer.status, 200);
    EXPECT_INT(loop.fake.source_count, 2);
    EXPECT_INT(loop.fake.decode_count, 1);
    const struct ifd_picture_source *source = loop.fake.last_source;
    EXPECT(source[0].has_region && source[1].has_region && source[1].has_resize);
    EXPECT_INT(source[0].region.x, 1);
    EXPECT_INT(source[0].region.height, 4);
    EXPECT_INT(source[1].region.y, 6);
    EXPECT_INT(source[1].resize, IFD_RESIZE_LETTERBOX);
    ask_as("image/jpeg",
           "?region=1,1,1,1&region=1,1,1,1&region=1,1,1,1&region=1,1,1,1&region=1,1,1,1", "FAKE\7",
           5);
    EXPECT_HAS(loopback_text(&answer), "batch-size must be <= 4");
    end();
}

static void wrong_geometry_is_refused(void)
{
    static const char *const wrong[][2] = {
        {"?region=1,2,3", "region: \\\"1,2,3\\\" is not x,y,width,height in pixels"},
        {"?region=1,2,3,4,5", "region: "},
        {"?region=-1,2,3,4", "region: "},
        {"?region=1,2,3,5000000000", "region: "},
        {"?region=", "region: "},
        {"?resize=fit", "resize: \\\"fit\\\" is not stretch, letterbox or crop"}};
    begin();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ask_as("image/jpeg", wrong[i][0], "FAKE\7", 5);
        EXPECT_INT(answer.status, 400);
        EXPECT_HAS(loopback_text(&answer), wrong[i][1]);
    }
    end();
}

/* As curl -F top_k=1 -F file=@three.jpg sends it. */
static const char form[] = "--XX\r\nContent-Disposition: form-data; name=\"top_k\"\r\n\r\n1\r\n"
                           "--XX\r\nContent-Disposition: form-data; name=\"file\"; "
                           "filename=\"a;b.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n"
                           "FAKE\7\r\n--XX--\r\n";

static void a_form_brings_a_picture_and_parameters(void)
{
    begin();
    ask_as("multipart/form-data; boundary=XX", "", form, sizeof(form) - 1);
    expect_classes();
    EXPECT(strstr(loopback_text(&answer), "\"one\"") == NULL);
    ask_as("multipart/form-data; boundary=XX", "?top_k=2", form, sizeof(form) - 1);
    EXPECT_HAS(loopback_text(&answer), "\"one\""); /* the query wins */
    ask_as("multipart/form-data; boundary=XY", "", form, sizeof(form) - 1);
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(loopback_text(&answer), "multipart form: ");
    end();
}

static void a_form_may_bring_a_frame(void)
{
    static const char frame[] =
        "--X\r\ncontent-type: video/x-raw; format=RGB; width=3; height=2\r\n"
        "content-disposition: form-data; filename=f; name=file\r\n\r\n"
        "FAKE\7\r\n--X--";
    static const char empty[] = "--X\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n--X--";
    begin();
    ask_as("multipart/form-data; boundary=\"X\"", "", frame, sizeof(frame) - 1);
    expect_classes();
    EXPECT_INT(loop.fake.last_source[0].format, IFD_FRAME_RGB);
    EXPECT_INT(loop.fake.last_source[0].width, 3);
    ask_as("multipart/form-data; boundary=X", "", empty, sizeof(empty) - 1);
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(loopback_text(&answer), "no part has a file name");
    end();
}

static void a_json_member_may_be_a_picture(void)
{
    static const char body[] = "{\"id\":\"7\",\"image\":\"RkFLRQc=\"}";
    static const char broken[] = "{\"image\":\"RkFLR\"}";
    static const char both[] = "{\"image\":\"RkFLRQc=\",\"inputs\":[]}";
    begin();
    ask_as("application/json", "?resize=crop&top_k=1", body, sizeof(body) - 1);
    expect_classes();
    EXPECT(loop.fake.last_source[0].has_resize);
    EXPECT(strstr(loopback_text(&answer), "\"one\"") == NULL);
    ask_as("application/json", "?outputs=tensors", body, sizeof(body) - 1);
    EXPECT_HAS(loopback_text(&answer), "\"datatype\":\"UINT8\"");
    ask_as(NULL, "", broken, sizeof(broken) - 1);
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(loopback_text(&answer), "not base64");
    ask_as(NULL, "", both, sizeof(both) - 1);
    EXPECT_INT(answer.status, 400);
    end();
}

/* Wherever the parameters stand. */
static void parameters_of_json_count_for_pictures(void)
{
    static const char *const wrong[][2] = {
        {"\"region\":\"1,2\"", "region: \\\"1,2\\\" is not x,y,width,height"},
        {"\"timing\":2", "timing: \\\"2\\\" is not 0 or 1"},
        {"\"region\":[\"1,2,3,4\",5]", "JSON has '5' where a string should come"},
        {"\"treshold\":0.5", "there is no parameter \\\"treshold\\\"; the nearest name is"},
        {"\"top_k\":[1]", "parameter 'top_k' has invalid type"}};
    static const char member[] = "{\"parameters\":{\"top_k\": 1 ,\"resize\":\"crop\"},"
                                 "\"image\":\"RkFLRQc=\"}";
    static const char several[] =
        "{\"parameters\":{\"region\":[\"1,2,3,4\",\"5, 6, 7, 8\"],\"timing\":true,"
        "\"mine\":1},\"image\":\"data:image/jpeg;base64,RkFLRQc=\"}";
    static const char input[] =
        "{\"inputs\":[{\"name\":\"IMAGE\",\"datatype\":\"BYTES\",\"shape\":[1],"
        "\"data\":[\"RkFLRQc=\"]}],\"parameters\":{\"outputs\":\"objects\",\"other\":5,"
        "\"region\":\"1,2,3,4\"}}";
    begin();
    ask_as("application/json", "", member, sizeof(member) - 1);
    expect_classes();
    EXPECT(strstr(loopback_text(&answer), "\"one\"") == NULL);
    EXPECT(loop.fake.last_source[0].has_resize);
    ask_as("application/json", "", several, sizeof(several) - 1);
    EXPECT_HAS(loopback_text(&answer), "\"regions\":[{\"region\":[");
    EXPECT_HAS(loopback_text(&answer), "\"time_ms\"");
    EXPECT_INT(loop.fake.last_source[1].region.x, 5);
    loop.fake.source_count = 0;
    ask_as("application/json", "?top_k=2", member, sizeof(member) - 1);
    EXPECT_HAS(loopback_text(&answer), "\"one\""); /* the query wins */
    loop.fake.source_count = 0;
    ask_as("application/json", "", input, sizeof(input) - 1);
    expect_classes();
    EXPECT_INT(loop.fake.last_source[0].region.height, 4);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char body[200];
        const int size = snprintf(body, sizeof(body),
                                  "{\"image\":\"RkFLRQc=\",\"parameters\":{%s}}", wrong[i][0]);
        ask_as("application/json", "", body, (size_t)size);
        EXPECT_INT(answer.status, 400);
        EXPECT_HAS(loopback_text(&answer), wrong[i][1]);
    }
    end();
}

static void too_many_parameters_are_refused(void)
{
    static char body[6 * 4097 + 100];
    begin();
    for (int count = 4096; count <= 4097; count++) {
        int size = snprintf(body, sizeof(body), "{\"image\":\"RkFLRQc=\",\"parameters\":{\"b\":1");
        for (int i = 1; i < count; i++) {
            size += snprintf(body + size, sizeof(body) - (size_t)size, ",\"a\":1");
        }
        size += snprintf(body + size, sizeof(body) - (size_t)size, "}}");
        ask_as("application/json", "", body, (size_t)size);
        EXPECT_INT(answer.status, count == 4096 ? 200 : 413);
    }
    EXPECT_HAS(loopback_text(&answer), "more than 4096 parameters");
    end();
}

/* Strings of protocol clients are answered with tensors unless they ask for objects. */
static void strings_are_answered_with_objects_on_request(void)
{
    static const char body[] =
        "{\"inputs\":[{\"name\":\"IMAGE\",\"datatype\":\"BYTES\",\"shape\":[1],"
        "\"data\":[\"RkFLRQc=\"]}]}";
    begin();
    ask_as(NULL, "?outputs=objects&region=1,2,3,4", body, sizeof(body) - 1);
    expect_classes();
    EXPECT_INT(loop.fake.last_source[0].region.width, 3);
    ask_as(NULL, "", body, sizeof(body) - 1);
    EXPECT_HAS(loopback_text(&answer), "\"datatype\":\"UINT8\"");
    end();
}

/* The model's config decides where the request says nothing. */
static void the_usual_answer_is_that_of_the_config(void)
{
    static const char body[] =
        "{\"inputs\":[{\"name\":\"IMAGE\",\"datatype\":\"BYTES\",\"shape\":[1],"
        "\"data\":[\"RkFLRQc=\"]}]}";
    struct ifd_meaning meaning;
    begin();
    for (uint32_t i = 0; i < loop.fake.model_count; i++) {
        struct ifd_model_desc *desc = &loop.fake.model[i].desc;
        if (strcmp(desc->name, "picture") == 0) {
            meaning = *desc->meaning;
            desc->meaning = &meaning;
        }
    }
    meaning.usual_answer = IFD_ANSWER_TENSORS;
    ask_picture("");
    EXPECT_HAS(loopback_text(&answer), "\"datatype\":\"UINT8\"");
    ask_picture("outputs=objects");
    expect_classes();
    meaning.usual_answer = IFD_ANSWER_OBJECTS;
    ask_as(NULL, "", body, sizeof(body) - 1);
    expect_classes();
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
        T(frames_name_their_source),
        T(names_of_sources_are_bounded),
        T(the_accepted_type_chooses_a_picture_or_json),
        T(wrong_queries_are_refused),
        T(a_body_that_is_no_picture_is_refused),
        T(models_without_a_picture_input_refuse_pictures),
        T(strings_sent_to_a_picture_input_are_pictures),
        T(pictures_in_json_are_base64),
        T(first_bytes_tell_a_picture_whatever_the_type_says),
        T(a_frame_is_described_by_its_type),
        T(regions_are_a_batch_and_resize_counts_for_all),
        T(wrong_geometry_is_refused),
        T(a_form_brings_a_picture_and_parameters),
        T(a_form_may_bring_a_frame),
        T(a_json_member_may_be_a_picture),
        T(parameters_of_json_count_for_pictures),
        T(too_many_parameters_are_refused),
        T(strings_are_answered_with_objects_on_request),
        T(the_usual_answer_is_that_of_the_config),
        T(an_abandoned_picture_is_waited_for_and_not_run),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* The dialect of DeepStack and CodeProject.AI: requests as recorders send them. */
#include "engine/base/str.h"
#include "tests/support/loopback.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define DETECTION "/v1/vision/detection"
#define FACE      "/v1/vision/face"

static struct loopback loop;
static struct loopback_answer answer;

static const char *const labels[] = {"person", "car"}, *const faces[] = {"face"};
static const struct ifd_meaning objects = {.task = IFD_TASK_DETECTION,
                                           .label = labels,
                                           .label_count = 2,
                                           .options = {.threshold = 0.5F, .top_k = 3}};
static const struct ifd_meaning face = {.task = IFD_TASK_DETECTION,
                                        .label = faces,
                                        .label_count = 1,
                                        .options = {.threshold = 0.5F, .top_k = 1}};
static const struct ifd_meaning mask = {.task = IFD_TASK_SEGMENTATION};

static const char boundary[] = "multipart/form-data; boundary=b9a0d5c1";
static const char *const form[] = {"Content-Type", boundary, NULL};

/* As Frigate 0.14 sends it (python-requests): the file has its field's name and no type. */
static const char frigate[] =
    "--b9a0d5c1\r\nContent-Disposition: form-data; name=\"api_key\"\r\n\r\n"
    "\r\n--b9a0d5c1\r\nContent-Disposition: form-data; name=\"image\"; "
    "filename=\"image\"\r\n\r\nFAKE\7\r\n--b9a0d5c1--\r\n";
/* As curl -F and .NET send it. */
static const char with_type[] =
    "--b9a0d5c1\r\nContent-Disposition: form-data; name=\"image\"; filename=\"cam.jpg\"\r\n"
    "Content-Type: image/jpeg\r\n\r\nFAKE\7\r\n"
    "--b9a0d5c1\r\nContent-Type: text/plain; charset=utf-8\r\n"
    "Content-Disposition: form-data; name=min_confidence\r\n\r\n0.25\r\n--b9a0d5c1--\r\n";
static const char nameless[] = "--b9a0d5c1\r\nContent-Disposition: form-data; name=\"image\"\r\n"
                               "Content-Type: image/jpeg\r\n\r\nFAKE\7\r\n--b9a0d5c1--\r\n";

/* Means what the fake's model of this name finds. */
static void mean(const char *model, const struct ifd_meaning *meaning)
{
    for (uint32_t i = 0; i < loop.fake.model_count; i++) {
        if (strcmp(loop.fake.model[i].desc.name, model) == 0) {
            loop.fake.model[i].desc.meaning = meaning;
        }
    }
}

static void begin_with(const struct ifd_api_options *more)
{
    struct ifd_err err = {0};
    loopback_init(&loop, ifd_alloc_system());
    ifd_api_destroy(loop.api);
    struct ifd_api_options options = *more;
    options.alloc = loop.alloc;
    options.ops = fake_service_ops();
    options.service = &loop.fake;
    REQUIRE_OK(ifd_api_create(&options, &loop.api, &err), &err);
    mean("picture", &objects);
}

static void begin(void)
{
    begin_with(&(struct ifd_api_options){.guard = NULL});
}

static void end(void)
{
    loopback_release(&answer);
    loopback_finish(&loop);
}

static void post(const char *path, const char *body)
{
    loopback_release(&answer);
    loopback_ask(&loop, "POST", path, form, body, strlen(body), &answer);
}

/* The times differ. */
static void expect_predictions(const char *want, int count)
{
    char tail[40];
    EXPECT_INT(answer.status, 200);
    EXPECT(strncmp(loopback_text(&answer), want, strlen(want)) == 0);
    (void)snprintf(tail, sizeof(tail), "],\"count\":%d,\"duration\":", count);
    EXPECT_HAS(loopback_text(&answer), tail);
    EXPECT_HAS(loopback_text(&answer), ",\"inferenceMs\":");
    EXPECT_HAS(loopback_text(&answer), ",\"processMs\":");
    EXPECT_HAS(loopback_text(&answer), ",\"moduleId\":\"picture\",\"code\":200}");
    EXPECT_TEXT(loopback_header(&answer, "Content-Type"), "application/json");
}

static void forms_are_answered_with_predictions(void)
{
    static const char want[] =
        "{\"success\":true,\"predictions\":["
        "{\"confidence\":0.7,\"label\":\"person\",\"x_min\":0,\"y_min\":2,\"x_max\":101,"
        "\"y_max\":50},{\"confidence\":0.7,\"label\":\"car\",\"x_min\":10,\"y_min\":2,"
        "\"x_max\":111,\"y_max\":50},{\"confidence\":0.7,\"label\":\"2\",\"x_min\":20,"
        "\"y_min\":2,\"x_max\":121,\"y_max\":50}]";
    static const char *const bodies[] = {frigate, with_type, nameless};
    begin();
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        post(DETECTION, bodies[i]);
        expect_predictions(want, 3);
        post("/v1/vision/custom/picture", bodies[i]);
        expect_predictions(want, 3);
    }
    end();
}

static void the_least_confidence_is_the_clients_or_two_fifths(void)
{
    begin();
    post(DETECTION, frigate);
    EXPECT(loop.fake.last_threshold == 0.4F);
    post(DETECTION, with_type);
    EXPECT(loop.fake.last_threshold == 0.25F);
    loopback_release(&answer);
    loopback_ask(&loop, "POST", DETECTION "?min_confidence=0.75&top_k=1&outputs=tensors", form,
                 nameless, strlen(nameless), &answer);
    EXPECT(loop.fake.last_threshold == 0.75F);
    EXPECT_HAS(loopback_text(&answer), "\"count\":1,");
    loopback_release(&answer);
    loopback_ask(&loop, "POST", DETECTION "?min_confidence=much", form, nameless, strlen(nameless),
                 &answer);
    EXPECT_INT(answer.status, 400);
    EXPECT_TEXT(loopback_text(&answer), "{\"success\":false,\"error\":\"min_confidence: "
                                        "\\\"much\\\" is not a number between 0 and 1\"}");
    end();
}

static void faces_have_no_label(void)
{
    begin();
    mean("picture", &face);
    post(FACE, frigate);
    expect_predictions("{\"success\":true,\"predictions\":[{\"confidence\":0.7,\"x_min\":0,"
                       "\"y_min\":2,\"x_max\":101,\"y_max\":50}]",
                       1);
    end();
}

static void classes_have_the_frame_of_the_picture(void)
{
    static const struct ifd_meaning classes = {.task = IFD_TASK_CLASSIFICATION,
                                               .label = labels,
                                               .label_count = 2,
                                               .options = {.top_k = 1}};
    begin();
    mean("picture", &classes);
    post("/v1/vision/custom/picture", frigate);
    expect_predictions("{\"success\":true,\"predictions\":[{\"confidence\":0.7,\"label\":"
                       "\"person\",\"x_min\":0,\"y_min\":0,\"x_max\":0,\"y_max\":0}]",
                       1);
    end();
}

/* The first by name; what finds only faces is for faces. */
static void models_are_chosen_by_what_they_mean(void)
{
    begin();
    mean("simple", &objects); /* behind "picture"; takes none */
    mean("classify", &face);
    post(DETECTION, frigate);
    EXPECT_HAS(loopback_text(&answer), "\"moduleId\":\"picture\"");
    post(FACE, frigate);
    EXPECT_HAS(loopback_text(&answer), "model 'classify' does not take one picture");
    mean("picture", &mask);
    mean("simple", NULL);
    post(DETECTION, frigate);
    EXPECT_INT(answer.status, 404);
    EXPECT_TEXT(loopback_text(&answer),
                "{\"success\":false,\"error\":\"no model that finds objects is ready; name one "
                "with --vision-detection\"}");
    mean("classify", NULL);
    post(FACE, frigate);
    EXPECT_INT(answer.status, 404);
    EXPECT_HAS(loopback_text(&answer), "no model that finds faces is ready; name one with "
                                       "--vision-face");
    post("/v1/vision/custom/picture", frigate);
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(loopback_text(&answer), "model 'picture' finds neither objects nor classes");
    end();
}

static void settings_name_the_models(void)
{
    begin_with(&(struct ifd_api_options){.vision_detection = "picture", .vision_face = "nobody"});
    mean("classify", &objects);
    mean("identity", &face);
    post(DETECTION, frigate);
    EXPECT_HAS(loopback_text(&answer), "\"moduleId\":\"picture\"");
    post(FACE, frigate);
    EXPECT_INT(answer.status, 404);
    EXPECT_TEXT(loopback_text(&answer), "{\"success\":false,\"error\":\"Request for unknown model: "
                                        "'nobody' is not found\"}");
    end();
}

static void what_is_no_picture_is_refused(void)
{
    static const char *const bodies[] = {
        "--b9a0d5c1\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nx\r\n--b9a0d5c1--\r\n",
        "--b9a0d5c1--\r\n", ""};
    begin();
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        post(DETECTION, bodies[i]);
        EXPECT_INT(answer.status, 400);
        EXPECT_HAS(loopback_text(&answer), "{\"success\":false,\"error\":\"multipart form");
    }
    loopback_release(&answer);
    loopback_post(&loop, DETECTION, "{}", &answer);
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(loopback_text(&answer), "a file called image");
    loopback_release(&answer);
    loopback_get(&loop, DETECTION, &answer);
    EXPECT_INT(answer.status, 405);
    EXPECT_TEXT(loopback_text(&answer), "{\"success\":false,\"error\":\"Method Not Allowed\"}");
    loopback_release(&answer);
    loopback_post(&loop, "/v1/vision/scene", "", &answer);
    EXPECT_INT(answer.status, 404);
    EXPECT_HAS(loopback_text(&answer), "{\"success\":false,\"error\":");
    end();
}

static void models_that_can_answer_are_listed(void)
{
    static const char *const methods[] = {"GET", "POST"};
    begin();
    mean("classify", &mask);
    mean("simple", &face); /* has two versions */
    for (size_t i = 0; i < 2; i++) {
        loopback_release(&answer);
        loopback_ask(&loop, methods[i], "/v1/vision/custom/list", NULL, "", 0, &answer);
        EXPECT_INT(answer.status, 200);
        EXPECT_TEXT(loopback_text(&answer),
                    "{\"success\":true,\"models\":[\"simple\",\"picture\"]}");
    }
    end();
}

/* ---- tokens ---- */

static char judged[2][64]; /* authorization and model of the last question */
static uint32_t questions;

static enum ifd_verdict judge(void *context, struct ifd_str authorization,
                              enum ifd_access_class access, struct ifd_str model,
                              struct ifd_str *ret_caller)
{
    (void)context;
    questions++;
    EXPECT_INT(access, IFD_ACCESS_DATA);
    (void)snprintf(judged[0], sizeof(judged[0]), "%.*s", (int)authorization.size,
                   authorization.data ? authorization.data : "");
    (void)snprintf(judged[1], sizeof(judged[1]), "%.*s", (int)model.size,
                   model.data ? model.data : "");
    *ret_caller = ifd_str("recorder");
    return ifd_str_equal(authorization, "Bearer secret") ? IFD_VERDICT_GRANTED
           : authorization.data                          ? IFD_VERDICT_UNKNOWN_TOKEN
                                                         : IFD_VERDICT_NO_TOKEN;
}

static const char keyed[] =
    "--b9a0d5c1\r\nContent-Disposition: form-data; name=\"image\"; filename=\"image\"\r\n\r\n"
    "FAKE\7\r\n--b9a0d5c1\r\nContent-Disposition: form-data; name=\"api_key\"\r\n\r\n"
    "secret\r\n--b9a0d5c1--\r\n";

static void a_key_in_a_form_is_a_token_where_that_is_allowed(void)
{
    static const struct ifd_guard guard = {.judge = judge};
    static const char *const bearer[] = {"Content-Type", boundary, "Authorization", "Bearer wrong",
                                         NULL};
    begin_with(&(struct ifd_api_options){.guard = &guard, .has_vision_key = true});
    post(DETECTION, keyed);
    EXPECT_INT(answer.status, 200);
    EXPECT_TEXT(judged[0], "Bearer secret");
    EXPECT_TEXT(judged[1], "picture");
    post(DETECTION, frigate); /* an empty key */
    EXPECT_INT(answer.status, 401);
    EXPECT_HAS(loopback_text(&answer), "{\"success\":false,\"error\":\"this server requires");
    EXPECT_TEXT(judged[0], "");
    post("/v1/vision/custom/nobody", frigate); /* which models there are is not told */
    EXPECT_INT(answer.status, 401);
    post("/v1/vision/custom/nobody", keyed);
    EXPECT_INT(answer.status, 404);
    post(DETECTION, "no form");
    EXPECT_INT(answer.status, 400);
    loopback_release(&answer);
    loopback_ask(&loop, "POST", DETECTION, bearer, keyed, strlen(keyed), &answer);
    EXPECT_INT(answer.status, 401); /* the header counts */
    EXPECT(answer.is_early || questions > 0);
    end();

    questions = 0;
    begin_with(&(struct ifd_api_options){.guard = &guard});
    post(DETECTION, keyed);
    EXPECT_INT(answer.status, 401);
    EXPECT_INT(questions, 1);
    EXPECT_TEXT(judged[0], "");
    end();
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(forms_are_answered_with_predictions),
        T(the_least_confidence_is_the_clients_or_two_fifths),
        T(faces_have_no_label),
        T(classes_have_the_frame_of_the_picture),
        T(models_are_chosen_by_what_they_mean),
        T(settings_name_the_models),
        T(what_is_no_picture_is_refused),
        T(models_that_can_answer_are_listed),
        T(a_key_in_a_form_is_a_token_where_that_is_allowed),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

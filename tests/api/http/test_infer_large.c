/* Large JSON is read and written beside the loop. */
#include "api/http/infer.h"
#include "tests/support/loopback.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define COUNT 100000
#define PATH  "/v2/models/id_UINT8/infer"

static const char one_value[] =
    "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"UINT8\",\"shape\":[1],\"data\":[7]}]}";

static struct loopback loop;
static char large[COUNT * 4 + 200];

/* Writes COUNT values; last is the text of the last one. Returns the size. */
static size_t fill(const char *last)
{
    size_t size =
        (size_t)snprintf(large, sizeof(large),
                         "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"UINT8\",\"shape\":["
                         "%d],\"data\":[",
                         COUNT);
    for (int i = 1; i < COUNT; i++) {
        size += (size_t)snprintf(large + size, sizeof(large) - size, "%d,", 100 + i % 156);
    }
    return size + (size_t)snprintf(large + size, sizeof(large) - size, "%s]}]}", last);
}

static void begin_large(const char *const *headers, const char *last,
                        struct loopback_exchange *exchange)
{
    const size_t size = fill(last);
    loopback_begin(&loop, "POST", PATH, headers, large, size, exchange);
}

/* Another request is open, so that large JSON goes beside the loop. */
static void begin(struct loopback_exchange *other)
{
    loopback_init(&loop, ifd_alloc_system());
    loop.fake.offloads = true;
    loopback_begin(&loop, "POST", PATH, NULL, one_value, strlen(one_value), other);
    while (fake_service_step(&loop.fake)) {
    }
    EXPECT(other->is_answered);
    EXPECT_INT(loop.fake.offload_count, 0);
}

static void end(struct loopback_exchange *other)
{
    loopback_end(other, NULL);
    loopback_finish(&loop);
}

static void large_json_is_read_and_written_beside_the_loop(void)
{
    struct loopback_exchange other, exchange;
    struct loopback_answer answer;
    begin(&other);
    begin_large(NULL, "42", &exchange);
    EXPECT_INT(loop.fake.offload_count, 1);
    EXPECT(!exchange.is_answered);
    fake_service_run(&loop.fake);
    EXPECT_INT(loop.fake.offload_count, 2);
    EXPECT(exchange.is_answered);
    loopback_end(&exchange, &answer);
    EXPECT_INT(answer.status, 200);
    EXPECT_HAS(loopback_text(&answer), "\"data\":[101,102,");
    EXPECT_HAS(loopback_text(&answer), ",42]}]}");
    EXPECT(answer.body.size > (size_t)(COUNT - 1) * 4);
    loopback_release(&answer);
    end(&other);
}

static void what_is_wrong_there_is_told(void)
{
    struct loopback_exchange other, exchange;
    struct loopback_answer answer;
    begin(&other);
    begin_large(NULL, "256", &exchange);
    fake_service_run(&loop.fake);
    loopback_end(&exchange, &answer);
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(loopback_text(&answer), "element 99999 is 256, outside UINT8's range");
    loopback_release(&answer);
    end(&other);
}

static void one_request_alone_is_read_on_the_loop(void)
{
    struct loopback_exchange exchange;
    loopback_init(&loop, ifd_alloc_system());
    loop.fake.offloads = true;
    begin_large(NULL, "42", &exchange);
    fake_service_run(&loop.fake);
    EXPECT_INT(loop.fake.offload_count, 0);
    EXPECT_INT(exchange.http.response.status, 200);
    loopback_end(&exchange, NULL);
    loopback_finish(&loop);
}

static void refused_work_is_done_on_the_loop(void)
{
    struct loopback_exchange other, exchange;
    begin(&other);
    loop.fake.offloads = false;
    begin_large(NULL, "42", &exchange);
    fake_service_run(&loop.fake);
    EXPECT_INT(loop.fake.offload_count, 0);
    EXPECT_INT(exchange.http.response.status, 200);
    loopback_end(&exchange, NULL);
    end(&other);
}

static void large_binary_tensors_stay_on_the_loop(void)
{
    static const char head[] =
        "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"UINT8\",\"shape\":[300000],"
        "\"parameters\":{"
        "\"binary_data_size\":300000}}],\"parameters\":{\"binary_data_output\":true}}";
    char length[20];
    const char *const headers[] = {"Inference-Header-Content-Length", length, NULL};
    struct loopback_exchange other, exchange;
    begin(&other);
    (void)snprintf(length, sizeof(length), "%zu", strlen(head));
    memset(large, 1, sizeof(large));
    memcpy(large, head, strlen(head));
    loopback_begin(&loop, "POST", PATH, headers, large, strlen(head) + 300000, &exchange);
    fake_service_run(&loop.fake);
    EXPECT_INT(loop.fake.offload_count, 0);
    EXPECT_INT(exchange.http.response.status, 200);
    loopback_end(&exchange, NULL);
    end(&other);
}

/* Sounds are decoded where the request is read; pictures of a form are only located there. */
static void a_sound_in_a_form_is_read_beside_the_loop(void)
{
    static const char head[] = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n",
                      tail[] = "\r\n--x--\r\n";
    static const char *const headers[] = {"Content-Type", "multipart/form-data; boundary=x", NULL};
    const size_t size = 300000, at = size - strlen(tail);
    for (int has_sound = 0; has_sound < 2; has_sound++) {
        struct loopback_exchange other, exchange;
        struct loopback_answer answer;
        struct ifd_tensor_info input;
        begin(&other);
        for (uint32_t i = 0; i < loop.fake.model_count; i++) {
            struct ifd_model_desc *desc = &loop.fake.model[i].desc;
            if (strcmp(desc->name, "id_UINT8") == 0) {
                input = desc->input[0];
                input.sound.has_sound = has_sound;
                desc->input = &input;
            }
        }
        memset(large, 'a', size);
        memcpy(large, head, strlen(head));
        memcpy(large + at, tail, strlen(tail));
        loopback_begin(&loop, "POST", PATH, headers, large, size, &exchange);
        fake_service_run(&loop.fake);
        EXPECT_INT(loop.fake.offload_count, has_sound);
        loopback_end(&exchange, &answer);
        EXPECT_INT(answer.status, 400);
        EXPECT_HAS(loopback_text(&answer), has_sound ? "none is the sound" : "none is the picture");
        loopback_release(&answer);
        end(&other);
    }
}

/* The client leaves after this many steps of its request. */
static void leave_after(int steps)
{
    struct loopback_exchange other, exchange;
    begin(&other);
    begin_large(NULL, "42", &exchange);
    for (int i = 0; i < steps; i++) {
        EXPECT(fake_service_step(&loop.fake));
    }
    EXPECT(!exchange.is_answered);
    const bool is_over = ifd_api_abandon(loop.api, &exchange.http);
    EXPECT(is_over == (steps == 1)); /* waiting in the queue: taken out */
    fake_service_run(&loop.fake);
    EXPECT(exchange.is_answered == !is_over);
    if (!is_over) {
        EXPECT_INT(exchange.http.response.status, 503);
    }
    loopback_end(&exchange, NULL);
    end(&other);
}

static void a_client_that_leaves_meanwhile_is_waited_for(void)
{
    for (int steps = 0; steps <= 2; steps++) {
        leave_after(steps); /* reading, waiting, writing */
    }
}

/* The name is looked for, not read: what could be several or another is left open. */
static void a_timeout_is_found_before_reading(void)
{
    static const struct {
        const char *text;
        uint64_t want;
    } row[] = {
        {"{\"inputs\":[]}", 0},
        {"{\"inputs\":[],\"parameters\":{\"timeout\":0}}", 0},
        {"{\"inputs\":[],\"parameters\":{\"timeout\" : 250000}}", 250000},
        {"{\"parameters\":{\"a\":1,\"timeout\":7,\"b\":2},\"inputs\":[]}", 7},
        {"{\"parameters\":{\"timeout\":18446744073709551615}}", UINT64_MAX},
        {"{\"parameters\":{\"timeout\":18446744073709551616}}", UINT64_MAX},
        {"{\"parameters\":{\"timeout\":\"7\"}}", UINT64_MAX},
        {"{\"parameters\":{\"timeout\":-7}}", UINT64_MAX},
        {"{\"parameters\":{\"timeout", 0},
        {"{\"parameters\":{\"timeout\"", UINT64_MAX},
        {"{\"parameters\":{\"timeout\":", UINT64_MAX},
        {"{\"parameters\":{\"timeou\\u0074\":7}}", UINT64_MAX},
        {"{\"inputs\":[{\"name\":\"timeout\"}]}", UINT64_MAX},
        {"{\"inputs\":[{\"name\":\"timeout\"}],\"parameters\":{\"timeout\":7}}", UINT64_MAX},
    };
    struct ifd_arena arena;
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        const struct ifd_str text = {.data = row[i].text, .size = strlen(row[i].text)};
        const uint64_t timeout_us = ifd_infer_expected_timeout_us(text, &arena);
        EXPECT(timeout_us == row[i].want);
        if (timeout_us != row[i].want) {
            printf("%s: %llu\n", row[i].text, (unsigned long long)timeout_us);
        }
    }
    ifd_arena_finish(&arena);
}

static void what_waits_for_a_thread_has_its_deadline(void)
{
    struct loopback_exchange other, exchange;
    begin(&other);
    begin_large(NULL, "42]}],\"parameters\":{\"timeout\":5},\"x\":[{\"y\":[1", &exchange);
    EXPECT_INT(loop.fake.offload_count, 1);
    EXPECT_INT(loop.fake.offload_timeout_us, 5);
    while (loop.fake.offload_count == 1) {
        EXPECT(fake_service_step(&loop.fake));
    }
    EXPECT_INT(exchange.http.response.status, 0);
    EXPECT(loop.fake.offload_timeout_us == UINT64_MAX); /* the answer is ready, and is written */
    fake_service_run(&loop.fake);
    EXPECT_INT(exchange.http.response.status, 200);
    loopback_end(&exchange, NULL);
    end(&other);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(large_json_is_read_and_written_beside_the_loop),
        T(what_is_wrong_there_is_told),
        T(one_request_alone_is_read_on_the_loop),
        T(refused_work_is_done_on_the_loop),
        T(large_binary_tensors_stay_on_the_loop),
        T(a_sound_in_a_form_is_read_beside_the_loop),
        T(a_client_that_leaves_meanwhile_is_waited_for),
        T(a_timeout_is_found_before_reading),
        T(what_waits_for_a_thread_has_its_deadline),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Any bytes as the JSON of an inference. First byte: the model. The rest: the body. Must: an answer
 * of 200 or 4xx, JSON in it, nothing kept. */
#include "api/json/json_read.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/loopback.h"

#include <stdio.h>

static void check_json(const struct loopback_answer *answer)
{
    struct ifd_arena arena;
    struct ifd_json_in in;
    struct ifd_err err = {0};
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_json_in_init(
        &in, (struct ifd_str){.data = (const char *)answer->body.data, .size = answer->body.size},
        &arena, &err);
    MUST(ifd_json_skip(&in) && ifd_json_finish(&in));
    ifd_arena_finish(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct loopback loop;
    struct loopback_answer answer;
    char path[100];
    if (size == 0) {
        return 0;
    }
    loopback_init(&loop, ifd_alloc_system());
    const char *model = loop.fake.model[data[0] % loop.fake.model_count].desc.name;
    (void)snprintf(path, sizeof(path), "/v2/models/%s/infer", model);
    loopback_ask(&loop, "POST", path, NULL, data + 1, size - 1, &answer);
    MUST(answer.status == 200 || (answer.status >= 400 && answer.status < 500));
    if (!loopback_header(&answer, "Inference-Header-Content-Length")) {
        check_json(&answer);
    }
    MUST(loop.fake.held_refs == 0 && loop.fake.held_outputs == 0 && loop.fake.job_count == 0);
    loopback_release(&answer);
    loopback_finish(&loop);
    return 0;
}

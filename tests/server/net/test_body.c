#include "server/net/body.h"

#include <string.h>

#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

#define KEEP_BYTES ((size_t)1 << 16)

static void chosen_offset_is_aligned(void)
{
    struct fail_alloc fail;
    struct ifd_body body;
    struct ifd_err err = {0};
    fail_alloc_init(&fail, 0);
    ifd_body_init(&body, &fail.alloc);
    for (size_t align_at = 0; align_at < 200; align_at += 7) {
        REQUIRE_OK(ifd_body_start(&body, 1000, 1000, align_at, &err), &err);
        REQUIRE_OK(ifd_body_add(&body, "x", 1, &err), &err);
        EXPECT_INT((uintptr_t)(ifd_body_data(&body) + align_at) % IFD_TENSOR_ALIGN, 0);
        ifd_body_release(&body, KEEP_BYTES);
    }
    ifd_body_finish(&body);
    fail_alloc_finish(&fail);
}

static void body_of_unknown_length_grows_and_keeps_content(void)
{
    struct fail_alloc fail;
    struct ifd_body body;
    struct ifd_err err = {0};
    fail_alloc_init(&fail, 0);
    ifd_body_init(&body, &fail.alloc);
    REQUIRE_OK(ifd_body_start(&body, 0, 1 << 20, 13, &err), &err);
    for (unsigned i = 0; i < 30000; i++) {
        const uint8_t piece[3] = {(uint8_t)i, (uint8_t)(i >> 8), 7};
        REQUIRE_OK(ifd_body_add(&body, piece, sizeof(piece), &err), &err);
    }
    const uint8_t *data = ifd_body_data(&body);
    EXPECT_INT(body.size, 90000);
    EXPECT_INT((uintptr_t)(data + 13) % IFD_TENSOR_ALIGN, 0);
    for (unsigned i = 0; i < 30000; i++) {
        REQUIRE(data[3 * i] == (uint8_t)i && data[3 * i + 1] == (uint8_t)(i >> 8));
    }
    ifd_body_finish(&body);
    fail_alloc_finish(&fail);
}

static void cap_holds_for_announced_and_for_sent_bytes(void)
{
    struct ifd_body body;
    struct ifd_err err = {0};
    ifd_body_init(&body, ifd_alloc_system());
    EXPECT_INT(ifd_body_start(&body, 11, 10, 0, &err), IFD_TOO_LARGE);
    EXPECT_HAS(err.text, "10 bytes");
    REQUIRE_OK(ifd_body_start(&body, 0, 10, 0, &err), &err);
    REQUIRE_OK(ifd_body_add(&body, "0123456789", 10, &err), &err);
    EXPECT_INT(ifd_body_add(&body, "x", 1, &err), IFD_TOO_LARGE);
    ifd_body_finish(&body);
}

static void small_memory_is_kept_and_large_given_back(void)
{
    struct fail_alloc fail;
    struct ifd_body body;
    fail_alloc_init(&fail, 0);
    ifd_body_init(&body, &fail.alloc);
    REQUIRE_OK(ifd_body_start(&body, 100, 1 << 20, 0, NULL), NULL);
    ifd_body_release(&body, KEEP_BYTES);
    long requests = fail.requests;
    REQUIRE_OK(ifd_body_start(&body, 100, 1 << 20, 0, NULL), NULL);
    EXPECT_INT(fail.requests, requests);
    ifd_body_release(&body, KEEP_BYTES);
    REQUIRE_OK(ifd_body_start(&body, 1 << 20, 1 << 20, 0, NULL), NULL);
    ifd_body_release(&body, KEEP_BYTES);
    EXPECT_INT(fail.live, 0);
    ifd_body_finish(&body);
    fail_alloc_finish(&fail);
}

static void missing_memory_is_an_error(void)
{
    struct fail_alloc fail;
    struct ifd_body body;
    fail_alloc_init(&fail, -1);
    ifd_body_init(&body, &fail.alloc);
    EXPECT_INT(ifd_body_start(&body, 100, 1000, 0, NULL), IFD_NOMEM);
    ifd_body_finish(&body);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(chosen_offset_is_aligned),
        T(body_of_unknown_length_grows_and_keeps_content),
        T(cap_holds_for_announced_and_for_sent_bytes),
        T(small_memory_is_kept_and_large_given_back),
        T(missing_memory_is_an_error),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

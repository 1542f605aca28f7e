#include "inferd/alloc.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

#include <stdint.h>

static void products_and_sums_are_checked(void)
{
    size_t size = 7;
    EXPECT(!ifd_size_mul(SIZE_MAX / 2, 3, &size));
    EXPECT(!ifd_size_add(SIZE_MAX, 1, &size));
    EXPECT(!ifd_size_align(SIZE_MAX - 3, 64, &size));
    EXPECT_INT(size, 7);
    EXPECT(ifd_size_mul(6, 7, &size));
    EXPECT_INT(size, 42);
    EXPECT(ifd_size_align(65, 64, &size));
    EXPECT_INT(size, 128);
}

static void tensor_memory_is_aligned_and_padded_with_zeros(void)
{
    struct fail_alloc fail;
    fail_alloc_init(&fail, 0);
    for (size_t size = 0; size < 200; size += 13) {
        uint8_t *data = ifd_acquire_tensor(&fail.alloc, size);
        REQUIRE(data != NULL);
        EXPECT_INT((uintptr_t)data % IFD_TENSOR_ALIGN, 0);
        for (size_t i = 0; i < IFD_TENSOR_PAD; i++) {
            EXPECT_INT(data[size + i], 0);
        }
        ifd_release_tensor(&fail.alloc, data, size);
    }
    fail_alloc_finish(&fail);
}

static void overflowing_or_refused_requests_give_null(void)
{
    struct fail_alloc fail;
    fail_alloc_init(&fail, -1);
    EXPECT(ifd_acquire(&fail.alloc, 8) == NULL);
    EXPECT(ifd_acquire_zeroed(&fail.alloc, SIZE_MAX, 2) == NULL);
    EXPECT(ifd_acquire_tensor(&fail.alloc, SIZE_MAX - 3) == NULL);
    EXPECT(ifd_acquire(ifd_alloc_system(), 0) == NULL);
    ifd_release(&fail.alloc, NULL, 5);
    ifd_release_tensor(&fail.alloc, NULL, 5);
    fail_alloc_finish(&fail);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(products_and_sums_are_checked),
        T(tensor_memory_is_aligned_and_padded_with_zeros),
        T(overflowing_or_refused_requests_give_null),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

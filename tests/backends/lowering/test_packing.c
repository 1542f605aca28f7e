/* Constants are packed once per model: partitions share them, an earlier start leaves them, their
 * sources are released. */
#include "backends/lowering/packing.h"
#include "tests/support/test.h"

#include <string.h>

enum { SOURCES = 3, BYTES = 100 };

static const uint8_t source[SOURCES][1];

/* What pack functions have been asked, per source. */
struct seen {
    uint32_t packed[SOURCES], released[SOURCES];
};

static void pack(const void *context, const void *params, uint8_t *workspace, uint8_t *packed)
{
    struct seen *seen = (struct seen *)(uintptr_t)context;
    const uint32_t i = (uint32_t)((const uint8_t *)params - source[0]);
    workspace[0] = 1; /* it is there */
    memset(packed, (int)i + 1, BYTES);
    seen->packed[i]++;
}

static void release_constant(void *context, const void *data)
{
    ((struct seen *)context)->released[(const uint8_t *)data - source[0]]++;
}

struct partition {
    struct ifd_arena arena;
    struct ifd_lowering lowering;
    struct ifd_low_packed packed;
};

static void open_partition(struct partition *partition, uint32_t first, uint32_t count)
{
    struct ifd_err err = {0};
    *partition = (struct partition){.lowering = {.arena = &partition->arena}};
    ifd_arena_init(&partition->arena, ifd_alloc_system(), (size_t)1 << 20);
    for (uint32_t i = first; i < first + count; i++) {
        const struct ifd_low_pack_job job = {
            .pack = pack, .params = source[i], .source = source[i], .bytes = BYTES, .step = i};
        REQUIRE_OK(ifd_low_add_pack(&partition->packed, &partition->lowering, &job, 1, &err), &err);
    }
}

static void close_partition(struct partition *partition)
{
    ifd_low_release_packed(&partition->packed, ifd_alloc_system());
    ifd_arena_finish(&partition->arena);
}

static enum ifd_code run(struct partition *partition, const struct partition *older,
                         const struct ifd_partition_view *view, struct seen *seen)
{
    struct ifd_err err = {0};
    return ifd_low_pack(&partition->packed, older ? &older->packed : NULL, view, seen,
                        ifd_alloc_system(), &err);
}

static void expect_content(const struct partition *partition)
{
    for (uint32_t i = 0; i < partition->packed.job_count; i++) {
        const struct ifd_low_pack_job *job = &partition->packed.job[i];
        REQUIRE(job->block);
        EXPECT_INT(job->block[job->offset], (int64_t)job->step + 1);
        EXPECT_INT(job->block[job->offset + BYTES - 1], (int64_t)job->step + 1);
        EXPECT((job->offset & (IFD_TENSOR_ALIGN - 1)) == 0);
    }
}

static void the_second_partition_packs_only_what_is_new(void)
{
    struct partition first, second, third;
    struct seen seen = {.packed = {0}};
    const struct ifd_partition_view view = {.max_threads = 2};
    open_partition(&first, 0, 2);
    open_partition(&second, 0, 3);
    open_partition(&third, 0, 3);
    EXPECT(run(&first, NULL, &view, &seen) == IFD_OK);
    EXPECT(run(&second, &first, &view, &seen) == IFD_OK);
    EXPECT(run(&third, &second, &view, &seen) == IFD_OK); /* what its elder shares, too */
    for (uint32_t i = 0; i < SOURCES; i++) {
        EXPECT_INT(seen.packed[i], 1);
    }
    EXPECT(second.packed.bytes < first.packed.bytes);
    EXPECT_INT((int64_t)third.packed.bytes, 0);
    expect_content(&first);
    expect_content(&second);
    expect_content(&third);
    close_partition(&third);
    close_partition(&second);
    close_partition(&first);
}

static void sources_are_released_once_they_are_packed(void)
{
    struct partition first, second;
    struct seen seen = {.packed = {0}};
    const struct ifd_partition_view view = {
        .max_threads = 1, .release_constant = release_constant, .release_context = &seen};
    open_partition(&first, 0, 2);
    open_partition(&second, 0, 3);
    EXPECT(run(&first, NULL, &view, &seen) == IFD_OK);
    EXPECT(seen.released[0] == 1 && seen.released[1] == 1 && seen.released[2] == 0);
    EXPECT(run(&second, &first, &view, &seen) == IFD_UNSUPPORTED); /* 2 may be gone */
    EXPECT_INT(seen.packed[2], 0);
    close_partition(&second);
    close_partition(&first);
}

/* Parameters are equal where their pointers are. */
static bool is_same(const void *params, const void *other)
{
    return params == other;
}

static void steps_of_one_layer_share_what_they_pack(void)
{
    struct partition p;
    struct seen seen = {0};
    const struct ifd_partition_view view = {.max_threads = 1};
    open_partition(&p, 0, 1);
    for (uint32_t i = 0; i < 6; i++) {
        struct ifd_err err = {0};
        const struct ifd_low_pack_job job = {.pack = pack,
                                             .same = i < 4 ? is_same : NULL,
                                             .params = source[i % 2 + 1],
                                             .source = source[2],
                                             .bytes = BYTES,
                                             .step = i % 2 + 1};
        REQUIRE_OK(ifd_low_add_pack(&p.packed, &p.lowering, &job, 1, &err), &err);
    }
    EXPECT(run(&p, NULL, &view, &seen) == IFD_OK);
    expect_content(&p);
    EXPECT_INT(seen.packed[1], 2); /* once for two of them, once where nothing is known */
    EXPECT_INT(seen.packed[2], 2);
    EXPECT(p.packed.job[1].offset == p.packed.job[3].offset);
    EXPECT(p.packed.job[1].offset != p.packed.job[2].offset);
    close_partition(&p);
}

static void what_an_earlier_start_left_is_taken_if_it_fits(void)
{
    struct partition first, second, third;
    struct seen seen = {.packed = {0}};
    struct ifd_partition_view view = {.max_threads = 1};
    open_partition(&first, 0, 2);
    open_partition(&second, 0, 2);
    open_partition(&third, 0, 3);
    EXPECT(run(&first, NULL, &view, &seen) == IFD_OK);
    view = (struct ifd_partition_view){
        .max_threads = 1,
        .packed = {.data = first.packed.data, .size = first.packed.bytes},
        .release_constant = release_constant,
        .release_context = &seen};
    EXPECT(run(&second, NULL, &view, &seen) == IFD_OK);
    EXPECT(second.packed.data == first.packed.data && !second.packed.is_owned);
    EXPECT(seen.packed[0] == 1 && seen.released[0] == 1);
    expect_content(&second);
    EXPECT(run(&third, NULL, &view, &seen) == IFD_OK); /* of another size: packed anew */
    EXPECT(seen.packed[0] == 2 && third.packed.is_owned);
    expect_content(&third);
    close_partition(&third);
    close_partition(&second);
    close_partition(&first);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(the_second_partition_packs_only_what_is_new),
        T(sources_are_released_once_they_are_packed),
        T(steps_of_one_layer_share_what_they_pack),
        T(what_an_earlier_start_left_is_taken_if_it_fits),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

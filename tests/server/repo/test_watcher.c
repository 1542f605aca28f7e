/* Changes in the state machine, with a fake clock and made-up scans. */
#include "server/repo/watcher.h"

#include <string.h>

#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

#define SECOND ((uint64_t)1000000000)

struct world {
    struct ifd_watcher *watcher;
    uint64_t now_ns;
    struct ifd_scan_model model[4];
    uint32_t count;
    bool is_broken;    /* the repository cannot be listed */
    uint64_t unlisted; /* nor can these */
};

static void begin_bounded(struct world *world, uint32_t swaps_per_hour)
{
    const struct ifd_watcher_options options = {.alloc = ifd_alloc_system(),
                                                .poll_ns = 15 * SECOND,
                                                .settle_ns = 2 * SECOND,
                                                .dwell_ns = 10 * SECOND,
                                                .absent_scans = 2,
                                                .swaps_per_hour = swaps_per_hour};
    struct ifd_err err = {0};
    *world = (struct world){.now_ns = 1000 * SECOND};
    REQUIRE_OK(ifd_watcher_create(&options, &world->watcher, &err), &err);
}

static void begin(struct world *world)
{
    begin_bounded(world, 0);
}

static void set(struct world *world, const char *name, uint64_t fingerprint)
{
    world->model[0] =
        (struct ifd_scan_model){.name = name, .fingerprint = fingerprint, .unsummed = fingerprint};
    world->count = 1;
}

/* Time passes, then a scan: 'L', 'U' or '-' for what is to be done. */
static char scan_after(struct world *world, uint64_t ns)
{
    struct ifd_err err = {0};
    struct ifd_watcher_action action = {0}, more;
    const struct ifd_scan scan = {.model = world->model,
                                  .count = world->count,
                                  .is_complete = !world->is_broken && world->unlisted == 0,
                                  .unlisted = world->unlisted};
    world->now_ns += ns;
    REQUIRE_OK(ifd_watcher_scanned(world->watcher, &scan, world->now_ns, &err), &err);
    if (!ifd_watcher_next(world->watcher, world->now_ns, &action)) {
        return '-';
    }
    EXPECT(!ifd_watcher_next(world->watcher, world->now_ns, &more));
    return action.act == IFD_WATCHER_LOAD ? 'L' : 'U';
}

static bool is_held_after(struct world *world, uint64_t fingerprint, enum ifd_code code)
{
    const struct ifd_scan_model seen = {.fingerprint = fingerprint, .unsummed = fingerprint};
    return ifd_watcher_loaded(world->watcher, "m", &seen, code, world->now_ns);
}

static void loaded(struct world *world, uint64_t fingerprint, enum ifd_code code)
{
    EXPECT(!is_held_after(world, fingerprint, code));
}

/* A model that serves content 1 and may be replaced. */
static void begin_serving(struct world *world)
{
    begin(world);
    set(world, "m", 1);
    loaded(world, 1, IFD_OK);
    world->now_ns += 100 * SECOND;
    EXPECT_INT(scan_after(world, 0), '-');
}

/* A folder that is made and removed again leaves nothing behind. */
static void models_that_go_before_they_are_loaded_are_forgotten(void)
{
    static const char *const names[] = {"a", "b", "c"};
    struct fail_alloc memory;
    struct world w = {.now_ns = 1000 * SECOND};
    struct ifd_err err = {0};
    long live[3];
    fail_alloc_init(&memory, 0);
    const struct ifd_watcher_options options = {
        .alloc = &memory.alloc, .poll_ns = 15 * SECOND, .settle_ns = 2 * SECOND, .absent_scans = 2};
    REQUIRE_OK(ifd_watcher_create(&options, &w.watcher, &err), &err);
    for (size_t i = 0; i < 3; i++) {
        set(&w, names[i], i + 1);
        EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
        w.count = 0;
        EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
        EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
        live[i] = atomic_load(&memory.live);
    }
    EXPECT_INT(live[1], live[0]);
    EXPECT_INT(live[2], live[0]);
    ifd_watcher_destroy(w.watcher);
    fail_alloc_finish(&memory);
}

static void change_is_taken_after_it_settled(void)
{
    struct world w;
    begin_serving(&w);
    set(&w, "m", 2);
    EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
    EXPECT_INT((long)(ifd_watcher_wait_ns(w.watcher, w.now_ns) / SECOND), 2);
    EXPECT_INT(scan_after(&w, 2 * SECOND), 'L');
    ifd_watcher_destroy(w.watcher);
}

static void model_that_flaps_is_held_for_the_rest_of_the_hour(void)
{
    struct world w;
    begin_bounded(&w, 5);
    set(&w, "m", 1);
    loaded(&w, 1, IFD_OK);
    w.now_ns += 100 * SECOND;
    for (uint64_t fingerprint = 2; fingerprint <= 5; fingerprint++) {
        set(&w, "m", fingerprint);
        EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
        EXPECT_INT(scan_after(&w, 2 * SECOND), 'L');
        EXPECT(is_held_after(&w, fingerprint, IFD_OK) == (fingerprint == 5));
    }
    set(&w, "m", 6);
    for (uint64_t waited = 168; waited < 3600; waited += 52) {
        EXPECT_INT(scan_after(&w, (waited == 168 ? 0 : 52) * SECOND), '-');
    }
    EXPECT_INT(scan_after(&w, 52 * SECOND), 'L');
    loaded(&w, 6, IFD_OK); /* counted anew */
    ifd_watcher_destroy(w.watcher);
}

static void change_is_not_taken_while_files_grow(void)
{
    struct world w;
    begin_serving(&w);
    for (uint64_t fingerprint = 2; fingerprint < 50; fingerprint++) {
        set(&w, "m", fingerprint);
        EXPECT_INT(scan_after(&w, 3 * SECOND), '-');
    }
    EXPECT_INT(scan_after(&w, SECOND), '-'); /* still, but not for long enough */
    EXPECT_INT(scan_after(&w, SECOND), 'L');
    ifd_watcher_destroy(w.watcher);
}

static void one_scan_settles_nothing_however_late_it_is(void)
{
    struct world w;
    begin_serving(&w);
    set(&w, "m", 2);
    EXPECT_INT(scan_after(&w, 1000 * SECOND), '-');
    EXPECT_INT(scan_after(&w, 0), '-'); /* two scans at one moment neither */
    EXPECT_INT(scan_after(&w, 2 * SECOND), 'L');
    ifd_watcher_destroy(w.watcher);
}

static void set_parts(struct world *world, uint64_t fingerprint, uint64_t unsummed)
{
    world->model[0] =
        (struct ifd_scan_model){.name = "m", .fingerprint = fingerprint, .unsummed = unsummed};
}

/* Files with sums need not settle; files without must, unless they are as loaded. */
static void summed_change_is_taken_at_once(void)
{
    struct world w;
    begin_serving(&w);
    set_parts(&w, 2, 1); /* 1 is what serves */
    EXPECT_INT(scan_after(&w, SECOND), 'L');
    loaded(&w, 2, IFD_CORRUPT);
    EXPECT_INT(scan_after(&w, SECOND / 2), '-');
    set_parts(&w, 3, 0); /* nothing without sums is left */
    EXPECT_INT(scan_after(&w, SECOND), 'L');
    loaded(&w, 3, IFD_OK);
    w.now_ns += 100 * SECOND;
    set_parts(&w, 4, 7);
    EXPECT_INT(scan_after(&w, SECOND), '-');
    set_parts(&w, 5, 7);
    EXPECT_INT(scan_after(&w, SECOND), '-');
    set_parts(&w, 6, 7);
    EXPECT_INT(scan_after(&w, SECOND), 'L'); /* 7 was as it is for two seconds */
    ifd_watcher_destroy(w.watcher);
}

static void unfinished_upload_is_left_alone(void)
{
    struct world w;
    begin_serving(&w);
    set(&w, "m", 2);
    w.model[0].unfinished = "m/2/model.tflite.part";
    EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
    EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
    w.model[0].unfinished = NULL;
    EXPECT_INT(scan_after(&w, 15 * SECOND), 'L');
    ifd_watcher_destroy(w.watcher);
}

static void wait_for_an_upload_is_told_with_its_file_and_since_when(void)
{
    struct world w;
    uint64_t since_ns = 0;
    begin_serving(&w);
    w.model[0].unfinished = "m/1/a.part";
    (void)scan_after(&w, 15 * SECOND);
    EXPECT(!ifd_watcher_awaits(w.watcher, "m", &since_ns)); /* nothing else changed */
    set(&w, "m", 2);
    w.model[0].unfinished = "m/1/a.part";
    (void)scan_after(&w, 15 * SECOND);
    const uint64_t first_ns = w.now_ns;
    set(&w, "m", 3);
    w.model[0].unfinished = "m/1/a.part";
    (void)scan_after(&w, 15 * SECOND);
    EXPECT_TEXT(ifd_watcher_awaits(w.watcher, "m", &since_ns), "m/1/a.part");
    EXPECT(since_ns == first_ns);
    w.model[0].unfinished = "m/1/b.part"; /* the next file of the same upload */
    (void)scan_after(&w, 15 * SECOND);
    EXPECT_TEXT(ifd_watcher_awaits(w.watcher, "m", &since_ns), "m/1/b.part");
    EXPECT(since_ns == w.now_ns);
    EXPECT(!ifd_watcher_awaits(w.watcher, "other", &since_ns));
    loaded(&w, 3, IFD_OK); /* somebody asked for it */
    EXPECT(!ifd_watcher_awaits(w.watcher, "m", &since_ns));
    set(&w, "m", 4);
    w.model[0].unfinished = "m/1/b.part";
    (void)scan_after(&w, 15 * SECOND);
    EXPECT(ifd_watcher_awaits(w.watcher, "m", &since_ns));
    w.model[0].unfinished = NULL;
    EXPECT_INT(scan_after(&w, 15 * SECOND), 'L');
    EXPECT(!ifd_watcher_awaits(w.watcher, "m", &since_ns));
    ifd_watcher_destroy(w.watcher);
}

static void what_a_change_waits_for_is_told(void)
{
    struct world w;
    begin_serving(&w);
    loaded(&w, 1, IFD_OK); /* again, just now */
    EXPECT_INT(ifd_watcher_pending(w.watcher, "m", w.now_ns).kind, IFD_WATCHER_WAITS_NOT);
    set(&w, "m", 2);
    EXPECT_INT(scan_after(&w, 1 * SECOND), '-');
    struct ifd_watcher_pending pending = ifd_watcher_pending(w.watcher, "m", w.now_ns + SECOND);
    EXPECT_INT(pending.kind, IFD_WATCHER_WAITS_DWELL);
    EXPECT_INT(pending.left_ns / SECOND, 8);
    pending = ifd_watcher_pending(w.watcher, "m", w.now_ns + 9 * SECOND);
    EXPECT_INT(pending.kind, IFD_WATCHER_WAITS_SETTLE);
    EXPECT_INT(pending.since_ns / SECOND, 9);
    w.model[0].unfinished = "m/1/a.part";
    EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
    pending = ifd_watcher_pending(w.watcher, "m", w.now_ns + 3 * SECOND);
    EXPECT_INT(pending.kind, IFD_WATCHER_WAITS_UPLOAD);
    EXPECT_TEXT(pending.file, "m/1/a.part");
    EXPECT_INT(pending.since_ns / SECOND, 3);
    w.model[0].unfinished = NULL;
    EXPECT_INT(scan_after(&w, 15 * SECOND), 'L');
    EXPECT_INT(ifd_watcher_pending(w.watcher, "m", w.now_ns).kind, IFD_WATCHER_WAITS_NOT);
    EXPECT_INT(ifd_watcher_pending(w.watcher, "other", w.now_ns).kind, IFD_WATCHER_WAITS_NOT);
    ifd_watcher_destroy(w.watcher);
}

static void scans_close_together_unload_nothing(void)
{
    struct world w;
    begin_serving(&w);
    set(&w, "other", 9);
    w.model[0].unfinished = "other/1/model.tflite.part";
    EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
    EXPECT_INT(scan_after(&w, SECOND / 5), '-'); /* a notice of something else */
    EXPECT_INT(scan_after(&w, SECOND / 5), '-');
    EXPECT_INT(scan_after(&w, 15 * SECOND), 'U');
    ifd_watcher_destroy(w.watcher);
}

static void same_content_is_loaded_once(void)
{
    struct world w;
    begin_serving(&w);
    set(&w, "m", 2);
    (void)scan_after(&w, 15 * SECOND);
    EXPECT_INT(scan_after(&w, 15 * SECOND), 'L');
    EXPECT_INT(scan_after(&w, 15 * SECOND), '-'); /* it is being loaded */
    loaded(&w, 2, IFD_OK);
    for (int i = 0; i < 10; i++) {
        EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
    }
    ifd_watcher_destroy(w.watcher);
}

static uint64_t retry_ns(const struct world *world)
{
    return ifd_watcher_retry_ns(world->watcher, "m", world->now_ns);
}

/* A load fails, and the same content is tried again after this time and not before. */
static void expect_retry_after(struct world *world, uint64_t wait_ns, enum ifd_code code)
{
    loaded(world, 2, code);
    EXPECT(retry_ns(world) == wait_ns);
    EXPECT(ifd_watcher_wait_ns(world->watcher, world->now_ns) ==
           (wait_ns < 15 * SECOND ? wait_ns : 15 * SECOND));
    EXPECT_INT(scan_after(world, wait_ns - 1), '-');
    EXPECT(retry_ns(world) == 1);
    EXPECT_INT(scan_after(world, 1), 'L');
    EXPECT(retry_ns(world) == 0);
}

static void begin_loading(struct world *world)
{
    begin_serving(world);
    set(world, "m", 2);
    (void)scan_after(world, 15 * SECOND);
    EXPECT_INT(scan_after(world, 15 * SECOND), 'L');
    EXPECT(retry_ns(world) == 0);
}

static void expect_no_retry(struct world *world)
{
    EXPECT(retry_ns(world) == UINT64_MAX);
    for (int i = 0; i < 100; i++) {
        EXPECT_INT(scan_after(world, 15 * SECOND), '-');
    }
}

static void bad_content_is_tried_five_times_more(void)
{
    struct world w;
    begin_loading(&w);
    for (unsigned i = 0; i < 5; i++) {
        expect_retry_after(&w, SECOND << i, IFD_CORRUPT);
    }
    loaded(&w, 2, IFD_CORRUPT);
    expect_no_retry(&w);
    set(&w, "m", 3);
    EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
    EXPECT_INT(scan_after(&w, 2 * SECOND), 'L');
    ifd_watcher_destroy(w.watcher);
}

static void only_failures_of_the_content_itself_are_counted_against_it(void)
{
    struct world w;
    begin_loading(&w);
    for (unsigned i = 0; i < 12; i++) {
        const uint64_t wait_ns = i < 6 ? SECOND << i : 60 * SECOND;
        expect_retry_after(&w, wait_ns, i % 3 == 0 ? IFD_CORRUPT : IFD_IO); /* bad 4 times */
    }
    expect_retry_after(&w, 60 * SECOND, IFD_CORRUPT);
    loaded(&w, 2, IFD_CORRUPT);
    expect_no_retry(&w);
    ifd_watcher_destroy(w.watcher);
}

static void other_content_begins_anew_and_does_not_wait_for_the_retry(void)
{
    struct world w;
    begin_loading(&w);
    for (unsigned i = 0; i < 5; i++) {
        expect_retry_after(&w, SECOND << i, IFD_CORRUPT);
    }
    loaded(&w, 2, IFD_IO); /* 32 s */
    set(&w, "m", 3);
    EXPECT_INT(scan_after(&w, SECOND), '-');
    EXPECT_INT((long)(ifd_watcher_wait_ns(w.watcher, w.now_ns) / SECOND), 2);
    EXPECT_INT(scan_after(&w, 2 * SECOND), 'L');
    const struct ifd_scan_model seen = {.fingerprint = 3, .unsummed = 3};
    EXPECT(!ifd_watcher_loaded(w.watcher, "m", &seen, IFD_CORRUPT, w.now_ns));
    EXPECT(retry_ns(&w) == SECOND);
    ifd_watcher_destroy(w.watcher);
}

static void input_output_errors_are_retried_without_end_and_more_and_more_slowly(void)
{
    struct world w;
    begin_loading(&w);
    for (unsigned i = 0; i < 200; i++) {
        expect_retry_after(&w, i < 6 ? SECOND << i : 60 * SECOND, IFD_IO);
    }
    ifd_watcher_destroy(w.watcher);
}

static void load_that_failed_before_the_first_scan_is_retried_as_soon(void)
{
    struct world w;
    begin(&w);
    set(&w, "m", 2);
    loaded(&w, 2, IFD_CORRUPT);
    EXPECT(ifd_watcher_wait_ns(w.watcher, w.now_ns) == SECOND);
    EXPECT_INT(scan_after(&w, SECOND - 1), '-');
    EXPECT_INT(scan_after(&w, 1), 'L');
    ifd_watcher_destroy(w.watcher);
}

static void load_that_could_not_look_at_the_folder_is_retried_like_others(void)
{
    struct world w;
    begin_loading(&w);
    for (unsigned i = 0; i < 8; i++) {
        const uint64_t wait_ns = i < 6 ? SECOND << i : 60 * SECOND;
        loaded(&w, 0, IFD_IO);
        EXPECT(retry_ns(&w) == wait_ns);
        EXPECT_INT(scan_after(&w, wait_ns - 1), '-');
        EXPECT_INT(scan_after(&w, 1), 'L');
    }
    loaded(&w, 2, IFD_OK);
    EXPECT_INT(scan_after(&w, 100 * SECOND), '-');
    ifd_watcher_destroy(w.watcher);
}

static void change_during_a_load_is_taken_after_it(void)
{
    struct world w;
    begin_serving(&w);
    set(&w, "m", 2);
    (void)scan_after(&w, 15 * SECOND);
    EXPECT_INT(scan_after(&w, 15 * SECOND), 'L');
    set(&w, "m", 3);
    EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
    EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
    loaded(&w, 2, IFD_UNAVAILABLE); /* files changed while they were read */
    EXPECT_INT(scan_after(&w, SECOND), 'L');
    ifd_watcher_destroy(w.watcher);
}

static void flapping_folder_is_held_back(void)
{
    struct world w;
    uint32_t loads = 0;
    begin_serving(&w);
    for (uint64_t second = 0; second < 600; second++) {
        set(&w, "m", 2 + second / 3 % 2); /* other content every 3 s */
        if (scan_after(&w, SECOND) == 'L') {
            loads++;
            loaded(&w, w.model[0].fingerprint, IFD_OK);
        }
    }
    EXPECT(loads > 0);
    EXPECT(loads <= 60);
    ifd_watcher_destroy(w.watcher);
}

static void model_is_unloaded_after_two_listings_without_it(void)
{
    struct world w;
    begin_serving(&w);
    set(&w, "other", 9);
    w.model[0].unfinished = "m/2/model.tflite.part"; /* never loaded */
    EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
    EXPECT_INT(scan_after(&w, 15 * SECOND), 'U');
    ifd_watcher_destroy(w.watcher);
}

static void model_that_is_missing_once_stays(void)
{
    struct world w;
    begin_serving(&w);
    for (int i = 0; i < 10; i++) {
        set(&w, "other", 9);
        w.model[0].unfinished = "m/2/model.tflite.part";
        EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
        set(&w, "m", 1);
        EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
    }
    ifd_watcher_destroy(w.watcher);
}

static void unreadable_or_empty_repository_unloads_nothing(void)
{
    struct world w;
    begin_serving(&w);
    w.count = 0;
    for (int i = 0; i < 10; i++) {
        w.is_broken = i % 2 == 0;
        EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
    }
    set(&w, "m", 1);
    w.is_broken = false;
    EXPECT_INT(scan_after(&w, 15 * SECOND), '-'); /* the same content is back: nothing to do */
    EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
    ifd_watcher_destroy(w.watcher);
}

/* The model is in repositories 0 and 1, or in 0 alone until that is gone. */
static void repository_that_is_gone_hands_its_models_to_no_other(void)
{
    for (uint64_t roots = 1; roots <= 3; roots += 2) {
        struct world w;
        begin_serving(&w);
        w.model[0].roots = roots;
        EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
        set(&w, "m", 2);
        w.model[0].roots = 2;
        w.unlisted = 1;
        EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
        EXPECT_INT((long)(ifd_watcher_wait_ns(w.watcher, w.now_ns) / SECOND), 15);
        EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
        set(&w, "other", 3); /* goes on as ever */
        w.model[0].roots = 2;
        EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
        EXPECT_INT(scan_after(&w, 2 * SECOND), 'L');
        set(&w, "m", 2);
        w.model[0].roots = 2;
        w.unlisted = 0; /* has other models, so this one is gone indeed */
        EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
        EXPECT_INT(scan_after(&w, 2 * SECOND), 'L');
        ifd_watcher_destroy(w.watcher);
    }
}

static void model_that_came_back_is_loaded(void)
{
    struct world w;
    begin_serving(&w);
    set(&w, "other", 9);
    w.model[0].unfinished = "m/2/model.tflite.part";
    (void)scan_after(&w, 15 * SECOND);
    EXPECT_INT(scan_after(&w, 15 * SECOND), 'U');
    EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
    set(&w, "m", 1);
    EXPECT_INT(scan_after(&w, 15 * SECOND), '-');
    EXPECT_INT(scan_after(&w, 2 * SECOND), 'L');
    ifd_watcher_destroy(w.watcher);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(models_that_go_before_they_are_loaded_are_forgotten),
        T(change_is_taken_after_it_settled),
        T(model_that_flaps_is_held_for_the_rest_of_the_hour),
        T(change_is_not_taken_while_files_grow),
        T(one_scan_settles_nothing_however_late_it_is),
        T(summed_change_is_taken_at_once),
        T(unfinished_upload_is_left_alone),
        T(wait_for_an_upload_is_told_with_its_file_and_since_when),
        T(what_a_change_waits_for_is_told),
        T(scans_close_together_unload_nothing),
        T(same_content_is_loaded_once),
        T(bad_content_is_tried_five_times_more),
        T(only_failures_of_the_content_itself_are_counted_against_it),
        T(other_content_begins_anew_and_does_not_wait_for_the_retry),
        T(input_output_errors_are_retried_without_end_and_more_and_more_slowly),
        T(load_that_failed_before_the_first_scan_is_retried_as_soon),
        T(load_that_could_not_look_at_the_folder_is_retried_like_others),
        T(change_during_a_load_is_taken_after_it),
        T(flapping_folder_is_held_back),
        T(model_is_unloaded_after_two_listings_without_it),
        T(model_that_is_missing_once_stays),
        T(unreadable_or_empty_repository_unloads_nothing),
        T(repository_that_is_gone_hands_its_models_to_no_other),
        T(model_that_came_back_is_loaded),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Operations of one model that wait for each other; the test runs the loads itself. */
#include <pthread.h>
#include <stdlib.h>

#include "engine/base/str.h"
#include "server/repo/repo.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#define STACK_BYTES ((size_t)512 << 10)
/* A recursion of 16 bytes each would not fit into the stack. */
#define UNLOADS 40000

struct fixture {
    struct ifd_repo *repo;
    atomic_bool is_stopping;
    /* the one load that waits */
    void (*work)(void *arg);
    void (*done)(void *arg);
    void *arg;
    uint32_t changes, loads, unloads, refusals;
};

static enum ifd_code keep_work(void *context, void (*work)(void *arg), void (*done)(void *arg),
                               void *arg, struct ifd_err *err)
{
    struct fixture *f = context;
    if (f->work) {
        return ifd_fail(err, IFD_BUSY, "a load waits already");
    }
    f->work = work;
    f->done = done;
    f->arg = arg;
    return IFD_OK;
}

static void run_load(struct fixture *f)
{
    void (*done)(void *arg) = f->done;
    REQUIRE(f->work != NULL);
    f->work(f->arg);
    f->work = NULL;
    done(f->arg);
}

static void changed(void *context)
{
    ((struct fixture *)context)->changes++;
}

static void count_load(void *arg, enum ifd_code code, const struct ifd_err *err)
{
    struct fixture *f = arg;
    EXPECT_INT(code, f->is_stopping ? IFD_UNAVAILABLE : IFD_NOT_FOUND);
    EXPECT_HAS(err->text, "failed to load 'm'");
    f->loads++;
}

static void count_unload(void *arg, enum ifd_code code, const struct ifd_err *err)
{
    struct fixture *f = arg;
    f->unloads += code == IFD_OK;
    f->refusals += code == IFD_UNAVAILABLE;
    EXPECT(code == IFD_OK || code == IFD_UNAVAILABLE);
    (void)err;
}

static enum ifd_code create(struct fixture *f, const struct ifd_alloc *alloc, uint64_t poll_ns,
                            struct ifd_err *err)
{
    static const struct ifd_log quiet = {0};
    const char *const dirs[] = {folder_path()};
    const struct ifd_repo_options options = {
        .alloc = alloc,
        .log = &quiet,
        .host = {.context = f, .run_off_loop = keep_work, .changed = changed},
        .dir = dirs,
        .dir_count = 1,
        .poll_ns = poll_ns,
        .clock = ifd_clock_system(),
        .is_stopping = &f->is_stopping};
    return ifd_repo_create(&options, &f->repo, err);
}

static void begin(struct fixture *f)
{
    struct ifd_err err = {0};
    folder_begin();
    *f = (struct fixture){.repo = NULL};
    REQUIRE_OK(create(f, ifd_alloc_system(), 0, &err), &err);
}

static void end(struct fixture *f)
{
    ifd_repo_destroy(f->repo);
    folder_end();
}

static void each_failed_allocation_of_a_repository_is_reported(void)
{
    struct fail_alloc fail;
    long k = 0;
    folder_begin();
    do {
        struct fixture f = {.repo = NULL};
        struct ifd_err err = {0};
        fail_alloc_init(&fail, ++k);
        const enum ifd_code code = create(&f, &fail.alloc, 1000000000, &err);
        EXPECT_CODE(code, fail.failed ? IFD_NOMEM : IFD_OK, &err);
        ifd_repo_destroy(f.repo);
        fail_alloc_finish(&fail);
    } while (fail.failed);
    EXPECT(k > 3);
    folder_end();
}

static void queue_unloads_behind_a_load(struct fixture *f)
{
    const struct ifd_source folder = {.root = -1};
    ifd_repo_load(f->repo, ifd_str("m"), &folder, count_load, f);
    for (int i = 0; i < UNLOADS; i++) {
        ifd_repo_unload(f->repo, ifd_str("m"), count_unload, f);
    }
    EXPECT_INT(f->loads, 0);
    EXPECT_INT(f->unloads, 0);
}

/* Runs fn(arg) on a thread with a small stack: an overflow ends the test. */
static void on_small_stack(void *(*fn)(void *arg), void *arg)
{
    pthread_attr_t attributes;
    pthread_t thread;
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0);
    REQUIRE(pthread_create(&thread, &attributes, fn, arg) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    (void)pthread_attr_destroy(&attributes);
}

static void *run_load_there(void *arg)
{
    run_load(arg);
    return NULL;
}

static void thousands_of_unloads_behind_a_load_need_no_stack(void)
{
    struct fixture f;
    begin(&f);
    queue_unloads_behind_a_load(&f);
    on_small_stack(run_load_there, &f);
    EXPECT_INT(f.loads, 1);
    EXPECT_INT(f.unloads, UNLOADS);
    EXPECT(f.changes > 0);
    end(&f);
}

struct refusal {
    uint32_t count;
    enum ifd_code code;
    struct ifd_err err;
};

static void keep_refusal(void *arg, enum ifd_code code, const struct ifd_err *err)
{
    struct refusal *refusal = arg;
    refusal->count++;
    refusal->code = code;
    refusal->err = *err;
}

/* No thread could be had for it: keep_work takes one load at a time. */
static void a_load_that_cannot_begin_is_answered(void)
{
    const struct ifd_source folder = {.root = -1};
    struct refusal refusal = {0};
    struct fixture f;
    begin(&f);
    ifd_repo_load(f.repo, ifd_str("m"), &folder, count_load, &f);
    for (uint32_t i = 1; i <= 2; i++) {
        ifd_repo_load(f.repo, ifd_str("n"), &folder, keep_refusal, &refusal);
        EXPECT_INT(refusal.count, i);
        EXPECT_CODE(refusal.code, IFD_BUSY, &refusal.err);
        EXPECT_HAS(refusal.err.text, "failed to load 'n'");
        EXPECT_HAS(refusal.err.text, "a load waits already");
    }
    run_load(&f);
    EXPECT_INT(f.loads, 1);
    end(&f);
}

static void those_that_wait_are_refused_when_the_server_stops(void)
{
    struct fixture f;
    begin(&f);
    queue_unloads_behind_a_load(&f);
    f.is_stopping = true;
    on_small_stack(run_load_there, &f);
    EXPECT_INT(f.refusals, UNLOADS);
    end(&f);
}

/* A load behind a load begins when the first one ends, and unloads behind it wait for it. */
static void next_load_begins_when_the_one_before_ended(void)
{
    struct fixture f;
    begin(&f);
    const struct ifd_source folder = {.root = -1};
    ifd_repo_load(f.repo, ifd_str("m"), &folder, count_load, &f);
    ifd_repo_unload(f.repo, ifd_str("m"), count_unload, &f);
    ifd_repo_load(f.repo, ifd_str("m"), &folder, count_load, &f);
    ifd_repo_unload(f.repo, ifd_str("m"), count_unload, &f);
    run_load(&f);
    EXPECT_INT(f.loads, 1);
    EXPECT_INT(f.unloads, 1);
    run_load(&f);
    EXPECT_INT(f.loads, 2);
    EXPECT_INT(f.unloads, 2);
    EXPECT(f.work == NULL);
    end(&f);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(each_failed_allocation_of_a_repository_is_reported),
        T(thousands_of_unloads_behind_a_load_need_no_stack),
        T(a_load_that_cannot_begin_is_answered),
        T(those_that_wait_are_refused_when_the_server_stops),
        T(next_load_begins_when_the_one_before_ended),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

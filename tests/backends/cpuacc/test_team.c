/* The threads of a run run every chunk of every step once, in order, whenever they come. */
#include "backends/cpuacc/schedule/team.h"
#include "engine/base/team.h"
#include "tests/support/test.h"

#include <sched.h>
#include <string.h>

enum { STEPS = 40, THREADS_MAX = 4, PARTS_MAX = THREADS_MAX * IFD_ACC_CHUNKS_MAX };

/* What a step has seen of its chunks. */
struct record {
    const struct record *before; /* the step that must be done */
    uint32_t parts;              /* that there are */
    atomic_uint done;
    atomic_uint times[PARTS_MAX];
    atomic_uint by[THREADS_MAX];
    atomic_uint slow; /* polls of the clock by which a thread is slowed down, counted down */
};

struct course {
    struct ifd_acc_step step[STEPS];
    struct record record[STEPS];
    struct ifd_acc_team *team;
    size_t team_bytes;
    uint32_t threads;
};

static void note_chunks(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct record *record = (struct record *)(uintptr_t)step->params;
    uint32_t *last = frame->binding->scratch;
    EXPECT(!record->before || atomic_load(&record->before->done) == record->before->parts);
    EXPECT_INT(frame->chunks, record->parts);
    EXPECT(frame->chunk.begin < frame->chunk.end && frame->chunk.end <= record->parts);
    EXPECT(!frame->goes_on || *last == frame->chunk.begin);
    *last = (uint32_t)frame->chunk.end;
    for (size_t i = frame->chunk.begin; i < frame->chunk.end; i++) {
        (void)atomic_fetch_add(&record->times[i], 1);
        (void)atomic_fetch_add(&record->done, 1);
        (void)atomic_fetch_add(&record->by[frame->thread], 1);
        for (uint32_t k = atomic_load(&record->slow); frame->thread + 1 == frame->threads && k > 0;
             k--) {
            (void)sched_yield();
        }
    }
}

static void walk(void *arg, uint32_t index, uint32_t count)
{
    struct course *course = arg;
    uint32_t last = 0;
    const struct ifd_binding binding = {.scratch = &last}; /* of this thread alone */
    struct ifd_acc_frame frame = {.binding = &binding};
    struct ifd_acc_worker worker = ifd_acc_worker_init(course->team, index, count);
    for (uint32_t i = 0; i < STEPS; i++) {
        ifd_acc_worker_step(&worker, &course->step[i], &frame);
    }
}

/* Steps of all kinds: for one thread, some or all; of one chunk or more. */
static void course_init(struct course *course, uint32_t threads, uint64_t seed)
{
    struct test_random random = {.state = seed};
    memset(course, 0, sizeof(*course));
    course->threads = threads;
    course->team_bytes = ifd_acc_team_bytes(threads);
    void *memory = ifd_acquire_tensor(ifd_alloc_system(), course->team_bytes);
    REQUIRE(memory);
    course->team = ifd_acc_team_init(memory, threads);
    for (uint32_t i = 0; i < STEPS; i++) {
        struct ifd_acc_step *step = &course->step[i];
        struct record *record = &course->record[i];
        step->run = note_chunks;
        step->params = record;
        step->max_threads = (uint32_t)test_random_int(&random, 1, THREADS_MAX);
        step->chunks = (uint32_t)test_random_int(&random, 1, IFD_ACC_CHUNKS_MAX);
        step->joins = i + 1 < STEPS;
        const uint32_t sharing = step->max_threads < threads ? step->max_threads : threads;
        record->parts = sharing == 1 ? 1 : sharing * step->chunks;
        record->before = i > 0 ? &course->record[i - 1] : NULL;
        atomic_store(&record->slow, (uint32_t)test_random_int(&random, 0, 2));
    }
}

static void course_finish(struct course *course)
{
    for (uint32_t i = 0; i < STEPS; i++) {
        const struct record *record = &course->record[i];
        for (uint32_t k = 0; k < PARTS_MAX; k++) {
            EXPECT_INT(atomic_load(&record->times[k]), k < record->parts ? 1 : 0);
        }
    }
    ifd_release_tensor(ifd_alloc_system(), course->team, course->team_bytes);
}

static void every_chunk_runs_once_behind_those_of_the_step_before(void)
{
    for (uint32_t threads = 2; threads <= THREADS_MAX; threads++) {
        struct ifd_team *team = NULL;
        struct ifd_err err = {0};
        REQUIRE_OK(ifd_team_create(threads, ifd_alloc_system(), &team, &err), &err);
        for (uint64_t round = 1; round <= 60; round++) {
            struct course course;
            course_init(&course, threads, round);
            team->run(team, walk, &course);
            course_finish(&course);
        }
        ifd_team_destroy(team);
    }
}

/* A thread that comes when all is done does nothing and waits for nothing. */
static void one_thread_does_what_nobody_comes_for(void)
{
    for (uint32_t threads = 1; threads <= THREADS_MAX; threads++) {
        struct course course;
        course_init(&course, threads, threads);
        for (uint32_t index = 0; index < threads; index++) {
            walk(&course, index, threads);
        }
        for (uint32_t i = 0; i < STEPS; i++) {
            EXPECT_INT(atomic_load(&course.record[i].by[0]), course.record[i].parts);
        }
        course_finish(&course);
    }
}

/* During this call another thread takes the rest of the part. */
struct meeting {
    struct ifd_acc_worker thief;
    const struct ifd_acc_step *step;
    struct ifd_acc_range own[PARTS_MAX], taken[PARTS_MAX];
    uint32_t own_count, taken_count;
};

static void note_range(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct meeting *meeting = (struct meeting *)(uintptr_t)step->params;
    if (frame->thread == 1) {
        meeting->taken[meeting->taken_count++] = frame->chunk;
        return;
    }
    meeting->own[meeting->own_count++] = frame->chunk;
    if (meeting->own_count == 1) {
        struct ifd_acc_frame other = *frame;
        ifd_acc_worker_step(&meeting->thief, step, &other);
    }
}

/* The owner begins at the front with all but a chunk; the other thread runs its part, then that
 * chunk. After a step like that the owner leaves more. */
static void others_take_from_the_back_and_owners_leave_them_more(void)
{
    struct meeting meeting = {0};
    struct ifd_acc_team *team = ifd_acquire_tensor(ifd_alloc_system(), ifd_acc_team_bytes(2));
    REQUIRE(team);
    team = ifd_acc_team_init(team, 2);
    struct ifd_acc_step step = {
        .run = note_range, .params = &meeting, .max_threads = 2, .chunks = 8, .joins = false};
    struct ifd_acc_worker owner = ifd_acc_worker_init(team, 0, 2);
    struct ifd_acc_frame frame = {0};
    static const size_t first_call[] = {7, 6, 4, 4};
    meeting.thief = ifd_acc_worker_init(team, 1, 2);
    for (uint32_t i = 0; i < 4; i++) {
        meeting.own_count = meeting.taken_count = 0;
        ifd_acc_worker_step(&owner, &step, &frame);
        EXPECT_INT(meeting.own_count, 1);
        EXPECT_INT(meeting.own[0].begin, 0);
        EXPECT_INT(meeting.own[0].end, first_call[i]);
        size_t back = 8;
        for (uint32_t k = 0; k < meeting.taken_count; k++) {
            const struct ifd_acc_range taken = meeting.taken[k];
            if (taken.begin < 8) {
                EXPECT_INT(taken.end, back);
                back = taken.begin;
            }
        }
        EXPECT_INT(back, first_call[i]);
    }
    ifd_release_tensor(ifd_alloc_system(), team, ifd_acc_team_bytes(2));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(every_chunk_runs_once_behind_those_of_the_step_before),
        T(one_thread_does_what_nobody_comes_for),
        T(others_take_from_the_back_and_owners_leave_them_more),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

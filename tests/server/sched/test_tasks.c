/* A pool of one thread, which a gate holds while others wait. */
#include "server/sched/tasks.h"

#include "engine/base/thread.h"
#include "tests/support/test.h"

#define ITEMS 5

struct gate {
    struct ifd_mutex mutex;
    struct ifd_cond changed;
    bool is_entered, is_open;
};

struct item {
    struct ifd_task task;
    struct gate *gate; /* NULL: work does not wait */
    _Atomic int verdict;
    bool is_worked;
    int done_at; /* 0: not done; else the count of those done then */
};

struct fixture {
    struct gate gate;
    struct ifd_completions completions;
    struct ifd_tasks *tasks;
    struct item item[ITEMS];
};

static int done_count;

static void no_wake(void *arg)
{
    (void)arg;
}

static enum ifd_code verdict(const struct ifd_task *task)
{
    return (enum ifd_code)atomic_load(&((const struct item *)task)->verdict);
}

static void work(struct ifd_task *task)
{
    struct item *item = (struct item *)task;
    struct gate *gate = item->gate;
    item->is_worked = true;
    if (!gate) {
        return;
    }
    ifd_mutex_lock(&gate->mutex);
    gate->is_entered = true;
    ifd_cond_broadcast(&gate->changed);
    while (!gate->is_open) {
        ifd_cond_wait(&gate->changed, &gate->mutex);
    }
    ifd_mutex_unlock(&gate->mutex);
}

static void done(struct ifd_task *task)
{
    ((struct item *)task)->done_at = ++done_count;
}

/* Item 0 is in the gate, the others wait. */
static void begin(struct fixture *f)
{
    struct ifd_err err = {0};
    *f = (struct fixture){.tasks = NULL};
    done_count = 0;
    ifd_mutex_init(&f->gate.mutex);
    ifd_cond_init(&f->gate.changed);
    ifd_completions_init(&f->completions, no_wake, NULL);
    REQUIRE_OK(
        ifd_tasks_create("test", 1, ITEMS, &f->completions, ifd_alloc_system(), &f->tasks, &err),
        &err);
    for (int i = 0; i < ITEMS; i++) {
        f->item[i].task = (struct ifd_task){.verdict = verdict, .work = work, .done = done};
        f->item[i].gate = i == 0 ? &f->gate : NULL;
        REQUIRE_OK(ifd_tasks_submit(f->tasks, &f->item[i].task, &err), &err);
    }
    ifd_mutex_lock(&f->gate.mutex);
    while (!f->gate.is_entered) {
        ifd_cond_wait(&f->gate.changed, &f->gate.mutex);
    }
    ifd_mutex_unlock(&f->gate.mutex);
}

/* Opens the gate and waits for all. */
static void end(struct fixture *f)
{
    ifd_mutex_lock(&f->gate.mutex);
    f->gate.is_open = true;
    ifd_cond_broadcast(&f->gate.changed);
    ifd_mutex_unlock(&f->gate.mutex);
    ifd_tasks_destroy(f->tasks);
    ifd_completions_drain(&f->completions);
    EXPECT_INT(done_count, ITEMS);
    ifd_cond_finish(&f->gate.changed);
    ifd_mutex_finish(&f->gate.mutex);
}

static void unwanted_tasks_end_while_others_wait(void)
{
    struct fixture f;
    begin(&f);
    atomic_store(&f.item[0].verdict, IFD_CANCELLED); /* runs: not the sweep's */
    atomic_store(&f.item[2].verdict, IFD_CANCELLED);
    atomic_store(&f.item[4].verdict, IFD_DEADLINE);
    ifd_tasks_sweep(f.tasks);
    ifd_completions_drain(&f.completions);
    EXPECT_INT(done_count, 2);
    EXPECT_INT(f.item[2].done_at, 1);
    EXPECT_INT(f.item[2].task.code, IFD_CANCELLED);
    EXPECT_INT(f.item[4].done_at, 2);
    EXPECT_INT(f.item[4].task.code, IFD_DEADLINE);
    EXPECT(!f.item[2].is_worked && !f.item[4].is_worked);
    end(&f);
    EXPECT(f.item[1].is_worked && f.item[3].is_worked);
    EXPECT_INT(f.item[0].task.code, IFD_OK);
    EXPECT_INT(f.item[1].done_at, 4);
    EXPECT_INT(f.item[3].done_at, 5);
}

static void tasks_after_a_sweep_of_the_last_one_are_run(void)
{
    struct fixture f;
    struct item more = {.task = {.work = work, .done = done}}; /* without a verdict */
    begin(&f);
    for (int i = 1; i < ITEMS; i++) {
        atomic_store(&f.item[i].verdict, IFD_CANCELLED);
    }
    ifd_tasks_sweep(f.tasks);
    ifd_completions_drain(&f.completions);
    EXPECT_INT(done_count, ITEMS - 1);
    REQUIRE_OK(ifd_tasks_submit(f.tasks, &more.task, NULL), NULL);
    ifd_tasks_sweep(f.tasks);
    done_count--; /* end counts one for each of ITEMS */
    end(&f);
    EXPECT(more.is_worked && more.done_at > 0);
}

static void task_that_became_unwanted_is_not_worked_on_when_its_turn_comes(void)
{
    struct fixture f;
    begin(&f);
    atomic_store(&f.item[1].verdict, IFD_DEADLINE);
    end(&f);
    EXPECT(!f.item[1].is_worked);
    EXPECT_INT(f.item[1].task.code, IFD_DEADLINE);
    EXPECT(f.item[2].is_worked);
}

static void swept_tasks_leave_room_for_others(void)
{
    struct fixture f;
    struct item more[2] = {{.task = {.work = work, .done = done}},
                           {.task = {.work = work, .done = done}}};
    struct ifd_err err = {0};
    begin(&f);
    REQUIRE_OK(ifd_tasks_submit(f.tasks, &more[0].task, &err), &err); /* the fifth that waits */
    EXPECT_CODE(ifd_tasks_submit(f.tasks, &more[1].task, &err), IFD_BUSY, &err);
    atomic_store(&f.item[3].verdict, IFD_CANCELLED);
    ifd_tasks_sweep(f.tasks);
    REQUIRE_OK(ifd_tasks_submit(f.tasks, &more[1].task, &err), &err);
    ifd_completions_drain(&f.completions);
    EXPECT_INT(done_count, 1);
    done_count -= 2;
    end(&f);
    EXPECT(more[0].is_worked && more[1].is_worked);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(unwanted_tasks_end_while_others_wait),
        T(tasks_after_a_sweep_of_the_last_one_are_run),
        T(task_that_became_unwanted_is_not_worked_on_when_its_turn_comes),
        T(swept_tasks_leave_room_for_others),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* A small thread pool with one queue. */
#include "server/sched/tasks.h"

#include "engine/base/thread.h"

struct ifd_tasks {
    const struct ifd_alloc *alloc;
    const char *name;
    struct ifd_completions *completions;
    struct ifd_mutex mutex; /* guards the list, the counts and is_stopping */
    struct ifd_cond changed;
    struct ifd_task *first, *last;
    uint32_t waiting, running, capacity;
    bool is_stopping;
    struct ifd_thread *thread;
    uint32_t thread_count, started;
};

static void finish_task(struct ifd_completion *completion)
{
    struct ifd_task *task = (struct ifd_task *)completion; /* its first member */
    task->done(task);
}

static enum ifd_code verdict_of(const struct ifd_task *task)
{
    return task->verdict ? task->verdict(task) : IFD_OK;
}

static void complete(struct ifd_tasks *tasks, struct ifd_task *task)
{
    task->completion.fn = finish_task;
    ifd_completions_push(tasks->completions, &task->completion);
}

static struct ifd_task *take(struct ifd_tasks *tasks)
{
    ifd_mutex_lock(&tasks->mutex);
    while (!tasks->first && !tasks->is_stopping) {
        ifd_cond_wait(&tasks->changed, &tasks->mutex);
    }
    struct ifd_task *task = tasks->first;
    if (task) {
        tasks->first = task->next;
        if (!tasks->first) {
            tasks->last = NULL;
        }
        tasks->waiting--;
        tasks->running++;
    }
    ifd_mutex_unlock(&tasks->mutex);
    return task;
}

static void count_end(struct ifd_tasks *tasks)
{
    ifd_mutex_lock(&tasks->mutex);
    tasks->running--;
    ifd_mutex_unlock(&tasks->mutex);
}

static void run(void *arg)
{
    struct ifd_tasks *tasks = arg;
    for (struct ifd_task *task = take(tasks); task; task = take(tasks)) {
        task->code = verdict_of(task);
        if (!task->code) {
            task->work(task);
        }
        count_end(tasks);
        complete(tasks, task);
    }
}

enum ifd_code ifd_tasks_create(const char *name, uint32_t threads, uint32_t capacity,
                               struct ifd_completions *completions, const struct ifd_alloc *alloc,
                               struct ifd_tasks **ret_tasks, struct ifd_err *err)
{
    struct ifd_tasks *tasks = ifd_acquire_zeroed(alloc, 1, sizeof(*tasks));
    if (!tasks) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a thread pool");
    }
    tasks->alloc = alloc;
    tasks->name = name;
    tasks->completions = completions;
    tasks->capacity = capacity;
    tasks->thread_count = threads;
    ifd_mutex_init(&tasks->mutex);
    ifd_cond_init(&tasks->changed);
    tasks->thread = ifd_acquire_zeroed(alloc, threads, sizeof(*tasks->thread));
    enum ifd_code code = IFD_OK;
    if (!tasks->thread) {
        code = ifd_fail(err, IFD_NOMEM, "no memory for %u threads", threads);
    }
    while (!code && tasks->started < threads) {
        code = ifd_thread_start(&tasks->thread[tasks->started], name, run, tasks, alloc, err);
        tasks->started += code ? 0 : 1;
    }
    if (code) {
        ifd_tasks_destroy(tasks);
        return code;
    }
    *ret_tasks = tasks;
    return IFD_OK;
}

void ifd_tasks_destroy(struct ifd_tasks *tasks)
{
    if (!tasks) {
        return;
    }
    ifd_mutex_lock(&tasks->mutex);
    tasks->is_stopping = true;
    ifd_cond_broadcast(&tasks->changed);
    ifd_mutex_unlock(&tasks->mutex);
    for (uint32_t i = 0; i < tasks->started; i++) {
        ifd_thread_join(&tasks->thread[i]);
    }
    ifd_cond_finish(&tasks->changed);
    ifd_mutex_finish(&tasks->mutex);
    ifd_release(tasks->alloc, tasks->thread, tasks->thread_count * sizeof(*tasks->thread));
    ifd_release(tasks->alloc, tasks, sizeof(*tasks));
}

/* Removes unwanted tasks from the list. The lock is held. */
static struct ifd_task *take_unwanted(struct ifd_tasks *tasks)
{
    struct ifd_task *unwanted = NULL, **end = &unwanted, **at = &tasks->first;
    tasks->last = NULL;
    while (*at) {
        struct ifd_task *task = *at;
        task->code = verdict_of(task);
        if (!task->code) {
            tasks->last = task;
            at = &task->next;
            continue;
        }
        *at = task->next;
        task->next = NULL;
        *end = task;
        end = &task->next;
        tasks->waiting--;
    }
    return unwanted;
}

void ifd_tasks_sweep(struct ifd_tasks *tasks)
{
    ifd_mutex_lock(&tasks->mutex);
    struct ifd_task *unwanted = take_unwanted(tasks);
    ifd_mutex_unlock(&tasks->mutex);
    for (struct ifd_task *task = unwanted, *next = NULL; task; task = next) {
        next = task->next;
        complete(tasks, task);
    }
}

bool ifd_tasks_are_idle(struct ifd_tasks *tasks)
{
    ifd_mutex_lock(&tasks->mutex);
    const bool is_idle = tasks->waiting == 0 && tasks->running == 0;
    ifd_mutex_unlock(&tasks->mutex);
    return is_idle;
}

enum ifd_code ifd_tasks_submit(struct ifd_tasks *tasks, struct ifd_task *task, struct ifd_err *err)
{
    ifd_mutex_lock(&tasks->mutex);
    bool is_full = tasks->waiting == tasks->capacity;
    if (!is_full) {
        task->next = NULL;
        *(tasks->last ? &tasks->last->next : &tasks->first) = task;
        tasks->last = task;
        tasks->waiting++;
        ifd_cond_signal(&tasks->changed);
    }
    ifd_mutex_unlock(&tasks->mutex);
    if (is_full) {
        return ifd_fail(err, IFD_BUSY, "%u %s tasks wait already", tasks->capacity, tasks->name);
    }
    return IFD_OK;
}

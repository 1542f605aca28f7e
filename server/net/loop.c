/* libuv behind our names. */
#include "server/net/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <uv.h>

#include "engine/base/clock.h"

struct callback {
    ifd_loop_fn fn;
    void *arg;
};

struct signal_slot {
    uv_signal_t handle;
    ifd_signal_fn fn;
    void *arg;
};

struct ifd_loop {
    const struct ifd_alloc *alloc;
    uv_loop_t uv;
    /* An event descriptor instead of uv_async_t, whose receiver spins while a preempted sender is
     * half done. */
    int wake_fd;
    uv_poll_t wake;
    int alarm_fd;
    uv_poll_t alarm;
    uv_idle_t awake; /* while active, a turn does not wait */
    uint64_t awake_until_ns;
    uv_prepare_t prepare;
    struct callback on_wake, before_wait, on_alarm;
    struct signal_slot signal[IFD_LOOP_SIGNALS];
    uint32_t signal_count;
};

struct ifd_timer {
    uv_timer_t handle;
    struct ifd_loop *loop;
    struct callback call;
};

struct ifd_watch {
    uv_poll_t handle;
    struct ifd_loop *loop;
    struct callback call;
};

static void call(const struct callback *callback)
{
    if (callback->fn) {
        callback->fn(callback->arg);
    }
}

static void on_wake_fd(uv_poll_t *handle, int status, int events)
{
    struct ifd_loop *loop = handle->data;
    uint64_t wakes = 0;
    (void)status;
    (void)events;
    /* Read before the call, so that a push during the call wakes again. Nothing to read is fine. */
    ssize_t got = read(loop->wake_fd, &wakes, sizeof(wakes));
    (void)got;
    call(&loop->on_wake);
}

static void on_alarm_fd(uv_poll_t *handle, int status, int events)
{
    struct ifd_loop *loop = handle->data;
    uint64_t times = 0;
    (void)status;
    (void)events;
    if (read(loop->alarm_fd, &times, sizeof(times)) > 0) { /* else it was cancelled meanwhile */
        call(&loop->on_alarm);
    }
}

static void on_awake(uv_idle_t *handle)
{
    struct ifd_loop *loop = handle->data;
    if (ifd_monotonic_ns() >= loop->awake_until_ns) {
        (void)uv_idle_stop(&loop->awake);
    }
    call(&loop->on_wake);
}

static void on_prepare(uv_prepare_t *handle)
{
    call(&((struct ifd_loop *)handle->data)->before_wait);
}

static void close_descriptors(const struct ifd_loop *loop)
{
    if (loop->wake_fd >= 0) {
        (void)close(loop->wake_fd);
    }
    if (loop->alarm_fd >= 0) {
        (void)close(loop->alarm_fd);
    }
}

static enum ifd_code start(struct ifd_loop *loop, struct ifd_err *err)
{
    int failed = uv_loop_init(&loop->uv);
    if (failed) {
        return ifd_fail(err, IFD_UNAVAILABLE, "cannot start the event loop: %s",
                        uv_strerror(failed));
    }
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    loop->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (loop->wake_fd < 0 || loop->alarm_fd < 0) {
        close_descriptors(loop);
        (void)uv_loop_close(&loop->uv);
        return ifd_fail(err, IFD_UNAVAILABLE, "cannot make an event descriptor: %s",
                        strerror(errno));
    }
    loop->wake.data = loop->alarm.data = loop->awake.data = loop;
    (void)uv_poll_init(&loop->uv, &loop->wake, loop->wake_fd); /* these cannot fail */
    (void)uv_poll_start(&loop->wake, UV_READABLE, on_wake_fd);
    (void)uv_poll_init(&loop->uv, &loop->alarm, loop->alarm_fd);
    (void)uv_poll_start(&loop->alarm, UV_READABLE, on_alarm_fd);
    (void)uv_idle_init(&loop->uv, &loop->awake);
    (void)uv_prepare_init(&loop->uv, &loop->prepare);
    (void)uv_prepare_start(&loop->prepare, on_prepare);
    loop->prepare.data = loop;
    return IFD_OK;
}

enum ifd_code ifd_loop_create(const struct ifd_alloc *alloc, struct ifd_loop **ret_loop,
                              struct ifd_err *err)
{
    struct ifd_loop *loop = ifd_acquire_zeroed(alloc, 1, sizeof(*loop));
    if (!loop) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the event loop");
    }
    loop->alloc = alloc;
    enum ifd_code code = start(loop, err);
    if (code) {
        ifd_release(alloc, loop, sizeof(*loop));
        return code;
    }
    *ret_loop = loop;
    return IFD_OK;
}

void ifd_loop_destroy(struct ifd_loop *loop)
{
    if (!loop) {
        return;
    }
    loop->before_wait.fn = NULL;
    uv_close((uv_handle_t *)&loop->wake, NULL);
    uv_close((uv_handle_t *)&loop->alarm, NULL);
    uv_close((uv_handle_t *)&loop->awake, NULL);
    uv_close((uv_handle_t *)&loop->prepare, NULL);
    for (uint32_t i = 0; i < loop->signal_count; i++) {
        uv_close((uv_handle_t *)&loop->signal[i].handle, NULL);
    }
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT); /* lets every close finish */
    (void)uv_loop_close(&loop->uv);
    close_descriptors(loop);
    ifd_release(loop->alloc, loop, sizeof(*loop));
}

void ifd_loop_run(struct ifd_loop *loop)
{
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void ifd_loop_stop(struct ifd_loop *loop)
{
    uv_stop(&loop->uv);
}

void ifd_loop_on_wake(struct ifd_loop *loop, ifd_loop_fn fn, void *arg)
{
    loop->on_wake = (struct callback){.fn = fn, .arg = arg};
}

void ifd_loop_wake(void *loop)
{
    const uint64_t one = 1;
    /* Fails only if the counter is full; then the loop is awake already. */
    ssize_t put = write(((struct ifd_loop *)loop)->wake_fd, &one, sizeof(one));
    (void)put;
}

void ifd_loop_alarm(struct ifd_loop *loop, uint64_t at_ns, ifd_loop_fn fn, void *arg)
{
    const struct itimerspec at = {.it_value = {.tv_sec = (time_t)(at_ns / 1000000000),
                                               .tv_nsec = (long)(at_ns % 1000000000)}};
    loop->on_alarm = (struct callback){.fn = fn, .arg = arg};
    (void)timerfd_settime(loop->alarm_fd, TFD_TIMER_ABSTIME, &at, NULL); /* cannot fail */
}

void ifd_loop_stay_awake(struct ifd_loop *loop, uint64_t until_ns)
{
    loop->awake_until_ns = until_ns;
    if (until_ns > 0) {
        (void)uv_idle_start(&loop->awake, on_awake);
    } else {
        (void)uv_idle_stop(&loop->awake);
    }
}

void ifd_loop_before_wait(struct ifd_loop *loop, ifd_loop_fn fn, void *arg)
{
    loop->before_wait = (struct callback){.fn = fn, .arg = arg};
}

static void on_signal(uv_signal_t *handle, int signal)
{
    struct signal_slot *slot = handle->data;
    slot->fn(slot->arg, signal);
}

enum ifd_code ifd_loop_on_signal(struct ifd_loop *loop, int signal, ifd_signal_fn fn, void *arg,
                                 struct ifd_err *err)
{
    if (loop->signal_count == IFD_LOOP_SIGNALS) {
        return ifd_fail(err, IFD_TOO_LARGE, "more than %d signals watched", IFD_LOOP_SIGNALS);
    }
    struct signal_slot *slot = &loop->signal[loop->signal_count];
    int failed = uv_signal_init(&loop->uv, &slot->handle);
    if (failed) {
        return ifd_fail(err, IFD_UNAVAILABLE, "cannot watch signal %d: %s", signal,
                        uv_strerror(failed));
    }
    loop->signal_count++;
    slot->fn = fn;
    slot->arg = arg;
    slot->handle.data = slot;
    failed = uv_signal_start(&slot->handle, on_signal, signal);
    if (failed) {
        return ifd_fail(err, IFD_UNAVAILABLE, "cannot watch signal %d: %s", signal,
                        uv_strerror(failed));
    }
    return IFD_OK;
}

static void on_timer(uv_timer_t *handle)
{
    call(&((struct ifd_timer *)handle->data)->call);
}

enum ifd_code ifd_timer_create(struct ifd_loop *loop, ifd_loop_fn fn, void *arg,
                               struct ifd_timer **ret_timer, struct ifd_err *err)
{
    struct ifd_timer *timer = ifd_acquire_zeroed(loop->alloc, 1, sizeof(*timer));
    if (!timer) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a timer");
    }
    (void)uv_timer_init(&loop->uv, &timer->handle); /* cannot fail */
    timer->handle.data = timer;
    timer->loop = loop;
    timer->call = (struct callback){.fn = fn, .arg = arg};
    *ret_timer = timer;
    return IFD_OK;
}

void ifd_timer_start(struct ifd_timer *timer, uint64_t delay_ms, uint64_t repeat_ms)
{
    (void)uv_timer_start(&timer->handle, on_timer, delay_ms, repeat_ms);
}

void ifd_timer_stop(struct ifd_timer *timer)
{
    (void)uv_timer_stop(&timer->handle);
}

bool ifd_timer_is_active(const struct ifd_timer *timer)
{
    return uv_is_active((const uv_handle_t *)&timer->handle);
}

static void free_timer(uv_handle_t *handle)
{
    struct ifd_timer *timer = handle->data;
    ifd_release(timer->loop->alloc, timer, sizeof(*timer));
}

void ifd_timer_destroy(struct ifd_timer *timer)
{
    if (timer) {
        uv_close((uv_handle_t *)&timer->handle, free_timer);
    }
}

static void on_readable(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    call(&((struct ifd_watch *)handle->data)->call);
}

enum ifd_code ifd_watch_create(struct ifd_loop *loop, int fd, ifd_loop_fn fn, void *arg,
                               struct ifd_watch **ret_watch, struct ifd_err *err)
{
    struct ifd_watch *watch = ifd_acquire_zeroed(loop->alloc, 1, sizeof(*watch));
    if (!watch) {
        return ifd_fail(err, IFD_NOMEM, "no memory to watch a descriptor");
    }
    int failed = uv_poll_init(&loop->uv, &watch->handle, fd);
    if (failed) {
        ifd_release(loop->alloc, watch, sizeof(*watch));
        return ifd_fail(err, IFD_UNAVAILABLE, "cannot watch descriptor %d: %s", fd,
                        uv_strerror(failed));
    }
    watch->handle.data = watch;
    watch->loop = loop;
    watch->call = (struct callback){.fn = fn, .arg = arg};
    (void)uv_poll_start(&watch->handle, UV_READABLE, on_readable);
    *ret_watch = watch;
    return IFD_OK;
}

void ifd_watch_pause(struct ifd_watch *watch, bool is_paused)
{
    if (is_paused) {
        (void)uv_poll_stop(&watch->handle);
    } else {
        (void)uv_poll_start(&watch->handle, UV_READABLE, on_readable);
    }
}

static void free_watch(uv_handle_t *handle)
{
    struct ifd_watch *watch = handle->data;
    ifd_release(watch->loop->alloc, watch, sizeof(*watch));
}

void ifd_watch_destroy(struct ifd_watch *watch)
{
    if (watch) {
        (void)uv_poll_stop(&watch->handle);
        uv_close((uv_handle_t *)&watch->handle, free_watch);
    }
}

uint64_t ifd_loop_now_ms(const struct ifd_loop *loop)
{
    return uv_now(&loop->uv);
}

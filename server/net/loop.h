/** The event loop: one thread, sockets, timers, signals, and a wake-up from any other thread.
 *
 *  A thin layer over libuv, so that uv.h stays in this folder. All functions except ifd_loop_wake
 *  are called on the loop thread, and so are callbacks. Nothing here runs inference or touches
 *  files. */
#ifndef INFERD_SERVER_NET_LOOP_H
#define INFERD_SERVER_NET_LOOP_H

#include "inferd/alloc.h"
#include "inferd/status.h"

struct ifd_loop;
struct ifd_timer;
struct ifd_watch;

typedef void (*ifd_loop_fn)(void *arg);
typedef void (*ifd_signal_fn)(void *arg, int signal);

IFD_NODISCARD enum ifd_code ifd_loop_create(const struct ifd_alloc *alloc,
                                            struct ifd_loop **ret_loop, struct ifd_err *err);
/** All timers and watches must be destroyed. NULL is fine. */
void ifd_loop_destroy(struct ifd_loop *loop);

/** Runs until ifd_loop_stop. */
void ifd_loop_run(struct ifd_loop *loop);
void ifd_loop_stop(struct ifd_loop *loop);

/** Several wakes may cause one call, so the receiver handles everything that waits. */
void ifd_loop_on_wake(struct ifd_loop *loop, ifd_loop_fn fn, void *arg);
/** Thread: any. */
void ifd_loop_wake(void *loop);

/** Calls fn at at_ns (monotonic) or as soon as possible; timers below have whole milliseconds.
 *  There is one alarm: a further call replaces it, at_ns 0 cancels it. */
void ifd_loop_alarm(struct ifd_loop *loop, uint64_t at_ns, ifd_loop_fn fn, void *arg);
/** The loop does not sleep until until_ns (monotonic) and calls the receiver of wakes every turn.
 *  0: it may sleep. */
void ifd_loop_stay_awake(struct ifd_loop *loop, uint64_t until_ns);

/** Calls fn every time before the loop waits for events. At most one per loop. */
void ifd_loop_before_wait(struct ifd_loop *loop, ifd_loop_fn fn, void *arg);

/** At most IFD_LOOP_SIGNALS signals. */
#define IFD_LOOP_SIGNALS 4
IFD_NODISCARD enum ifd_code ifd_loop_on_signal(struct ifd_loop *loop, int signal, ifd_signal_fn fn,
                                               void *arg, struct ifd_err *err);

IFD_NODISCARD enum ifd_code ifd_timer_create(struct ifd_loop *loop, ifd_loop_fn fn, void *arg,
                                             struct ifd_timer **ret_timer, struct ifd_err *err);
/** repeat_ms 0: once. Starting a running timer restarts it. */
void ifd_timer_start(struct ifd_timer *timer, uint64_t delay_ms, uint64_t repeat_ms);
void ifd_timer_stop(struct ifd_timer *timer);
bool ifd_timer_is_active(const struct ifd_timer *timer);
void ifd_timer_destroy(struct ifd_timer *timer); /* NULL is fine */

/** Calls fn whenever fd is readable, until the watch is destroyed. The descriptor stays the
 *  caller's. */
IFD_NODISCARD enum ifd_code ifd_watch_create(struct ifd_loop *loop, int fd, ifd_loop_fn fn,
                                             void *arg, struct ifd_watch **ret_watch,
                                             struct ifd_err *err);
/** A paused watch does not call fn. */
void ifd_watch_pause(struct ifd_watch *watch, bool is_paused);
void ifd_watch_destroy(struct ifd_watch *watch); /* NULL is fine */

/** Milliseconds on the loop's clock at the start of this turn. */
uint64_t ifd_loop_now_ms(const struct ifd_loop *loop);

#endif

/* Life of the HTTP server: create, serve, drain, destroy. */
#include "server/net/http_impl.h"

#include <unistd.h>

static void run_needed(void *arg)
{
    struct ifd_http *http = arg;
    for (uint32_t i = 0; i < http->listener_count; i++) {
        if (http->listener[i].needs_run) {
            ifd_mhd_run(&http->listener[i]);
        }
    }
}

static void give_reserve(struct ifd_http *http)
{
    if (http->reserve_fd >= 0) {
        (void)close(http->reserve_fd);
    }
}

enum ifd_code ifd_http_create(const struct ifd_http_options *options, struct ifd_http **ret_http,
                              struct ifd_err *err)
{
    struct ifd_http *http = ifd_acquire_zeroed(options->alloc, 1, sizeof(*http));
    if (!http) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the HTTP server");
    }
    http->options = *options;
    http->now_ms = http->looked_ms = ifd_loop_now_ms(options->loop);
    http->reserve_fd = -1;
    ifd_accept_reserve(http);
    enum ifd_code code = ifd_timer_create(options->loop, ifd_http_sweep, http, &http->sweep, err);
    if (code) {
        give_reserve(http);
        ifd_release(options->alloc, http, sizeof(*http));
        return code;
    }
    ifd_loop_before_wait(options->loop, run_needed, http);
    *ret_http = http;
    return IFD_OK;
}

void ifd_http_change_limits(struct ifd_http *http, const struct ifd_http_options *options)
{
    http->options.max_connections = options->max_connections;
    http->options.max_connections_per_address = options->max_connections_per_address;
    http->options.header_timeout_secs = options->header_timeout_secs;
    http->options.receive_timeout_secs = options->receive_timeout_secs;
    http->options.send_timeout_secs = options->send_timeout_secs;
    http->options.min_receive_rate = options->min_receive_rate;
    http->options.min_send_rate = options->min_send_rate;
    http->options.idle_timeout_secs = options->idle_timeout_secs;
}

/* as: the listener's kind. */
static enum ifd_code serve(struct ifd_http *http, int fd, const struct ifd_listener *as,
                           struct ifd_err *err)
{
    if (http->listener_count == IFD_LISTENERS_MAX) {
        (void)close(fd);
        return ifd_fail(err, IFD_TOO_LARGE, "more than %d listening sockets", IFD_LISTENERS_MAX);
    }
    struct ifd_listener *l = &http->listener[http->listener_count++];
    *l = *as;
    l->fd = fd;
    enum ifd_code code = ifd_mhd_start(l, err);
    if (!code) {
        code = ifd_watch_create(http->options.loop, fd, ifd_accept_ready, l, &l->accepts, err);
    }
    return code ? code : ifd_timer_create(http->options.loop, ifd_accept_retry, l, &l->retry, err);
}

static void stop_accepting(struct ifd_listener *l)
{
    ifd_watch_destroy(l->accepts);
    ifd_timer_destroy(l->retry);
    l->accepts = NULL;
    l->retry = NULL;
    if (l->fd >= 0) {
        (void)close(l->fd);
    }
    l->fd = -1;
}

enum ifd_code ifd_http_serve(struct ifd_http *http, int fd, bool is_local_admin,
                             struct ifd_err *err)
{
    const struct ifd_listener as = {
        .http = http, .is_local_admin = is_local_admin, .metrics = http->options.metrics};
    return serve(http, fd, &as, err);
}

enum ifd_code ifd_http_serve_page(struct ifd_http *http, int fd, ifd_http_page_fn fn, void *arg,
                                  struct ifd_err *err)
{
    const struct ifd_listener as = {.http = http, .page = fn, .page_arg = arg};
    return serve(http, fd, &as, err);
}

/* A busy client learns with its next answer that it was the last; clients without a request are not
 * waited for. */
#define LAST_REQUESTS_MS 250

void ifd_http_check_idle(struct ifd_http *http)
{
    ifd_loop_fn on_idle = http->on_idle;
    if (on_idle && http->open_count == 0 &&
        (ifd_http_connection_count(http) == 0 ||
         ifd_http_now_ms(http) - http->drain_ms >= LAST_REQUESTS_MS)) {
        http->on_idle = NULL;
        on_idle(http->on_idle_arg);
    }
}

void ifd_http_drain(struct ifd_http *http, ifd_loop_fn on_idle, void *arg)
{
    http->is_draining = true;
    http->drain_ms = ifd_http_now_ms(http);
    for (uint32_t i = 0; i < http->listener_count; i++) {
        if (!http->listener[i].page) {
            ifd_accept_last(
                &http->listener[i]); /* connections that the system has accepted are served */
            stop_accepting(&http->listener[i]);
        }
    }
    run_needed(http); /* their requests may be in their sockets */
    http->on_idle = on_idle;
    http->on_idle_arg = arg;
    ifd_http_check_idle(http);
}

uint32_t ifd_http_connection_count(const struct ifd_http *http)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < http->listener_count; i++) {
        count += http->listener[i].page ? 0 : http->listener[i].connections;
    }
    return count;
}

uint32_t ifd_http_open_count(const struct ifd_http *http)
{
    return http->open_count;
}

uint32_t ifd_http_waiting_count(const struct ifd_http *http)
{
    return http->waiting_count;
}

void ifd_http_destroy(struct ifd_http *http)
{
    if (!http) {
        return;
    }
    http->on_idle = NULL;
    http->is_stopping = true;
    ifd_loop_before_wait(http->options.loop, NULL, NULL);
    run_needed(http);
    for (uint32_t i = 0; i < http->listener_count; i++) {
        stop_accepting(&http->listener[i]);
        ifd_mhd_stop(&http->listener[i]);
    }
    ifd_linger_sweep(http, true);
    give_reserve(http);
    ifd_timer_destroy(http->sweep);
    ifd_transfer_free_spare(http);
    ifd_release(http->options.alloc, http, sizeof(*http));
}

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

enum ifd_code ifd_http_create(const struct ifd_http_options *options, struct ifd_http **ret_http,
                              struct ifd_err *err)
{
    struct ifd_http *http = ifd_acquire_zeroed(options->alloc, 1, sizeof(*http));
    if (!http) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the HTTP server");
    }
    http->options = *options;
    enum ifd_code code = ifd_timer_create(options->loop, ifd_http_sweep, http, &http->sweep, err);
    if (code) {
        ifd_release(options->alloc, http, sizeof(*http));
        return code;
    }
    ifd_loop_before_wait(options->loop, run_needed, http);
    *ret_http = http;
    return IFD_OK;
}

/* as: what the listener is. */
static enum ifd_code serve(struct ifd_http *http, int fd, const struct ifd_listener *as,
                           struct ifd_err *err)
{
    if (http->listener_count == IFD_LISTENERS_MAX) {
        (void)close(fd);
        return ifd_fail(err, IFD_TOO_LARGE, "more than %d listening sockets", IFD_LISTENERS_MAX);
    }
    struct ifd_listener *l = &http->listener[http->listener_count];
    *l = *as;
    enum ifd_code code = ifd_mhd_start(l, fd, err);
    if (!code) {
        http->listener_count++;
    }
    return code;
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

void ifd_http_drain(struct ifd_http *http, ifd_loop_fn on_idle, void *arg)
{
    http->is_draining = true;
    for (uint32_t i = 0; i < http->listener_count; i++) {
        if (!http->listener[i].page) {
            ifd_mhd_quiesce(&http->listener[i]);
        }
    }
    if (http->open_count == 0) {
        on_idle(arg);
        return;
    }
    http->on_idle = on_idle;
    http->on_idle_arg = arg;
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
    ifd_loop_before_wait(http->options.loop, NULL, NULL);
    run_needed(http);
    for (uint32_t i = 0; i < http->listener_count; i++) {
        ifd_mhd_stop(&http->listener[i]);
    }
    ifd_timer_destroy(http->sweep);
    ifd_transfer_free_spare(http);
    ifd_release(http->options.alloc, http, sizeof(*http));
}

/* Reloads settings, tokens and access log. */
#include "server/ops/reread.h"

#include <unistd.h>

struct attempt {
    struct ifd_reread *reread;
    struct ifd_config next;
    struct ifd_tokens *tokens; /* new tokens; the old ones after the exchange */
    int log_fd;                /* of the access log; -1: none */
    enum ifd_code code;
    struct ifd_err err;
};

static void read_all(void *arg)
{
    struct attempt *attempt = arg;
    struct ifd_reread *reread = attempt->reread;
    attempt->code = ifd_config_parse(reread->argc, reread->argv, &attempt->next, &attempt->err);
    if (!attempt->code && reread->tokens) {
        attempt->code = ifd_tokens_read(reread->config->token_file, reread->alloc, &attempt->tokens,
                                        &attempt->err);
    }
    if (!attempt->code && reread->access_log) {
        attempt->code =
            ifd_access_log_open(reread->config->access_log, &attempt->log_fd, &attempt->err);
    }
}

static void tell_change(void *arg, const char *flag, bool is_live)
{
    const struct ifd_reread *reread = arg;
    if (is_live) {
        ifd_log_info(reread->log, "setting changed", "setting=%s", flag);
    } else {
        ifd_log_warn(reread->log, "setting needs a restart", "setting=%s", flag);
    }
}

/* Open requests were judged with the old tokens. */
static void exchange_tokens(struct ifd_reread *reread, struct attempt *attempt)
{
    struct ifd_tokens *old = *reread->tokens;
    *reread->tokens = attempt->tokens;
    attempt->tokens = old;
    ifd_log_info(reread->log, "tokens reloaded", "file=%s tokens=%u", reread->config->token_file,
                 ifd_tokens_count(*reread->tokens));
}

static void apply(struct ifd_reread *reread, struct attempt *attempt)
{
    const unsigned appliers =
        ifd_config_update(reread->config, &attempt->next, tell_change, reread);
    if (attempt->tokens) {
        exchange_tokens(reread, attempt);
    }
    if (attempt->log_fd >= 0) {
        ifd_access_log_reopen(reread->access_log, attempt->log_fd);
    }
    reread->applied(reread->context, appliers);
    ifd_log_info(reread->log, "settings reloaded", "file=%s",
                 reread->config->config_file[0] != '\0' ? reread->config->config_file : "-");
}

static void use(struct ifd_reread *reread, struct attempt *attempt)
{
    if (reread->is_over) {
        if (attempt->log_fd >= 0) {
            (void)close(attempt->log_fd);
        }
    } else if (attempt->code) {
        ifd_metric_add(reread->metrics, IFD_METRIC_REREADS, attempt->code, 1);
        ifd_log_error(reread->log, "settings reload failed", "reason=%s", attempt->err.text);
    } else {
        ifd_metric_add(reread->metrics, IFD_METRIC_REREADS, IFD_OK, 1);
        apply(reread, attempt);
    }
}

static void end(void *arg)
{
    struct attempt *attempt = arg;
    struct ifd_reread *reread = attempt->reread;
    use(reread, attempt);
    ifd_tokens_destroy(attempt->tokens);
    ifd_release(reread->alloc, attempt, sizeof(*attempt));
    reread->is_running = false;
    if (reread->is_over) {
        return;
    }
    if (reread->is_asked_again) {
        reread->is_asked_again = false;
        ifd_reread_begin(reread);
    } else {
        reread->ended(reread->context);
    }
}

void ifd_reread_begin(struct ifd_reread *reread)
{
    struct ifd_err err = {0};
    if (reread->is_running) {
        reread->is_asked_again = true;
        return;
    }
    struct attempt *attempt = ifd_acquire_zeroed(reread->alloc, 1, sizeof(*attempt));
    enum ifd_code code = IFD_NOMEM;
    if (attempt) {
        attempt->reread = reread;
        attempt->log_fd = -1;
        code = reread->run_off_loop(reread->context, read_all, end, attempt, &err);
    }
    if (code) {
        ifd_metric_add(reread->metrics, IFD_METRIC_REREADS, code, 1);
        ifd_log_error(reread->log, "settings reload failed", "reason=%s", ifd_code_name(code));
        ifd_release(reread->alloc, attempt, sizeof(*attempt));
        reread->ended(reread->context);
        return;
    }
    reread->is_running = true;
}

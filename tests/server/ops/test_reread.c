/* A reload of settings that cannot begin. */
#include "server/ops/reread.h"

#include "tests/support/test.h"

static int ended, errors;

static void hear(void *context, enum ifd_log_level level, const char *sentence, const char *fields)
{
    (void)context;
    (void)sentence;
    (void)fields;
    errors += level == IFD_LOG_ERROR;
}

static enum ifd_code refuse(void *context, void (*work)(void *arg), void (*done)(void *arg),
                            void *arg, struct ifd_err *err)
{
    (void)context;
    (void)work;
    (void)done;
    (void)arg;
    return ifd_fail(err, IFD_BUSY, "too much to do");
}

static void note_end(void *context)
{
    (void)context;
    ended++;
}

/* A service manager that was told RELOADING waits for READY. */
static void attempt_that_cannot_begin_ends_at_once(void)
{
    struct ifd_config config = {0};
    struct ifd_log log = {.levels = IFD_LOG_UP_TO(IFD_LOG_INFO), .write = hear};
    struct ifd_reread reread = {.alloc = ifd_alloc_system(),
                                .log = &log,
                                .config = &config,
                                .run_off_loop = refuse,
                                .ended = note_end};
    ifd_reread_begin(&reread);
    EXPECT_INT(ended, 1);
    EXPECT_INT(errors, 1);
    EXPECT(!reread.is_running);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(attempt_that_cannot_begin_ends_at_once),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

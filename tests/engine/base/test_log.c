#include "engine/base/log.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static char last[512];

static void sink(void *context, enum ifd_log_level level, const char *sentence, const char *fields)
{
    (void)context;
    (void)snprintf(last, sizeof(last), "%s: %s %s", ifd_log_level_name(level), sentence, fields);
}

static void levels_above_the_set_one_are_dropped(void)
{
    struct ifd_log log = {.levels = IFD_LOG_UP_TO(IFD_LOG_WARN), .write = sink};
    ifd_log_info(&log, "unseen", "a=%d", 1);
    EXPECT_TEXT(last, "");
    ifd_log_warn(&log, "queue full", "model=%s", "m");
    EXPECT_TEXT(last, "warn: queue full model=m");
    ifd_log_error(NULL, "nobody listens", "a=%d", 1);
    ifd_log_debug(&log, "unseen", "a=%d", 1);
    EXPECT_TEXT(last, "warn: queue full model=m");
}

static void quoting_escapes_and_cuts(void)
{
    char text[32];
    EXPECT_TEXT(ifd_log_quote("a \"b\"\n", text, sizeof(text)), "\"a \\\"b\\\"\\x0a\"");
    EXPECT_INT(strlen(ifd_log_quote("0123456789", text, 10)), 5);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(levels_above_the_set_one_are_dropped),
        T(quoting_escapes_and_cuts),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

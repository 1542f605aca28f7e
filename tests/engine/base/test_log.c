#include "engine/base/log.h"
#include "tests/support/test.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char last[2048];

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

static const char *fields_of(const char *value)
{
    const struct ifd_log log = {.levels = IFD_LOG_UP_TO(IFD_LOG_WARN), .write = sink};
    ifd_log_warn(&log, "x", "a=%s b=%d", value, 1);
    return last + strlen("warn: x ");
}

static void plain_values_stay_and_others_are_quoted(void)
{
    EXPECT_TEXT(fields_of("m\\1"), "a=\"m\\\\1\" b=1");
    EXPECT_TEXT(fields_of("m-1.0/~:,{"), "a=m-1.0/~:,{ b=1");
    EXPECT_TEXT(fields_of("two words"), "a=\"two words\" b=1");
    EXPECT_TEXT(fields_of(""), "a=\"\" b=1");
}

static void no_value_forges_a_field_or_a_line(void)
{
    EXPECT_TEXT(fields_of("x b=2"), "a=\"x b=2\" b=1");
    EXPECT_TEXT(fields_of("x\" b=\"2"), "a=\"x\\\" b=\\\"2\" b=1");
    EXPECT_TEXT(fields_of("x=2"), "a=\"x=2\" b=1");
    EXPECT_TEXT(fields_of("x\nerror forged\x1b[2J\xff"),
                "a=\"x\\u000aerror forged\\u001b[2J\\u00ff\" b=1");
}

static void numbers_of_every_listed_kind_are_written(void)
{
    const struct ifd_log log = {.levels = IFD_LOG_UP_TO(IFD_LOG_WARN), .write = sink};
    ifd_log_warn(&log, "x", "d=%d u=%u zu=%zu lld=%lld llu=%llu s=%s", -2147483647 - 1, 4294967295u,
                 SIZE_MAX, -9223372036854775807LL - 1, 18446744073709551615ULL, "end");
    EXPECT_HAS(last, "d=-2147483648 u=4294967295 zu=");
    EXPECT_HAS(last, " lld=-9223372036854775808 llu=18446744073709551615 s=end");
}

/* Wherever the end of the room falls: no half escape, no open quote, and nothing behind what was
 * cut. */
static void what_does_not_fit_is_cut_within_its_quotes(void)
{
    static char value[3000];
    for (size_t size = 900; size < 1100; size++) {
        for (int kind = 0; kind < 2; kind++) {
            memset(value, kind == 0 ? 'v' : '\n', sizeof(value));
            value[kind == 0 ? size : size / 6] = '\0';
            const char *fields = fields_of(value);
            const size_t end = strlen(fields);
            REQUIRE(end < IFD_LOG_FIELDS_BYTES);
            if (fields[2] == '"') {
                const char *quote = strchr(fields + 3, '"');
                REQUIRE(quote != NULL);
                EXPECT(kind == 0 || (quote - fields - 3) % 6 == 0);
                EXPECT(strncmp(quote, "\" b=1", strlen(quote)) == 0);
            } else {
                const char *rest = fields + 2 + strspn(fields + 2, "v");
                EXPECT_INT(rest - fields - 2, size); /* what is not quoted is whole */
                EXPECT(strncmp(rest, " b=1", strlen(rest)) == 0);
            }
        }
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(levels_above_the_set_one_are_dropped),       T(plain_values_stay_and_others_are_quoted),
        T(no_value_forges_a_field_or_a_line),          T(numbers_of_every_listed_kind_are_written),
        T(what_does_not_fit_is_cut_within_its_quotes),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* What the test frame makes of a case's end: a skip hides no failure, and is one where skips are
 * forbidden. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

#define NO_SKIPS "INFERD_TEST_NO_SKIPS"

static void passes(void)
{
}

static void fails(void)
{
    EXPECT(false);
}

static void skips(void)
{
    test_skip("a file is absent");
}

static void does_not_apply(void)
{
    test_does_not_apply("another processor");
}

static void skips_after_a_failure(void)
{
    EXPECT(false);
    test_skip("a file is absent");
}

static void does_not_apply_after_a_failure(void)
{
    EXPECT(false);
    test_does_not_apply("another processor");
}

static void lacks_a_shared_file(void)
{
    (void)test_shared("no such file");
}

/* Exit status of a process that runs these cases and no others, its words unheard. */
static int status_of(void (*first)(void), void (*second)(void), const char *no_skips)
{
    const struct test_case cases[] = {{"first", first}, {"second", second}};
    (void)fflush(NULL);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        char *argv[] = {"frame", NULL};
        const bool is_quiet =
            freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr);
        const int set = no_skips ? setenv(NO_SKIPS, no_skips, 1) : unsetenv(NO_SKIPS);
        exit(is_quiet && set == 0 ? test_main(1, argv, cases, 2) : 3);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void failures_and_skips_have_their_exit_status(void)
{
    EXPECT_INT(status_of(passes, passes, NULL), 0);
    EXPECT_INT(status_of(fails, passes, NULL), 1);
    EXPECT_INT(status_of(passes, skips, NULL), 77);
    EXPECT_INT(status_of(passes, does_not_apply, NULL), 77);
    EXPECT_INT(status_of(passes, lacks_a_shared_file, NULL), 77);
}

static void skip_hides_no_failure_before_it(void)
{
    EXPECT_INT(status_of(fails, skips, NULL), 1);
    EXPECT_INT(status_of(fails, does_not_apply, NULL), 1);
    EXPECT_INT(status_of(skips_after_a_failure, passes, NULL), 1);
    EXPECT_INT(status_of(does_not_apply_after_a_failure, passes, NULL), 1);
}

static void skip_for_want_of_something_fails_where_skips_are_forbidden(void)
{
    EXPECT_INT(status_of(passes, skips, "1"), 1);
    EXPECT_INT(status_of(passes, lacks_a_shared_file, "1"), 1);
    EXPECT_INT(status_of(passes, does_not_apply, "1"), 77);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(failures_and_skips_have_their_exit_status),
        T(skip_hides_no_failure_before_it),
        T(skip_for_want_of_something_fails_where_skips_are_forbidden),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

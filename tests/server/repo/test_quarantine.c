/* Contents that end the process: each load runs in its own process. */
#include "server/repo/quarantine.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

#define DIGEST UINT64_C(0xfeed)
#define NAME   "load-000000000000feed"

static char dir[64], path[128];

static void begin(void)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/ifd_quarantine_XXXXXX");
    REQUIRE(mkdtemp(dir) != NULL);
    REQUIRE(rmdir(dir) == 0); /* made by each test that needs it */
    (void)snprintf(path, sizeof(path), "%s/" NAME, dir);
}

static void end(void)
{
    (void)unlink(path);
    EXPECT(rmdir(dir) == 0);
}

static struct ifd_quarantine *open_it(void)
{
    struct ifd_quarantine *quarantine = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_quarantine_open(dir, ifd_alloc_system(), NULL, &quarantine, &err), &err);
    return quarantine;
}

/* A process that ends in the middle of a load; told to, or not. */
static void die_in_load(bool is_told)
{
    int status = 0;
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        struct ifd_quarantine *quarantine = open_it();
        const enum ifd_code code = ifd_quarantine_enter(quarantine, DIGEST, true, NULL);
        if (is_told) {
            ifd_quarantine_absolve(quarantine);
        }
        _exit(code == IFD_OK ? 0 : 1);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    EXPECT_INT(status, 0);
}

/* A load that ends: CORRUPT if it is refused. */
static enum ifd_code load(bool is_asked, struct ifd_err *err)
{
    struct ifd_quarantine *quarantine = open_it();
    const enum ifd_code code = ifd_quarantine_enter(quarantine, DIGEST, is_asked, err);
    if (!code) {
        EXPECT(access(path, F_OK) == 0);
        ifd_quarantine_leave(quarantine);
        EXPECT(access(path, F_OK) != 0);
    }
    ifd_quarantine_close(quarantine);
    return code;
}

static void content_is_refused_after_three_deaths_until_it_is_asked_for(void)
{
    struct ifd_err err = {0};
    begin();
    for (int deaths = 1; deaths <= 3; deaths++) {
        die_in_load(false);
    }
    EXPECT_CODE(load(false, &err), IFD_CORRUPT, &err);
    EXPECT_TEXT(err.text,
                "3 loads of this content ended the process; it is tried again when \"" NAME
                "\" is removed from --state-dir");
    struct ifd_quarantine *quarantine = open_it();
    REQUIRE_OK(ifd_quarantine_enter(quarantine, DIGEST + 1, false, &err), &err); /* another */
    ifd_quarantine_leave(quarantine);
    ifd_quarantine_close(quarantine);
    EXPECT_CODE(load(true, &err), IFD_OK, &err);
    EXPECT_CODE(load(false, &err), IFD_OK, &err); /* the process survived it */
    end();
}

static void load_that_ends_clears_what_was_before(void)
{
    struct ifd_err err = {0};
    begin();
    for (int round = 0; round < 3; round++) {
        die_in_load(false);
        die_in_load(false);
        EXPECT_CODE(load(false, &err), IFD_OK, &err);
    }
    end();
}

static void end_that_was_told_does_not_count(void)
{
    struct ifd_err err = {0};
    begin();
    for (int round = 0; round < 5; round++) {
        die_in_load(true);
        EXPECT(access(path, F_OK) != 0);
    }
    die_in_load(false);
    die_in_load(false);
    die_in_load(true);
    EXPECT_CODE(load(false, &err), IFD_OK, &err);
    end();
}

static void file_without_a_number_is_one_death(void)
{
    struct ifd_err err = {0};
    begin();
    REQUIRE(mkdir(dir, 0700) == 0);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && close(fd) == 0);
    die_in_load(false);
    EXPECT_CODE(load(false, &err), IFD_OK, &err);
    REQUIRE(symlink("/dev/zero", path) == 0);
    struct ifd_quarantine *quarantine = open_it();
    EXPECT_CODE(ifd_quarantine_enter(quarantine, DIGEST, false, &err), IFD_OK, &err);
    ifd_quarantine_leave(quarantine);
    ifd_quarantine_close(quarantine);
    end();
}

static void folder_that_went_away_stops_no_load(void)
{
    struct ifd_err err = {0};
    begin();
    struct ifd_quarantine *quarantine = open_it();
    REQUIRE(rmdir(dir) == 0);
    EXPECT_CODE(ifd_quarantine_enter(quarantine, DIGEST, false, &err), IFD_OK, &err);
    ifd_quarantine_leave(quarantine);
    ifd_quarantine_absolve(quarantine);
    ifd_quarantine_close(quarantine);
    REQUIRE(mkdir(dir, 0700) == 0);
    end();
}

static void folder_that_cannot_be_is_an_error(void)
{
    struct ifd_quarantine *quarantine = NULL;
    struct ifd_err err = {0};
    EXPECT_CODE(ifd_quarantine_open("/nowhere/at/all", ifd_alloc_system(), NULL, &quarantine, &err),
                IFD_NOT_FOUND, &err);
    EXPECT(quarantine == NULL);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(content_is_refused_after_three_deaths_until_it_is_asked_for),
        T(load_that_ends_clears_what_was_before),
        T(end_that_was_told_does_not_count),
        T(file_without_a_number_is_one_death),
        T(folder_that_went_away_stops_no_load),
        T(folder_that_cannot_be_is_an_error),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

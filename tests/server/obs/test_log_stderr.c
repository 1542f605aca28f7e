/* Lines of the program's log, read back from a pipe. */
#include "server/obs/log_stderr.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/test.h"

static char line[16384];

static const char *written(enum ifd_log_format format, const char *value)
{
    int fd[2];
    REQUIRE(pipe(fd) == 0);
    const struct ifd_log log = ifd_log_to_fd(fd[1], format, IFD_LOG_UP_TO(IFD_LOG_WARN));
    ifd_log_info(&log, "not written", "a=1");
    ifd_log_warn(&log, "model \"odd\"", "name=%s version=%d reason=%s", "m-1.0", -7, value);
    ssize_t size = read(fd[0], line, sizeof(line) - 1);
    REQUIRE(size > 0);
    line[size] = '\0';
    (void)close(fd[0]);
    (void)close(fd[1]);
    return line;
}

static void text_has_time_level_sentence_and_fields(void)
{
    const char *text = written(IFD_LOG_TEXT, "a b");
    EXPECT_INT(text[4], '-');
    EXPECT_TEXT(text + 23, "Z warn model \"odd\" name=m-1.0 version=-7 reason=\"a b\"\n");
}

static void journal_gets_the_level_as_a_priority(void)
{
    EXPECT_TEXT(written(IFD_LOG_JOURNAL, "a b"),
                "<4>model \"odd\" name=m-1.0 version=-7 reason=\"a b\"\n");
}

static void json_is_one_object_with_the_values_as_they_were(void)
{
    static const char odd[] = "say \"no\" \\ \x01\n\xc3\xa9 =,{";
    json_error_t error;
    json_t *root = json_loads(written(IFD_LOG_JSON, odd), 0, &error);
    REQUIRE(root != NULL);
    EXPECT_INT(strchr(line, '\n') - line, (long)strlen(line) - 1);
    EXPECT_INT(json_object_size(root), 6);
    EXPECT_TEXT(json_string_value(json_object_get(root, "level")), "warn");
    EXPECT_TEXT(json_string_value(json_object_get(root, "event")), "model \"odd\"");
    EXPECT_TEXT(json_string_value(json_object_get(root, "name")), "m-1.0");
    EXPECT_INT(json_integer_value(json_object_get(root, "version")), -7);
    EXPECT_TEXT(json_string_value(json_object_get(root, "reason")), odd);
    json_decref(root);
}

static const char hostile[] = "m\" level=error\nforged\x1b[2J\xc2\x9b\x7f\xff";

static void hostile_values_stay_one_value_in_text(void)
{
    static const char want[] =
        "warn model \"odd\" name=m-1.0 version=-7 reason="
        "\"m\\\" level=error\\u000aforged\\u001b[2J\\u009b\\u007f\\u00ff\"\n";
    EXPECT_TEXT(written(IFD_LOG_TEXT, hostile) + 25, want);
    EXPECT_TEXT(written(IFD_LOG_JOURNAL, hostile) + 3, want + 5);
}

static void hostile_values_stay_one_value_in_json(void)
{
    json_t *root = json_loads(written(IFD_LOG_JSON, hostile), JSON_REJECT_DUPLICATES, NULL);
    REQUIRE(root != NULL);
    EXPECT_INT(json_object_size(root), 6);
    EXPECT_TEXT(json_string_value(json_object_get(root, "level")), "warn");
    EXPECT_TEXT(json_string_value(json_object_get(root, "reason")),
                "m\" level=error\nforged\x1b[2J\xc2\x9b\x7f\xc3\xbf");
    json_decref(root);
    EXPECT(strchr(line, '\x1b') == NULL && strchr(line, '\x7f') == NULL);
}

/* Cut within a character, an escape or a value, a line is still one object. */
static void json_survives_values_of_any_bytes_and_any_length(void)
{
    struct test_random random = {.state = 7};
    for (int round = 0; round < 2000; round++) {
        char value[2000];
        size_t size = (size_t)test_random_int(&random, 0, sizeof(value) - 1);
        int fd[2];
        for (size_t i = 0; i < size; i++) {
            value[i] = (char)test_random_int(&random, 1, 255);
        }
        value[size] = '\0';
        REQUIRE(pipe(fd) == 0);
        const struct ifd_log log = ifd_log_to_fd(fd[1], IFD_LOG_JSON, ~0u);
        ifd_log_error(&log, "any", "a=%s b=%s", value, value);
        ssize_t got = read(fd[0], line, sizeof(line) - 1);
        REQUIRE(got > 0);
        line[got] = '\0';
        json_error_t error;
        json_t *root = json_loads(line, JSON_ALLOW_NUL, &error);
        if (!root) {
            (void)printf("%s in %s", error.text, line);
        }
        REQUIRE(root != NULL);
        json_decref(root);
        (void)close(fd[0]);
        (void)close(fd[1]);
    }
}

/* A pager that shows its first page reads no more: the server continues and those lines are
 * lost. */
static void reader_that_stopped_holds_up_nobody(void)
{
    static char block[4096];
    int fd[2];
    ssize_t size = 0;
    REQUIRE(pipe(fd) == 0);
    const struct ifd_log log = ifd_log_to_fd(fd[1], IFD_LOG_JOURNAL, IFD_LOG_UP_TO(IFD_LOG_WARN));
    REQUIRE(fcntl(fd[1], F_SETFL, O_NONBLOCK) == 0);
    while (write(fd[1], block, sizeof(block)) > 0) {
    }
    REQUIRE(fcntl(fd[1], F_SETFL, 0) == 0 && fcntl(fd[0], F_SETFL, O_NONBLOCK) == 0);
    ifd_log_warn(&log, "lost", NULL); /* would wait for ever */
    while ((size = read(fd[0], line, sizeof(line))) > 0) {
        EXPECT(memchr(line, 'l', (size_t)size) == NULL);
    }
    ifd_log_warn(&log, "kept", NULL);
    size = read(fd[0], line, sizeof(line) - 1);
    REQUIRE(size > 0);
    line[size] = '\0';
    EXPECT_TEXT(line, "<4>kept\n");
    (void)close(fd[0]);
    (void)close(fd[1]);
}

static void journal_is_recognised_by_device_and_inode(void)
{
    struct stat info;
    char stream[64];
    REQUIRE(fstat(STDERR_FILENO, &info) == 0);
    (void)snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)info.st_dev,
                   (uintmax_t)info.st_ino);
    EXPECT(ifd_log_is_journal(STDERR_FILENO, stream));
    EXPECT(!ifd_log_is_journal(STDERR_FILENO, "1:2"));
    EXPECT(!ifd_log_is_journal(STDERR_FILENO, NULL));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(text_has_time_level_sentence_and_fields),
        T(journal_gets_the_level_as_a_priority),
        T(json_is_one_object_with_the_values_as_they_were),
        T(hostile_values_stay_one_value_in_text),
        T(hostile_values_stay_one_value_in_json),
        T(json_survives_values_of_any_bytes_and_any_length),
        T(reader_that_stopped_holds_up_nobody),
        T(journal_is_recognised_by_device_and_inode),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

#include "server/config/config.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct ifd_config config;

static enum ifd_code parse(const char *const *argv, struct ifd_err *err)
{
    int argc = 0;
    while (argv[argc]) {
        argc++;
    }
    return ifd_config_parse(argc, (char **)(uintptr_t)argv, &config, err);
}

#define PARSE(err, ...) parse((const char *const[]){__VA_ARGS__, NULL}, err)

static void defaults_are_those_of_the_table(void)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_config_parse(0, NULL, &config, &err), &err);
    EXPECT_INT(config.http_port, 8000);
    EXPECT_TEXT(config.http_address, "127.0.0.1");
    EXPECT_TEXT(config.id, "inferd");
    EXPECT_INT(config.repositories.count, 0);
    EXPECT(config.strict_readiness);
    EXPECT(!config.exit_on_error);
    EXPECT_INT(config.http_max_input_size, 64 << 20);
    EXPECT_INT(config.exit_timeout_secs, 30);
}

static void values_come_behind_the_flag_or_the_equals_sign(void)
{
    struct ifd_err err = {0};
    REQUIRE_OK(PARSE(&err, "--http-port", "0", "--id=triton", "--http-address", "::"), &err);
    EXPECT_INT(config.http_port, 0);
    EXPECT_TEXT(config.id, "triton");
    EXPECT_TEXT(config.http_address, "::");
}

static void bare_folder_is_a_repository(void)
{
    struct ifd_err err = {0};
    REQUIRE_OK(PARSE(&err, "models", "--model-repository=a", "--model-repository", "b"), &err);
    EXPECT_INT(config.repositories.count, 3);
    EXPECT_TEXT(config.repositories.item[0], "models");
    EXPECT_TEXT(config.repositories.item[1], "a");
    EXPECT_TEXT(config.repositories.item[2], "b");
}

static void lists_are_cut_at_commas(void)
{
    struct ifd_err err = {0};
    REQUIRE_OK(PARSE(&err, "--backend=CpuAcc, CpuRef"), &err);
    EXPECT_INT(config.backends.count, 2);
    EXPECT_TEXT(config.backends.item[0], "CpuAcc");
    EXPECT_TEXT(config.backends.item[1], "CpuRef");
}

static void bare_bool_is_true_and_takes_no_folder(void)
{
    struct ifd_err err = {0};
    REQUIRE_OK(PARSE(&err, "--exact", "models", "--strict-readiness", "false"), &err);
    EXPECT(config.exact);
    EXPECT(!config.strict_readiness);
    EXPECT_TEXT(config.repositories.item[0], "models");
}

static void unknown_flag_names_the_nearest(void)
{
    struct ifd_err err = {0};
    EXPECT_INT(PARSE(&err, "--model-repositry=x"), IFD_INVALID);
    EXPECT_HAS(err.text, "--model-repositry");
    EXPECT_HAS(err.text, "did you mean \"--model-repository\"");
    EXPECT_INT(PARSE(&err, "--port", "1"), IFD_INVALID);
    EXPECT_HAS(err.text, "--http-port");
    EXPECT_INT(PARSE(&err, "--frobnicate=1"), IFD_INVALID);
    EXPECT_HAS(err.text, "unknown option \"--frobnicate=1\"; inferd serve --help lists them");
    EXPECT_INT(PARSE(&err, "-p"), IFD_INVALID);
}

static void values_out_of_range_are_refused_with_the_range(void)
{
    struct ifd_err err = {0};
    EXPECT_INT(PARSE(&err, "--http-port=65536"), IFD_INVALID);
    EXPECT_HAS(err.text, "between 0 and 65535");
    EXPECT_INT(PARSE(&err, "--http-port=-1"), IFD_INVALID);
    EXPECT_INT(PARSE(&err, "--http-port="), IFD_INVALID);
    EXPECT_INT(PARSE(&err, "--http-port"), IFD_INVALID);
    EXPECT_HAS(err.text, "needs a value");
    EXPECT_INT(PARSE(&err, "--exact=maybe"), IFD_INVALID);
    EXPECT_INT(PARSE(&err, "--model-control-mode=sometimes"), IFD_INVALID);
    EXPECT_HAS(err.text, "none|explicit");
}

static void too_many_list_values_are_refused(void)
{
    struct ifd_err err = {0};
    const char *argv[IFD_CONFIG_LIST_MAX + 2] = {0};
    for (int i = 0; i < IFD_CONFIG_LIST_MAX + 1; i++) {
        argv[i] = "models";
    }
    EXPECT_INT(parse(argv, &err), IFD_TOO_LARGE);
}

/* Every flag in the help must be accepted by the parser. */
static void help_and_manual_show_every_setting(void)
{
    static char text[1 << 16];
    FILE *out = fmemopen(text, sizeof(text), "w");
    REQUIRE(out != NULL);
    ifd_config_help(out);
    (void)fclose(out);
    EXPECT_HAS(text, "--model-repository=DIR");
    EXPECT_HAS(text, "--http-port=PORT (default 8000)");
    EXPECT_HAS(text, "--strict-readiness=BOOL (default true)");
    int flags = 0;
    for (const char *at = strstr(text, "  --"); at; at = strstr(at + 1, "\n  --")) {
        flags++;
    }
    EXPECT(flags > 15);
    out = fmemopen(text, sizeof(text), "w");
    REQUIRE(out != NULL);
    ifd_config_man(out);
    (void)fclose(out);
    EXPECT_HAS(text, ".TH INFERD 1");
    EXPECT_HAS(text, "\\-\\-exit\\-timeout\\-secs");
}

static void settings_are_printed_for_files_and_shells(void)
{
    static const struct {
        void (*print)(FILE *out);
        const char *has;
    } rows[] = {
        {ifd_config_man_file, ".TP\n\\fBhttp\\-port\\fR=\\fIPORT\\fR (default 8000)\n"},
        {ifd_config_markdown, "| `http-port` | PORT, 0 to 65535 | `8000` | | "},
        {ifd_config_markdown, "| `log-format` | `text`, `json` | `text` | | "},
        {ifd_config_markdown, "| `http-idle-timeout-secs` | SECONDS, 1 to 86400 | `75` | live | "},
        {ifd_config_bash, "--log-format) COMPREPLY=($(compgen -W 'text json' -- \"$cur\"))"},
        {ifd_config_zsh, "'--admin-socket=[UNIX socket, for this user only, that also"},
        {ifd_config_zsh, "]:FORMAT:(text json)' \\\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static char text[1 << 16];
        FILE *out = fmemopen(text, sizeof(text), "w");
        REQUIRE(out != NULL);
        rows[i].print(out);
        (void)fclose(out);
        EXPECT_HAS(text, rows[i].has);
    }
}

static const char *write_file(const char *text)
{
    static char path[] = "/tmp/ifd_config_XXXXXX";
    memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    REQUIRE(fd >= 0);
    REQUIRE(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    REQUIRE(close(fd) == 0);
    return path;
}

static void file_has_the_same_names_and_the_command_line_wins(void)
{
    struct ifd_err err = {0};
    const char *path =
        write_file("\xef\xbb\xbf# inferd\n\n  id = left  \nhttp-port 81\nmodel-repository=a\n"
                   "exact\nstrict-readiness false\nmodel-repository = b # c\r\n");
    REQUIRE_OK(PARSE(&err, "--id=right", "--config", path, "d"), &err);
    EXPECT_TEXT(config.id, "right");
    EXPECT_INT(config.http_port, 81);
    EXPECT(config.exact);
    EXPECT(!config.strict_readiness);
    EXPECT_INT(config.repositories.count, 3);
    EXPECT_TEXT(config.repositories.item[1], "b # c"); /* a comment is a line */
    EXPECT_TEXT(config.repositories.item[2], "d");
    EXPECT_TEXT(config.config_file, path);
    EXPECT(unlink(path) == 0);
}

static void what_is_wrong_in_the_file_is_said_with_its_line(void)
{
    static const struct {
        const char *text, *what;
    } wrong[] = {
        {"\nhttp-prt=1\n", ":2: unknown option \"--http-prt\"; did you mean \"--http-port\"?"},
        {"http-port = many", ":1: --http-port: \"many\" is not a number"},
        {"exact = perhaps", ":1: --exact: \"perhaps\" is neither"},
        {"id=a\n\n\nconfig=other", ":4: a file cannot name another one"},
        {"= 3", ":1: unknown option"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct ifd_err err = {0};
        const char *path = write_file(wrong[i].text);
        EXPECT_CODE(PARSE(&err, "--config", path), IFD_INVALID, &err);
        EXPECT_HAS(err.text, wrong[i].what);
        EXPECT(unlink(path) == 0);
        EXPECT_CODE(PARSE(&err, "--config", path), IFD_IO, &err);
    }
    struct ifd_err err = {0};
    EXPECT_CODE(PARSE(&err, "--config"), IFD_INVALID, &err);
    static char big[IFD_CONFIG_FILE_BYTES + 1];
    memset(big, '\n', sizeof(big) - 1);
    const char *path = write_file(big);
    EXPECT_CODE(PARSE(&err, "--config", path), IFD_TOO_LARGE, &err);
    EXPECT(unlink(path) == 0);
}

static void file_of_the_package_is_right(void)
{
    struct ifd_err err = {0};
    REQUIRE_OK(PARSE(&err, "--config", test_source("deploy/systemd/inferd.conf")), &err);
    EXPECT_INT(config.repositories.count, 1);
    EXPECT_INT(config.control_mode, IFD_CONTROL_POLL);
}

static char live_flags[200], fixed_flags[200];

static void note_change(void *arg, const char *flag, bool is_live)
{
    char *list = is_live ? live_flags : fixed_flags;
    (void)arg;
    (void)snprintf(list + strlen(list), sizeof(live_flags) - strlen(list), "%s ", flag);
}

static void update_changes_live_settings_and_names_the_others(void)
{
    static struct ifd_config next;
    struct ifd_err err = {0};
    static const char *const flags[] = {"--log-verbose=1",       "--http-port=9",
                                        "--exit-timeout-secs=4", "--strict-readiness=false",
                                        "--backend=CpuRef",      "--access-log=a"};
    REQUIRE_OK(PARSE(&err, "--http-port=8", "--exit-timeout-secs=4", "--access-log=a"), &err);
    REQUIRE_OK(ifd_config_parse(6, (char **)(uintptr_t)flags, &next, &err), &err);
    EXPECT_INT(ifd_config_update(&config, &next, note_change, NULL),
               1u << IFD_APPLIER_USE | 1u << IFD_APPLIER_LOG);
    EXPECT_TEXT(live_flags, "strict-readiness log-verbose ");
    EXPECT_TEXT(fixed_flags, "backend http-port ");
    EXPECT_INT(config.log_verbose, 1);
    EXPECT(!config.strict_readiness);
    EXPECT_INT(config.http_port, 8);
    EXPECT_INT(config.backends.count, 0);
    EXPECT_INT(ifd_config_update(&config, &config, note_change, NULL), 0);
}

static void choices_are_their_enums_and_others_are_refused_with_the_words(void)
{
    struct ifd_err err = {0};
    REQUIRE_OK(PARSE(&err, "models"), &err);
    EXPECT_INT(config.control_mode, IFD_CONTROL_NONE);
    EXPECT_INT(config.precision, IFD_PRECISION_F32);
    EXPECT_INT(config.performance_hint, IFD_HINT_LATENCY);
    EXPECT_INT(config.log_format, IFD_LINES_TEXT);
    REQUIRE_OK(PARSE(&err, "--model-control-mode=explicit", "--precision=fp16",
                     "--performance-hint=throughput", "--access-log-format=json"),
               &err);
    EXPECT_INT(config.control_mode, IFD_CONTROL_EXPLICIT);
    EXPECT_INT(config.precision, IFD_PRECISION_FP16);
    EXPECT_INT(config.performance_hint, IFD_HINT_THROUGHPUT);
    EXPECT_INT(config.access_log_format, IFD_LINES_JSON);
    EXPECT_INT(config.log_format, IFD_LINES_TEXT);
    EXPECT_CODE(PARSE(&err, "--model-control-mode=expl"), IFD_INVALID, &err);
    EXPECT_TEXT(err.text, "--model-control-mode: \"expl\" is none of none|explicit|poll");
}

static void environment_is_that_of_a_service_manager(void)
{
    char pid[24];
    REQUIRE(setenv("NOTIFY_SOCKET", "/run/n", 1) == 0 &&
            setenv("WATCHDOG_USEC", "5000000", 1) == 0);
    REQUIRE(unsetenv("WATCHDOG_PID") == 0);
    EXPECT_TEXT(ifd_config_environment().notify_socket, "/run/n");
    EXPECT_INT(ifd_config_environment().watchdog_us, 5000000);
    (void)snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    REQUIRE(setenv("WATCHDOG_PID", pid, 1) == 0);
    EXPECT_INT(ifd_config_environment().watchdog_us, 5000000);
    REQUIRE(setenv("WATCHDOG_PID", "1", 1) == 0); /* meant for another process */
    EXPECT_INT(ifd_config_environment().watchdog_us, 0);
    REQUIRE(unsetenv("WATCHDOG_PID") == 0 && setenv("WATCHDOG_USEC", "-5", 1) == 0);
    EXPECT_INT(ifd_config_environment().watchdog_us, 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(defaults_are_those_of_the_table),
        T(values_come_behind_the_flag_or_the_equals_sign),
        T(bare_folder_is_a_repository),
        T(lists_are_cut_at_commas),
        T(bare_bool_is_true_and_takes_no_folder),
        T(unknown_flag_names_the_nearest),
        T(values_out_of_range_are_refused_with_the_range),
        T(too_many_list_values_are_refused),
        T(help_and_manual_show_every_setting),
        T(settings_are_printed_for_files_and_shells),
        T(file_has_the_same_names_and_the_command_line_wins),
        T(what_is_wrong_in_the_file_is_said_with_its_line),
        T(file_of_the_package_is_right),
        T(update_changes_live_settings_and_names_the_others),
        T(choices_are_their_enums_and_others_are_refused_with_the_words),
        T(environment_is_that_of_a_service_manager),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

#include "server/config.h"
#include "tests/support/test.h"

#include <string.h>

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

/* Every flag that the help shows must be one that the parser takes. */
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
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

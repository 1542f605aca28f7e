/* Good and bad lines, the file, and the verdict for token, class and model. */
#include "server/auth/tokens.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/str.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

/* sha256sum of "data-token" and "all-token". */
#define DATA "17413446c86d23ac699051a000aefb38232952d793ddb1f6256e451e4215a3e6"
#define ALL  "9b55a7eb696557361a993bb4f81103b3cf34ade2d81e5888bd1a97ed6993d7fe"
#define LINE "cam data sha256:" DATA "\n"

static enum ifd_code parse(const char *text, struct ifd_tokens **ret, struct ifd_err *err)
{
    *ret = NULL;
    return ifd_tokens_parse(ifd_str(text), ifd_alloc_system(), ret, err);
}

static enum ifd_verdict judge(const struct ifd_tokens *tokens, const char *authorization,
                              enum ifd_access_class access, const char *model)
{
    struct ifd_str caller = {0};
    return ifd_tokens_judge(tokens, ifd_str(authorization), access, ifd_str(model), &caller);
}

static void good_lines_are_read(void)
{
    static const struct {
        const char *text;
        uint32_t count;
    } rows[] = {
        {"cam data sha256:" DATA, 1},
        {LINE, 1},
        {"\t cam \tdata  sha256:" DATA "\t\n\n \n", 1},
        {"# a comment\r\n\r\ncam data sha256:" DATA "\r\n  # another sha256:\r\n", 1},
        {"cam data,observe,admin sha256:" DATA " models=a\n", 1},
        {"cam data,data sha256:" DATA " models=*,?,a.b_c-d+E9*\n", 1},
        {"cam data sha256:" DATA " models=a,z,A,Z,0,9\n", 1},
        {"cam data sha256:" DATA "\ncam admin sha256:" ALL "\n", 2}, /* a name in rotation */
        {"a2345678901234567890123456789.-+ data sha256:" DATA "\n", 1},
        {"cam data sha256:"
         "17413446C86D23AC699051A000AEFB38232952D793DDB1F6256E451E4215A3E6\n",
         1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ifd_tokens *tokens = NULL;
        struct ifd_err err = {0};
        REQUIRE_OK(parse(rows[i].text, &tokens, &err), &err);
        EXPECT_INT(ifd_tokens_count(tokens), rows[i].count);
        EXPECT_INT(judge(tokens, "Bearer data-token", IFD_ACCESS_DATA, "a"), IFD_VERDICT_GRANTED);
        ifd_tokens_destroy(tokens);
    }
}

static void bad_lines_are_refused_by_number_and_not_repeated(void)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "it holds no token"},
        {"# only words\n\n", "it holds no token"},
        {"secret\n", "line 1: not \"NAME CLASS"},
        {LINE "secret data\n", "line 2: not \"NAME CLASS"},
        {"cam data sha256:" DATA " models=a secret\n", "line 1: not \"NAME CLASS"},
        {".secret data sha256:" DATA "\n", "line 1: the name"},
        {"sec/ret data sha256:" DATA "\n", "line 1: the name"},
        {"secret78901234567890123456789012x data sha256:" DATA "\n", "line 1: the name"},
        {"cam secret sha256:" DATA "\n", "line 1: a class"},
        {"cam Data sha256:" DATA "\n", "line 1: a class"},
        {"cam data, sha256:" DATA "\n", "line 1: a class"},
        {"cam ,data sha256:" DATA "\n", "line 1: a class"},
        {"cam open sha256:" DATA "\n", "line 1: a class"},
        {"cam data secret\n", "line 1: the third word"},
        {"cam data sha256:secret\n", "line 1: the third word"},
        {"cam data sha256:" DATA "0\n", "line 1: the third word"},
        {"cam data sha512:" DATA "\n", "line 1: the third word"},
        {"cam data " DATA "\n", "line 1: the third word"},
        {"cam data sha256:g7413446c86d23ac699051a000aefb38232952d793ddb1f6256e451e4215a3e6\n",
         "line 1: the third word"},
        {"cam data sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n",
         "line 1: this is the sum of an empty file"},
        {"cam data sha256:" DATA " secret\n", "line 1: the fourth word"},
        {"cam data sha256:" DATA " models=\n", "line 1: the fourth word"},
        {"cam data sha256:" DATA " models=a,,b\n", "line 1: the fourth word"},
        {"cam data sha256:" DATA " models=a/secret\n", "line 1: the fourth word"},
        {"cam data sha256:" DATA " models=[secret]\n", "line 1: the fourth word"},
        {LINE "\n#\nbox admin sha256:" DATA "\n", "line 4: the same token as in line 1"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ifd_tokens *tokens = NULL;
        struct ifd_err err = {0};
        EXPECT_CODE(parse(rows[i].text, &tokens, &err), IFD_INVALID, &err);
        EXPECT_HAS(err.text, rows[i].why);
        EXPECT(!strstr(err.text, "secret") && !strstr(err.text, "1741"));
        EXPECT(!tokens);
    }
}

static void nul_is_no_part_of_a_line(void)
{
    static const char text[] = "cam data sha256:" DATA " models=a\0b\n";
    struct ifd_tokens *tokens = NULL;
    struct ifd_err err = {0};
    const struct ifd_str view = {.data = text, .size = sizeof(text) - 1};
    EXPECT_CODE(ifd_tokens_parse(view, ifd_alloc_system(), &tokens, &err), IFD_INVALID, &err);
}

/* count lines of different tokens; only the first, "data-token", has a real sum. */
static char *many(int count)
{
    const size_t room = (size_t)count * 100 + 1;
    char *text = malloc(room);
    REQUIRE(text != NULL);
    size_t used = (size_t)snprintf(text, room, LINE);
    for (int i = 1; i < count; i++) {
        used += (size_t)snprintf(text + used, room - used, "n%d data sha256:%064x\n", i, i);
    }
    return text;
}

static void there_are_limits(void)
{
    static char lines[IFD_TOKENS_LINES_MAX + 200], large[IFD_TOKENS_FILE_BYTES_MAX + 2];
    struct ifd_tokens *tokens = NULL;
    struct ifd_err err = {0};
    char *text = many(IFD_TOKENS_MAX);
    REQUIRE_OK(parse(text, &tokens, &err), &err);
    EXPECT_INT(ifd_tokens_count(tokens), IFD_TOKENS_MAX);
    ifd_tokens_destroy(tokens);
    free(text);
    text = many(IFD_TOKENS_MAX + 1);
    EXPECT_CODE(parse(text, &tokens, &err), IFD_TOO_LARGE, &err);
    EXPECT_HAS(err.text, "line 257: more than 256 tokens");
    free(text);
    memset(lines, '\n', IFD_TOKENS_LINES_MAX - 1);
    (void)snprintf(lines + IFD_TOKENS_LINES_MAX - 1, 100, "cam data sha256:" DATA);
    REQUIRE_OK(parse(lines, &tokens, &err), &err);
    ifd_tokens_destroy(tokens);
    (void)snprintf(lines + strlen(lines), 2, "\n");
    EXPECT_CODE(parse(lines, &tokens, &err), IFD_TOO_LARGE, &err);
    memset(large, '#', sizeof(large) - 1);
    EXPECT_CODE(parse(large, &tokens, &err), IFD_TOO_LARGE, &err);
}

static void classes_do_not_include_each_other(void)
{
    static const enum ifd_access_class class[] = {IFD_ACCESS_DATA, IFD_ACCESS_OBSERVE,
                                                  IFD_ACCESS_ADMIN};
    static const char *const names[] = {"data", "observe", "admin"};
    for (size_t i = 0; i < 3; i++) {
        char text[200];
        struct ifd_tokens *tokens = NULL;
        struct ifd_err err = {0};
        (void)snprintf(text, sizeof(text), "cam %s sha256:" DATA "\n", names[i]);
        REQUIRE_OK(parse(text, &tokens, &err), &err);
        for (size_t k = 0; k < 3; k++) {
            EXPECT_INT(judge(tokens, "Bearer data-token", class[k], "a"),
                       i == k ? IFD_VERDICT_GRANTED : IFD_VERDICT_OTHER_CLASS);
        }
        EXPECT_INT(judge(tokens, "Bearer data-token", IFD_ACCESS_KNOWN, NULL), IFD_VERDICT_GRANTED);
        ifd_tokens_destroy(tokens);
    }
}

static void header_is_read_as_rfc_6750_has_it(void)
{
    static const struct {
        const char *header;
        enum ifd_verdict verdict;
    } rows[] = {
        {NULL, IFD_VERDICT_NO_TOKEN},
        {"", IFD_VERDICT_NO_TOKEN},
        {"Bearer", IFD_VERDICT_NO_TOKEN},
        {"Bearer  ", IFD_VERDICT_NO_TOKEN},
        {"Basic data-token", IFD_VERDICT_NO_TOKEN},
        {"data-token", IFD_VERDICT_NO_TOKEN},
        {"Bearer\tdata-token", IFD_VERDICT_NO_TOKEN},
        {"Bearer data-tokem", IFD_VERDICT_UNKNOWN_TOKEN},
        {"Bearer data-toke", IFD_VERDICT_UNKNOWN_TOKEN},
        {"Bearer data-token2", IFD_VERDICT_UNKNOWN_TOKEN},
        {"Bearer DATA-TOKEN", IFD_VERDICT_UNKNOWN_TOKEN},
        {"Bearer " DATA, IFD_VERDICT_UNKNOWN_TOKEN}, /* a sum is not a token */
        {"Bearer sha256:" DATA, IFD_VERDICT_UNKNOWN_TOKEN},
        {"Bearer data-token", IFD_VERDICT_GRANTED},
        {"bEARER  data-token ", IFD_VERDICT_GRANTED},
    };
    struct ifd_tokens *tokens = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(parse(LINE, &tokens, &err), &err);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        EXPECT_INT(judge(tokens, rows[i].header, IFD_ACCESS_DATA, "a"), rows[i].verdict);
    }
    ifd_tokens_destroy(tokens);
}

static void caller_is_told_whenever_the_token_is_known(void)
{
    struct ifd_tokens *tokens = NULL;
    struct ifd_err err = {0};
    struct ifd_str caller = {0};
    REQUIRE_OK(parse("one data sha256:" DATA "\ntwo admin sha256:" ALL "\n", &tokens, &err), &err);
    (void)ifd_tokens_judge(tokens, ifd_str("Bearer nobody"), IFD_ACCESS_DATA, ifd_str("a"),
                           &caller);
    EXPECT(!caller.data);
    (void)ifd_tokens_judge(tokens, ifd_str("Bearer data-token"), IFD_ACCESS_DATA, ifd_str("a"),
                           &caller);
    EXPECT(ifd_str_equal(caller, "one"));
    (void)ifd_tokens_judge(tokens, ifd_str("Bearer all-token"), IFD_ACCESS_DATA, ifd_str("a"),
                           &caller);
    EXPECT(ifd_str_equal(caller, "two"));
    ifd_tokens_destroy(tokens);
}

static void globs_fit_as_in_a_shell(void)
{
    static const struct {
        const char *glob, *model;
        bool fits;
    } rows[] = {
        {"digits", "digits", true},
        {"digits", "digit", false},
        {"digit", "digits", false},
        {"*", "a", true},
        {"?", "a", true},
        {"?", "ab", false},
        {"a*", "a", true},
        {"a*", "ba", false},
        {"*a", "ba", true},
        {"*a", "ab", false},
        {"a*b*c", "axxbxbc", true},
        {"a*b*c", "axxbxb", false},
        {"a**b", "ab", true},
        {"a?b", "ab", false},
        {"??*", "a", false},
        {"x,a*,y", "abc", true},
        {"x,a*,y", "y", true},
        {"x,a*,y", "b", false},
        {"*aab", "aaaaaaaaab", true},
        {"a.b", "axb", false},
        {"*a*a*a*b", "aaaaaaaaaa", false},
        {"A", "a", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[200];
        struct ifd_tokens *tokens = NULL;
        struct ifd_err err = {0};
        (void)snprintf(text, sizeof(text), "cam data sha256:" DATA " models=%s\n", rows[i].glob);
        REQUIRE_OK(parse(text, &tokens, &err), &err);
        EXPECT_INT(judge(tokens, "Bearer data-token", IFD_ACCESS_DATA, rows[i].model),
                   rows[i].fits ? IFD_VERDICT_GRANTED : IFD_VERDICT_OTHER_MODEL);
        ifd_tokens_destroy(tokens);
    }
}

static void token_for_models_gets_nothing_about_all_models(void)
{
    struct ifd_tokens *tokens = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(parse("cam data,observe,admin sha256:" DATA " models=*\n", &tokens, &err), &err);
    EXPECT_INT(judge(tokens, "Bearer data-token", IFD_ACCESS_DATA, NULL), IFD_VERDICT_GRANTED);
    EXPECT_INT(judge(tokens, "Bearer data-token", IFD_ACCESS_KNOWN, NULL), IFD_VERDICT_GRANTED);
    EXPECT_INT(judge(tokens, "Bearer data-token", IFD_ACCESS_OBSERVE, "a"), IFD_VERDICT_GRANTED);
    EXPECT_INT(judge(tokens, "Bearer data-token", IFD_ACCESS_OBSERVE, NULL),
               IFD_VERDICT_OTHER_MODEL);
    EXPECT_INT(judge(tokens, "Bearer data-token", IFD_ACCESS_ADMIN, NULL), IFD_VERDICT_OTHER_MODEL);
    ifd_tokens_destroy(tokens);
}

/* ---- every token is compared ---- */

#define PAGES 16
static uint8_t *pages;

static void *take_pages(void *context, size_t size, size_t align)
{
    (void)context;
    (void)align;
    pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages != MAP_FAILED && size <= (size_t)PAGES * 4096);
    return pages;
}

static void give_pages(void *context, void *ptr, size_t size)
{
    (void)context;
    (void)size;
    (void)munmap(ptr, PAGES * 4096);
}

static void on_fault(int signal)
{
    (void)signal;
    _exit(7);
}

/* The first token matches, yet the tokens a page further must be read, too: an unreadable page
 * there is noticed. */
static void lookup_reads_all_tokens(void)
{
    const struct ifd_alloc alloc = {.acquire = take_pages, .release = give_pages};
    struct ifd_tokens *tokens = NULL;
    struct ifd_err err = {0};
    char *text = many(IFD_TOKENS_MAX);
    int status = 0;
    REQUIRE_OK(ifd_tokens_parse(ifd_str(text), &alloc, &tokens, &err), &err);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        (void)signal(SIGSEGV, on_fault);
        (void)mprotect(pages + 4096, 4096, PROT_NONE);
        _exit(judge(tokens, "Bearer data-token", IFD_ACCESS_DATA, "a") == IFD_VERDICT_GRANTED ? 0
                                                                                              : 1);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    ifd_tokens_destroy(tokens);
    free(text);
}

static void memory_that_fails_is_an_error(void)
{
    for (long k = 1; k <= 2; k++) {
        struct fail_alloc fail;
        struct ifd_tokens *tokens = NULL;
        struct ifd_err err = {0};
        folder_begin();
        folder_put("tokens", LINE);
        REQUIRE(chmod(folder_at("tokens"), 0600) == 0);
        fail_alloc_init(&fail, k);
        EXPECT_CODE(ifd_tokens_read(folder_at("tokens"), &fail.alloc, &tokens, &err), IFD_NOMEM,
                    &err);
        fail_alloc_finish(&fail);
        EXPECT(unlink(folder_at("tokens")) == 0);
        folder_end();
    }
}

/* ---- the file ---- */

static void expect_file(enum ifd_code want, const char *why)
{
    struct ifd_tokens *tokens = NULL;
    struct ifd_err err = {0};
    const char *path = folder_at("tokens");
    EXPECT_CODE(ifd_tokens_read(path, ifd_alloc_system(), &tokens, &err), want, &err);
    if (want) {
        EXPECT_HAS(err.text, "--token-file \"");
        EXPECT_HAS(err.text, path);
        EXPECT_HAS(err.text, why);
    }
    ifd_tokens_destroy(tokens);
}

static void file_must_be_for_this_user_only(void)
{
    static const struct {
        mode_t mode;
        bool is_good;
    } modes[] = {{0600, true},  {0400, true},  {0700, true},  {0640, false}, {0620, false},
                 {0610, false}, {0604, false}, {0602, false}, {0601, false}, {0666, false}};
    folder_begin();
    folder_put("tokens", LINE);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        char why[80];
        (void)snprintf(why, sizeof(why),
                       "its mode is %04o, which lets others read or write it; expected 0600",
                       (unsigned)modes[i].mode);
        REQUIRE(chmod(folder_at("tokens"), modes[i].mode) == 0);
        expect_file(modes[i].is_good ? IFD_OK : IFD_INVALID, why);
    }
    EXPECT(unlink(folder_at("tokens")) == 0);
    folder_end();
}

/* Needs root: this process becomes another user, as a service does. */
static void file_of_root_may_be_for_a_group_of_a_service(void)
{
    static const struct {
        uid_t owner;
        mode_t mode;
        enum ifd_code want;
        const char *why;
    } rows[] = {
        {0, 0640, IFD_OK, NULL},
        {0, 0440, IFD_OK, NULL},
        {0, 0660, IFD_INVALID, "its mode is 0660"},
        {0, 0644, IFD_INVALID, "its mode is 0644"},
        {1234, 0600, IFD_OK, NULL},
        {1234, 0640, IFD_INVALID, "its mode is 0640"},
        {4321, 0640, IFD_INVALID, "it belongs to user 4321, expected user 1234 or root"},
    };
    if (geteuid() != 0) {
        test_does_not_apply("only root makes files of others");
    }
    folder_begin();
    REQUIRE(chmod(folder_path(), 0755) == 0);
    folder_put("tokens", LINE);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        REQUIRE(chown(folder_at("tokens"), rows[i].owner, 1234) == 0);
        REQUIRE(chmod(folder_at("tokens"), rows[i].mode) == 0);
        REQUIRE(setegid(1234) == 0 && seteuid(1234) == 0);
        expect_file(rows[i].want, rows[i].why);
        REQUIRE(seteuid(0) == 0 && setegid(0) == 0);
    }
    EXPECT(unlink(folder_at("tokens")) == 0);
    folder_end();
}

static void only_a_regular_file_of_some_size_is_read(void)
{
    static char large[IFD_TOKENS_FILE_BYTES_MAX + 2];
    folder_begin();
    expect_file(IFD_IO, "No such file");
    REQUIRE(mkdir(folder_at("tokens"), 0700) == 0);
    expect_file(IFD_INVALID, "not a regular file");
    REQUIRE(rmdir(folder_at("tokens")) == 0);
    REQUIRE(mkfifo(folder_at("tokens"), 0600) == 0); /* nobody writes: opening must not wait */
    expect_file(IFD_INVALID, "not a regular file");
    REQUIRE(unlink(folder_at("tokens")) == 0);
    memset(large, '#', sizeof(large) - 1);
    folder_put("tokens", large);
    REQUIRE(chmod(folder_at("tokens"), 0600) == 0);
    expect_file(IFD_TOO_LARGE, "65537 bytes, at most 65536 are read");
    large[IFD_TOKENS_FILE_BYTES_MAX] = '\0';
    folder_put("tokens", large);
    expect_file(IFD_INVALID, "no token");
    folder_put("tokens", "secret\n");
    expect_file(IFD_INVALID, "line 1: not \"NAME");
    REQUIRE(rename(folder_at("tokens"), folder_at("real")) == 0);
    folder_put("real", LINE);
    REQUIRE(symlink("real", folder_at("tokens")) == 0); /* as Kubernetes mounts secrets */
    expect_file(IFD_OK, NULL);
    EXPECT(unlink(folder_at("tokens")) == 0);
    EXPECT(unlink(folder_at("real")) == 0);
    folder_end();
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(good_lines_are_read),
        T(bad_lines_are_refused_by_number_and_not_repeated),
        T(nul_is_no_part_of_a_line),
        T(there_are_limits),
        T(classes_do_not_include_each_other),
        T(header_is_read_as_rfc_6750_has_it),
        T(caller_is_told_whenever_the_token_is_known),
        T(globs_fit_as_in_a_shell),
        T(token_for_models_gets_nothing_about_all_models),
        T(lookup_reads_all_tokens),
        T(memory_that_fails_is_an_error),
        T(file_must_be_for_this_user_only),
        T(file_of_root_may_be_for_a_group_of_a_service),
        T(only_a_regular_file_of_some_size_is_read),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

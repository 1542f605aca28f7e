/* SHA256SUMS of correct, faulty and hostile repositories. The sums of "abc" and "" are those of
 * FIPS 180-2. */
#include "server/repo/checksums.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/str.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#define ABC   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* ---- lines ---- */

static enum ifd_code parse(struct ifd_arena *arena, struct ifd_str text, struct ifd_checksums *ret,
                           struct ifd_err *err)
{
    ifd_arena_init(arena, ifd_alloc_system(), (size_t)16 << 20);
    return ifd_checksums_parse(text, "3", arena, ret, err);
}

static void lines_of_sha256sum_are_read(void)
{
    static const char text[] =
        ABC "  model.tflite\n"
            "# made by hand\n"
            "# size 3 model.tflite\n"
            "\n" EMPTY " *./assets/a b.txt\n"
            "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"
            "  last.bin"; /* no line feed */
    struct ifd_arena arena;
    struct ifd_checksums sums;
    struct ifd_err err = {0};
    REQUIRE_OK(parse(&arena, ifd_str(text), &sums, &err), &err);
    REQUIRE(sums.count == 3);
    EXPECT_TEXT(sums.file[0].path, "assets/a b.txt");
    EXPECT(!sums.file[0].has_size);
    EXPECT_INT(sums.file[0].sha256[0], 0xe3);
    EXPECT_TEXT(sums.file[1].path, "last.bin");
    EXPECT_TEXT(sums.file[2].path, "model.tflite");
    EXPECT(sums.file[2].has_size);
    EXPECT_INT(sums.file[2].size_bytes, 3);
    EXPECT_BYTES(sums.file[1].sha256, sums.file[2].sha256, IFD_SHA256_BYTES);
    EXPECT_INT(sums.file[2].sha256[31], 0xad);
    ifd_arena_finish(&arena);
}

static void wrong_lines_are_refused_with_their_number(void)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {ABC "  a\nba78\n", "3/SHA256SUMS:2: not a line of sha256sum"},
        {ABC "  a\n" ABC "  ", "SHA256SUMS:2: not a line of sha256sum"},
        {ABC " a\n", "SHA256SUMS:1: not a line of sha256sum"},
        {"xa7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n", ":1: not a line"},
        {"SHA256 (a) = " ABC "\n", ":1: not a line of sha256sum"},
        {"<html>", ":1: not a line of sha256sum"},
        {"\\" ABC "  a\\nb\n", ":1: names with line feeds or backslashes"},
        {ABC "  a\r\n", ":1: the name has a control character"},
        {ABC "  ../x\n", ":1: \"../x\" is not a path inside the folder"},
        {ABC "  a/../../x\n", ":1: \"a/../../x\" is not a path inside the folder"},
        {ABC "  /etc/passwd\n", ":1: \"/etc/passwd\" is not a path inside the folder"},
        {ABC "  .//x\n", ":1: \"/x\" is not a path inside the folder"},
        {ABC "  a//b\n", ":1: \"a//b\" is not a path inside the folder"},
        {ABC "  a/\n", ":1: \"a/\" is not a path inside the folder"},
        {ABC "  ./\n", ":1: \"\" is not a path inside the folder"},
        {"# size 3 ../x\n", ":1: \"../x\" is not a path inside the folder"},
        {ABC "  a\n" EMPTY "  b\n" ABC "  ./a\n", ":3: \"a\" is listed twice"},
        {"# size 3 a\n" ABC "  a\n# size 4 a\n", ":3: \"a\" is listed twice"},
        {"# size 3 a\n", ":1: a size, but no sum of this file"},
        {"# size x a\n", ":1: not \"# size BYTES NAME\""},
        {"# size -1 a\n", ":1: not \"# size BYTES NAME\""},
        {"# size 99999999999999999999 a\n", ":1: not \"# size BYTES NAME\""},
        {"# size 12\n", ":1: not \"# size BYTES NAME\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ifd_arena arena;
        struct ifd_checksums sums;
        struct ifd_err err = {0};
        EXPECT_CODE(parse(&arena, ifd_str(cases[i].text), &sums, &err), IFD_CORRUPT, &err);
        EXPECT_HAS(err.text, cases[i].reason);
        ifd_arena_finish(&arena);
    }
    static const char nul[] = ABC "  a\0b\n";
    struct ifd_arena arena;
    struct ifd_checksums sums;
    struct ifd_err err = {0};
    EXPECT_CODE(parse(&arena, (struct ifd_str){.data = nul, .size = sizeof(nul) - 1}, &sums, &err),
                IFD_CORRUPT, &err);
    ifd_arena_finish(&arena);
}

static void too_many_lines_are_refused(void)
{
    static char text[3 * IFD_FOLDER_NAMES_MAX];
    struct ifd_arena arena;
    struct ifd_checksums sums;
    struct ifd_err err = {0};
    memset(text, '\n', sizeof(text));
    EXPECT_CODE(parse(&arena, (struct ifd_str){.data = text, .size = sizeof(text)}, &sums, &err),
                IFD_TOO_LARGE, &err);
    EXPECT_HAS(err.text, "3/SHA256SUMS: 12289 lines, more than the limit of 8192");
    ifd_arena_finish(&arena);
}

/* ---- files ---- */

/* Makes a repository with m/3/model.tflite ("abc"), m/3/assets/labels (empty), and a file beside
 * it. */
static void begin(void)
{
    folder_begin();
    REQUIRE(mkdir(folder_at("root"), 0700) == 0 && mkdir(folder_at("root/m"), 0700) == 0);
    REQUIRE(mkdir(folder_at("root/m/3"), 0700) == 0 &&
            mkdir(folder_at("root/m/3/assets"), 0700) == 0);
    folder_put("root/m/3/model.tflite", "abc");
    folder_put("root/m/3/assets/labels", "");
    folder_put("outside", "abc");
}

static void end(const char *made)
{
    static const char *const names[] = {"root/m/3/model.tflite",
                                        "root/m/3/assets/labels",
                                        "root/m/3/assets",
                                        "root/m/3/SHA256SUMS",
                                        "root/m/3",
                                        "root/m",
                                        "root",
                                        "outside"};
    EXPECT(!made || remove(folder_at(made)) == 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)remove(folder_at(names[i]));
    }
    folder_end();
}

/* Opens and matches as a load does, with bytes for the model. */
static enum ifd_code check(const char *bytes, struct ifd_err *err)
{
    struct ifd_arena arena;
    struct ifd_checksums sums = {0};
    int root = -1;
    *err = (struct ifd_err){0};
    ifd_arena_init(&arena, ifd_alloc_system(), (size_t)16 << 20);
    REQUIRE_OK(ifd_folder_open(folder_at("root"), &root, err), err);
    enum ifd_code code = ifd_checksums_open(root, "m/3", &arena, &sums, err);
    if (!code && sums.dir) {
        const struct ifd_bytes read = {.data = (const uint8_t *)bytes, .size = strlen(bytes)};
        code = ifd_checksums_match(&sums, root, "model.tflite", read, err);
    }
    ifd_folder_close(root);
    ifd_arena_finish(&arena);
    return code;
}

/* A file that opens and whose first read fails: this process's memory, at address 0. */
static void files_that_cannot_be_read_are_named(void)
{
    struct ifd_checksum row = {.path = "mem", .has_sum = true};
    char self[24];
    const struct ifd_checksums sums = {.dir = self, .file = &row, .count = 1};
    struct ifd_err err = {0};
    int root = -1;
    (void)snprintf(self, sizeof(self), "%ld", (long)getpid());
    REQUIRE_OK(ifd_folder_open("/proc", &root, &err), &err);
    EXPECT_CODE(ifd_checksums_match(&sums, root, NULL, (struct ifd_bytes){0}, &err), IFD_IO, &err);
    EXPECT_HAS(err.text, "/mem\": Input/output error");
    ifd_folder_close(root);
}

#define MODEL  ABC "  model.tflite\n"
#define LABELS EMPTY "  assets/labels\n"

static void files_are_held_against_the_list(void)
{
    static const struct {
        const char *sums, *bytes, *reason; /* NULL: they match */
    } cases[] = {
        {MODEL LABELS, "abc", NULL},
        {"# size 3 model.tflite\n# size 0 assets/labels\n" MODEL LABELS, "abc", NULL},
        {"# size 7 SHA256SUMS\n" MODEL EMPTY "  SHA256SUMS\n" LABELS, "abc", NULL},
        {MODEL LABELS, "abd",
         "\"m/3/model.tflite\" has SHA-256 a52d159f262b2c6d…, SHA256SUMS wants ba7816bf8f01cfea…"},
        {MODEL ABC "  assets/labels\n", "abc",
         "\"m/3/assets/labels\" has SHA-256 e3b0c44298fc1c14…, SHA256SUMS wants ba7816bf8f01cfea…"},
        {"# size 4 model.tflite\n" MODEL LABELS, "abc",
         "\"m/3/model.tflite\" has 3 bytes, SHA256SUMS wants 4"},
        {MODEL, "abc", "\"m/3/assets/labels\" is not listed in SHA256SUMS"},
        {LABELS, "abc", "\"m/3/model.tflite\" is not listed in SHA256SUMS"},
        {"", "abc", "is not listed in SHA256SUMS"}, /* as while sha256sum > SHA256SUMS runs */
        {MODEL LABELS ABC "  more.bin\n", "abc",
         "\"m/3/SHA256SUMS\" lists \"more.bin\", which is not there"},
        {MODEL LABELS ABC "  assets\n", "abc",
         "\"m/3/SHA256SUMS\" lists \"assets\", which is not a regular file"},
    };
    struct ifd_err err;
    begin();
    EXPECT_CODE(check("anything", &err), IFD_OK, &err); /* there is no list */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        folder_put("root/m/3/SHA256SUMS", cases[i].sums);
        EXPECT_CODE(check(cases[i].bytes, &err), cases[i].reason ? IFD_CORRUPT : IFD_OK, &err);
        EXPECT_HAS(err.text, cases[i].reason ? cases[i].reason : "");
    }
    end(NULL);
}

static void hidden_temporary_and_signature_files_need_not_be_listed(void)
{
    static const char *const names[] = {"root/m/3/.hidden", "root/m/3/model.tflite~",
                                        "root/m/3/x.part", "root/m/3/SHA256SUMS.sig"};
    struct ifd_err err;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        begin();
        folder_put("root/m/3/SHA256SUMS", MODEL LABELS);
        folder_put(names[i], "x");
        EXPECT_CODE(check("abc", &err), IFD_OK, &err);
        end(names[i]);
    }
}

static void links_count_as_what_they_lead_to_and_may_not_lead_out(void)
{
    static const struct {
        const char *name, *target;
        enum ifd_code code;
        const char *reason;
    } cases[] = {
        {"root/m/3/link", "model.tflite", IFD_OK, ""},
        {"root/m/3/link", "../3/model.tflite", IFD_OK, ""},
        {"root/m/3/link", "../../../outside", IFD_CORRUPT, "leads out of the repository"},
        {"root/m/3/link", "/etc/hostname", IFD_CORRUPT, "leads out of the repository"},
        {"root/m/3/link", "link", IFD_CORRUPT, "leads through too many links"},
        {"root/m/3/link", "nowhere", IFD_CORRUPT, "which is not there"},
        {"root/m/3/link", "assets", IFD_CORRUPT, "which is not a regular file"},
    };
    struct ifd_err err;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin();
        folder_put("root/m/3/SHA256SUMS", MODEL LABELS ABC "  link\n");
        REQUIRE(symlink(cases[i].target, folder_at(cases[i].name)) == 0);
        EXPECT_CODE(check("abc", &err), cases[i].code, &err);
        EXPECT_HAS(err.text, cases[i].reason);
        end(cases[i].name);
    }
}

static void list_itself_may_not_lead_out_be_no_file_or_be_huge(void)
{
    struct ifd_err err;
    begin();
    REQUIRE(symlink("../../../outside", folder_at("root/m/3/SHA256SUMS")) == 0);
    EXPECT_CODE(check("abc", &err), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "\"m/3/SHA256SUMS\" leads out of the repository");
    REQUIRE(unlink(folder_at("root/m/3/SHA256SUMS")) == 0);
    REQUIRE(mkfifo(folder_at("root/m/3/SHA256SUMS"), 0600) == 0);
    EXPECT_CODE(check("abc", &err), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "not a regular file");
    REQUIRE(unlink(folder_at("root/m/3/SHA256SUMS")) == 0);
    folder_put("root/m/3/SHA256SUMS", MODEL LABELS);
    REQUIRE(truncate(folder_at("root/m/3/SHA256SUMS"), (off_t)IFD_CHECKSUMS_BYTES_MAX + 1) == 0);
    EXPECT_CODE(check("abc", &err), IFD_TOO_LARGE, &err);
    EXPECT_HAS(err.text, "\"m/3/SHA256SUMS\" has 1048577 bytes, more than the limit of 1048576");
    end(NULL);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(lines_of_sha256sum_are_read),
        T(wrong_lines_are_refused_with_their_number),
        T(too_many_lines_are_refused),
        T(files_that_cannot_be_read_are_named),
        T(files_are_held_against_the_list),
        T(hidden_temporary_and_signature_files_need_not_be_listed),
        T(links_count_as_what_they_lead_to_and_may_not_lead_out),
        T(list_itself_may_not_lead_out_be_no_file_or_be_huge),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Names and links of hostile or careless repositories. */
#include "server/repo/folder.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/base/str.h"
#include "tests/support/test.h"

struct place {
    char dir[64];
    int root; /* of DIR/root; DIR/secret lies outside of it */
};

static const char *at(const struct place *place, const char *name)
{
    static char path[4][200];
    static unsigned turn;
    char *text = path[turn++ % 4];
    (void)snprintf(text, sizeof(path[0]), "%s/%s", place->dir, name);
    return text;
}

static void put(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    REQUIRE(out != NULL);
    (void)fputs(text, out);
    (void)fclose(out);
}

static void begin(struct place *place)
{
    struct ifd_err err = {0};
    (void)snprintf(place->dir, sizeof(place->dir), "/tmp/ifd_folder_XXXXXX");
    REQUIRE(mkdtemp(place->dir) != NULL);
    REQUIRE(mkdir(at(place, "root"), 0700) == 0);
    REQUIRE(mkdir(at(place, "root/m"), 0700) == 0);
    put(at(place, "secret"), "secret");
    put(at(place, "root/m/file"), "content");
    REQUIRE_OK(ifd_folder_open(at(place, "root"), &place->root, &err), &err);
}

static void end(const struct place *place, const char *const *made)
{
    ifd_folder_close(place->root);
    for (; made && *made; made++) {
        EXPECT(remove(at(place, *made)) == 0);
    }
    EXPECT(unlink(at(place, "root/m/file")) == 0);
    EXPECT(rmdir(at(place, "root/m")) == 0);
    EXPECT(rmdir(at(place, "root")) == 0);
    EXPECT(unlink(at(place, "secret")) == 0);
    EXPECT(rmdir(place->dir) == 0);
}

static enum ifd_code read_text(const struct place *place, const char *path, char *text, size_t size)
{
    struct ifd_bytes bytes = {0};
    struct ifd_err err = {0};
    enum ifd_code code =
        ifd_folder_read(place->root, path, size - 1, ifd_alloc_system(), &bytes, &err);
    text[0] = '\0';
    if (!code) {
        memcpy(text, bytes.data, bytes.size);
        text[bytes.size] = '\0';
        ifd_release_tensor(ifd_alloc_system(), (void *)(uintptr_t)bytes.data, bytes.size);
    }
    return code;
}

static void links_inside_are_followed_and_links_outside_refused(void)
{
    static const struct {
        const char *link, *target;
        enum ifd_code code;
    } cases[] = {
        {"root/inside", "m/file", IFD_OK},
        {"root/m/up", "../m/file", IFD_OK},
        {"root/out", "../secret", IFD_INVALID},
        {"root/m/out", "../../secret", IFD_INVALID},
        {"root/absolute", "/etc/passwd", IFD_INVALID},
        {"root/self", "self", IFD_INVALID},
        {"root/broken", "nothing", IFD_NOT_FOUND},
    };
    struct place place;
    char text[64];
    begin(&place);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        REQUIRE(symlink(cases[i].target, at(&place, cases[i].link)) == 0);
        EXPECT_CODE(read_text(&place, cases[i].link + strlen("root/"), text, sizeof(text)),
                    cases[i].code, NULL);
        EXPECT_TEXT(text, cases[i].code ? "" : "content");
        EXPECT(unlink(at(&place, cases[i].link)) == 0);
    }
    end(&place, NULL);
}

/* From here on the kernel knows no openat2. */
static void take_openat2_away(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        test_does_not_apply("this system lets no process filter its system calls");
    }
}

static void old_kernel_follows_no_link_at_all(void)
{
    struct place place;
    char text[64];
    begin(&place);
    REQUIRE(symlink("m/file", at(&place, "root/inside")) == 0);
    REQUIRE(symlink("m", at(&place, "root/folder")) == 0);
    REQUIRE(symlink("../secret", at(&place, "root/out")) == 0);
    take_openat2_away();
    EXPECT_CODE(read_text(&place, "m/file", text, sizeof(text)), IFD_OK, NULL);
    EXPECT_TEXT(text, "content");
    EXPECT(ifd_folder_is_folder(place.root, "m"));
    EXPECT(read_text(&place, "inside", text, sizeof(text)) != IFD_OK);
    EXPECT(read_text(&place, "folder/file", text, sizeof(text)) != IFD_OK);
    EXPECT(read_text(&place, "out", text, sizeof(text)) != IFD_OK);
    EXPECT(read_text(&place, "../secret", text, sizeof(text)) != IFD_OK);
    EXPECT_CODE(read_text(&place, "m/nothing", text, sizeof(text)), IFD_NOT_FOUND, NULL);
    end(&place, (const char *const[]){"root/inside", "root/folder", "root/out", NULL});
}

static void paths_that_climb_are_refused(void)
{
    static const char *const paths[] = {
        "../secret", "m/../../secret", "/etc/passwd", "m//file", "./m/file", "m/./file", "", ".."};
    struct place place;
    char text[64];
    begin(&place);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        EXPECT(read_text(&place, paths[i], text, sizeof(text)) != IFD_OK);
        EXPECT(!ifd_path_is_inside(ifd_str(paths[i])));
    }
    EXPECT_CODE(read_text(&place, "m/file", text, sizeof(text)), IFD_OK, NULL);
    EXPECT(!ifd_path_is_inside((struct ifd_str){.data = "a\0b", .size = 3}));
    end(&place, NULL);
}

static void only_regular_files_are_read(void)
{
    struct place place;
    char text[64];
    begin(&place);
    REQUIRE(mkfifo(at(&place, "root/fifo"), 0600) == 0);
    EXPECT_CODE(read_text(&place, "fifo", text, sizeof(text)), IFD_INVALID, NULL);
    EXPECT_CODE(read_text(&place, "m", text, sizeof(text)), IFD_INVALID, NULL);
    EXPECT_CODE(read_text(&place, "m/file", text, 4), IFD_TOO_LARGE, NULL);
    end(&place, (const char *const[]){"root/fifo", NULL});
}

static void listing_is_sorted_and_passes_hidden_names_over(void)
{
    struct place place;
    struct ifd_arena arena;
    struct ifd_folder_names names = {0};
    struct ifd_err err = {0};
    begin(&place);
    put(at(&place, "root/m/b"), "");
    put(at(&place, "root/m/a"), "");
    put(at(&place, "root/m/.hidden"), "");
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    REQUIRE_OK(ifd_folder_list(place.root, "m", &arena, &names, &err), &err);
    EXPECT_INT(names.count, 3);
    EXPECT_TEXT(names.name[0], "a");
    EXPECT_TEXT(names.name[1], "b");
    EXPECT_TEXT(names.name[2], "file");
    EXPECT_CODE(ifd_folder_list(place.root, "m/file", &arena, &names, &err), IFD_NOT_FOUND, &err);
    ifd_arena_finish(&arena);
    end(&place, (const char *const[]){"root/m/a", "root/m/b", "root/m/.hidden", NULL});
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(links_inside_are_followed_and_links_outside_refused),
        T(paths_that_climb_are_refused),
        T(only_regular_files_are_read),
        T(listing_is_sorted_and_passes_hidden_names_over),
        T(old_kernel_follows_no_link_at_all), /* last: it changes the process */
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

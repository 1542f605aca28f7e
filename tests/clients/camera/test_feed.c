/* Pictures of a folder, and what is none. */
#include "feed.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/folder.h"
#include "tests/support/test.h"

static char text[200];

static struct ifd_feed *open_feed(const char *path)
{
    memset(text, '?', sizeof(text));
    return ifd_feed_open(path, 640, 480, text, sizeof(text));
}

static void expect_picture(struct ifd_feed *feed, uint64_t number, const char *want)
{
    struct ifd_frame frame = {0};
    REQUIRE(ifd_feed_take(feed, number, &frame));
    EXPECT_INT(frame.bytes, strlen(want));
    EXPECT_BYTES(frame.data, want, strlen(want));
    EXPECT_INT(frame.taken_ns, 0);
    ifd_frame_finish(&frame);
}

static void pictures_of_a_folder_repeat_by_name(void)
{
    folder_begin();
    folder_put("b.jpg", "second");
    folder_put("a.jpg", "first");
    folder_put(".hidden", "no");
    folder_put("empty.jpg", "");
    REQUIRE(mkdir(folder_at("folder"), 0700) == 0);
    struct ifd_feed *feed = open_feed(folder_path());
    REQUIRE(feed != NULL);
    expect_picture(feed, 0, "first");
    expect_picture(feed, 1, "second");
    expect_picture(feed, 1000000, "first");
    ifd_feed_close(feed);
    feed = open_feed(folder_at("b.jpg"));
    REQUIRE(feed != NULL);
    expect_picture(feed, 7, "second");
    ifd_feed_close(feed);
    static const char *const names[] = {"a.jpg", "b.jpg", ".hidden", "empty.jpg"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)unlink(folder_at(names[i]));
    }
    (void)rmdir(folder_at("folder"));
    folder_end();
}

static void what_gives_no_picture_is_named(void)
{
    folder_begin();
    EXPECT(open_feed(folder_path()) == NULL);
    EXPECT_HAS(text, folder_path());
    EXPECT_HAS(text, ": there is no picture");
    EXPECT(open_feed(folder_at("nothing")) == NULL);
    EXPECT_HAS(text, "/nothing: No such file or directory");
    EXPECT(open_feed("/dev/null") == NULL);
    EXPECT_HAS(text, "/dev/null: is no camera (V4L2)");
    folder_put("secret", "x");
    REQUIRE(chmod(folder_at("secret"), 0) == 0);
    if (geteuid() != 0) {
        EXPECT(open_feed(folder_path()) == NULL);
        EXPECT_HAS(text, "/secret: Permission denied");
    }
    (void)unlink(folder_at("secret"));
    folder_end();
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(pictures_of_a_folder_repeat_by_name),
        T(what_gives_no_picture_is_named),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

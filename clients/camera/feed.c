/* Reads the pictures of a folder into memory; hands devices to device.c. */
#include "feed.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device.h"

enum { PICTURES_MAX = 4096 };
#define BYTES_MAX ((size_t)1 << 30)

struct picture {
    void *data;
    size_t bytes;
};

struct ifd_feed {
    struct ifd_device *device; /* or: */
    struct picture *picture;
    size_t count, bytes;
};

static bool fail(char *text, size_t text_bytes, const char *path, const char *why)
{
    snprintf(text, text_bytes, "%s: %s", path, why);
    return false;
}

/* Adds a regular file; others are passed over. */
static bool add(struct ifd_feed *feed, const char *path, char *text, size_t text_bytes)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &info) != 0) {
        const int reason = errno;
        if (fd >= 0) {
            close(fd);
        }
        return fail(text, text_bytes, path, strerror(reason));
    }
    if (!S_ISREG(info.st_mode) || info.st_size == 0) {
        close(fd);
        return true;
    }
    if (feed->count == PICTURES_MAX || (uintmax_t)info.st_size > BYTES_MAX - feed->bytes) {
        close(fd);
        return fail(text, text_bytes, path, "one picture too many: 4096 of 1 GiB can be sent");
    }
    const size_t bytes = (size_t)info.st_size;
    struct picture *grown = realloc(feed->picture, (feed->count + 1) * sizeof(*grown));
    feed->picture = grown ? grown : feed->picture;
    void *data = grown ? malloc(bytes) : NULL;
    FILE *file = data ? fdopen(fd, "rb") : NULL;
    if (!file) {
        close(fd);
    }
    const bool is_read = file && fread(data, 1, bytes, file) == bytes;
    if (file) {
        fclose(file);
    }
    if (!is_read) {
        free(data);
        return fail(text, text_bytes, path, data ? "cannot be read" : "out of memory");
    }
    feed->picture[feed->count++] = (struct picture){.data = data, .bytes = bytes};
    feed->bytes += bytes;
    return true;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool add_folder(struct ifd_feed *feed, const char *path, char *text, size_t text_bytes)
{
    struct dirent **entry = NULL;
    const int count = scandir(path, &entry, is_visible, alphasort);
    bool ok = count >= 0 || fail(text, text_bytes, path, strerror(errno));
    for (int i = 0; i < count; i++) {
        char name[4096];
        const int size = snprintf(name, sizeof(name), "%s/%s", path, entry[i]->d_name);
        ok = ok && (((size_t)size < sizeof(name) && add(feed, name, text, text_bytes)) ||
                    (text[0] != '\0' ? false : fail(text, text_bytes, path, "a path too long")));
        free(entry[i]);
    }
    free(entry);
    return ok;
}

struct ifd_feed *ifd_feed_open(const char *path, unsigned width, unsigned height, char *text,
                               size_t text_bytes)
{
    struct ifd_feed *feed = calloc(1, sizeof(*feed));
    struct stat info;
    bool ok = false;
    text[0] = '\0';
    if (!feed || stat(path, &info) != 0) {
        (void)fail(text, text_bytes, path, feed ? strerror(errno) : "out of memory");
    } else if (S_ISDIR(info.st_mode)) {
        ok = add_folder(feed, path, text, text_bytes);
    } else if (S_ISREG(info.st_mode)) {
        ok = add(feed, path, text, text_bytes);
    } else {
        feed->device = ifd_device_open(path, width, height, text, text_bytes);
    }
    if (ok && feed->count == 0) {
        ok = fail(text, text_bytes, path, "there is no picture");
    }
    if (feed && !ok && !feed->device) {
        ifd_feed_close(feed);
        return NULL;
    }
    return feed;
}

void ifd_feed_close(struct ifd_feed *feed)
{
    for (size_t i = 0; i < feed->count; i++) {
        free(feed->picture[i].data);
    }
    if (feed->device) {
        ifd_device_close(feed->device);
    }
    free(feed->picture);
    free(feed);
}

bool ifd_feed_take(struct ifd_feed *feed, uint64_t number, struct ifd_frame *frame)
{
    if (feed->device) {
        return ifd_device_take(feed->device, frame);
    }
    const struct picture *picture = &feed->picture[number % feed->count];
    frame->data = picture->data;
    frame->bytes = picture->bytes;
    frame->content_type = NULL;
    frame->taken_ns = 0;
    return true;
}

void ifd_frame_finish(struct ifd_frame *frame)
{
    free(frame->memory);
    frame->memory = NULL;
}

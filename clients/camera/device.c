/* Video4Linux: four buffers in turn; a thread keeps a copy of the newest frame. */
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BUFFERS = 4, LOOK_MS = 200, FIRST_FRAME_SECONDS = 10 };

struct ifd_device {
    int fd;
    void *buffer[BUFFERS];
    size_t buffer_bytes[BUFFERS];
    unsigned buffer_count;
    char content_type[96];
    pthread_t thread;
    bool has_thread;
    atomic_bool is_ending;

    pthread_mutex_t mutex; /* guards the rest */
    pthread_cond_t came;
    uint8_t *newest;
    size_t newest_bytes, newest_capacity;
    uint64_t taken_ns;
    bool has_failed;
};

static bool fail(char *text, size_t text_bytes, const char *path, const char *what)
{
    snprintf(text, text_bytes, "%s: %s: %s", path, what, strerror(errno));
    return false;
}

static int ask(int fd, unsigned long request, void *arg)
{
    int result = 0;
    do {
        result = ioctl(fd, request, arg);
    } while (result != 0 && errno == EINTR);
    return result;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- the newest frame ---- */

static void keep(struct ifd_device *device, const void *data, size_t bytes)
{
    pthread_mutex_lock(&device->mutex);
    if (bytes > device->newest_capacity) {
        uint8_t *grown = realloc(device->newest, bytes);
        device->newest = grown ? grown : device->newest;
        device->newest_capacity = grown ? bytes : device->newest_capacity;
    }
    if (bytes > 0 && bytes <= device->newest_capacity) {
        memcpy(device->newest, data, bytes);
        device->newest_bytes = bytes;
        device->taken_ns = now_ns();
        pthread_cond_broadcast(&device->came);
    }
    pthread_mutex_unlock(&device->mutex);
}

static bool take_buffer(struct ifd_device *device)
{
    struct v4l2_buffer buffer = {.type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP};
    if (ask(device->fd, VIDIOC_DQBUF, &buffer) != 0) {
        return errno == EAGAIN;
    }
    if (!(buffer.flags & V4L2_BUF_FLAG_ERROR) && buffer.index < device->buffer_count &&
        buffer.bytesused <= device->buffer_bytes[buffer.index]) {
        keep(device, device->buffer[buffer.index], buffer.bytesused);
    }
    return ask(device->fd, VIDIOC_QBUF, &buffer) == 0;
}

static void *capture(void *arg)
{
    struct ifd_device *device = arg;
    bool ok = true;
    while (ok && !atomic_load(&device->is_ending)) {
        struct pollfd fd = {.fd = device->fd, .events = POLLIN};
        const int ready = poll(&fd, 1, LOOK_MS);
        if (ready > 0) {
            ok = !(fd.revents & (POLLERR | POLLHUP | POLLNVAL)) && take_buffer(device);
        }
    }
    pthread_mutex_lock(&device->mutex);
    device->has_failed = true;
    pthread_cond_broadcast(&device->came);
    pthread_mutex_unlock(&device->mutex);
    return NULL;
}

bool ifd_device_take(struct ifd_device *device, struct ifd_frame *frame)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += FIRST_FRAME_SECONDS;
    pthread_mutex_lock(&device->mutex);
    while (device->newest_bytes == 0 && !device->has_failed &&
           pthread_cond_timedwait(&device->came, &device->mutex, &until) == 0) {
    }
    bool ok = device->newest_bytes > 0 && !device->has_failed;
    if (ok && device->newest_bytes > frame->capacity) {
        void *grown = realloc(frame->memory, device->newest_bytes);
        ok = grown != NULL;
        frame->memory = grown ? grown : frame->memory;
        frame->capacity = grown ? device->newest_bytes : frame->capacity;
    }
    if (ok) {
        memcpy(frame->memory, device->newest, device->newest_bytes);
        frame->data = frame->memory;
        frame->bytes = device->newest_bytes;
        frame->content_type = device->content_type;
        frame->taken_ns = device->taken_ns;
    }
    pthread_mutex_unlock(&device->mutex);
    return ok;
}

/* ---- life ---- */

/* MJPEG, or else YUYV. The driver may change the size. */
static bool choose_format(struct ifd_device *device, const char *path, unsigned width,
                          unsigned height, char *text, size_t text_bytes)
{
    static const uint32_t formats[] = {V4L2_PIX_FMT_MJPEG, V4L2_PIX_FMT_JPEG, V4L2_PIX_FMT_YUYV};
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        struct v4l2_format format = {.type = V4L2_BUF_TYPE_VIDEO_CAPTURE};
        format.fmt.pix.width = width;
        format.fmt.pix.height = height;
        format.fmt.pix.pixelformat = formats[i];
        format.fmt.pix.field = V4L2_FIELD_ANY;
        if (ask(device->fd, VIDIOC_S_FMT, &format) != 0 ||
            format.fmt.pix.pixelformat != formats[i]) {
            continue;
        }
        if (formats[i] != V4L2_PIX_FMT_YUYV) {
            snprintf(device->content_type, sizeof(device->content_type), "image/jpeg");
        } else {
            snprintf(device->content_type, sizeof(device->content_type),
                     "video/x-raw; format=YUYV; width=%u; height=%u; stride=%u",
                     format.fmt.pix.width, format.fmt.pix.height, format.fmt.pix.bytesperline);
        }
        return true;
    }
    snprintf(text, text_bytes, "%s: gives neither MJPEG nor YUYV", path);
    return false;
}

static bool map_buffers(struct ifd_device *device, const char *path, char *text, size_t text_bytes)
{
    struct v4l2_requestbuffers wanted = {
        .count = BUFFERS, .type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP};
    if (ask(device->fd, VIDIOC_REQBUFS, &wanted) != 0 || wanted.count == 0) {
        return fail(text, text_bytes, path, "no buffers");
    }
    for (unsigned i = 0; i < wanted.count && i < BUFFERS; i++) {
        struct v4l2_buffer buffer = {
            .index = i, .type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP};
        if (ask(device->fd, VIDIOC_QUERYBUF, &buffer) != 0) {
            return fail(text, text_bytes, path, "a buffer");
        }
        void *memory = mmap(NULL, buffer.length, PROT_READ | PROT_WRITE, MAP_SHARED, device->fd,
                            (off_t)buffer.m.offset);
        if (memory == MAP_FAILED) {
            return fail(text, text_bytes, path, "mapping a buffer");
        }
        device->buffer[i] = memory;
        device->buffer_bytes[i] = buffer.length;
        device->buffer_count++;
        if (ask(device->fd, VIDIOC_QBUF, &buffer) != 0) {
            return fail(text, text_bytes, path, "queueing a buffer");
        }
    }
    return true;
}

static bool start(struct ifd_device *device, const char *path, unsigned width, unsigned height,
                  char *text, size_t text_bytes)
{
    struct v4l2_capability can = {0};
    enum v4l2_buf_type type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    device->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (device->fd < 0) {
        return fail(text, text_bytes, path, "cannot be opened");
    }
    if (ask(device->fd, VIDIOC_QUERYCAP, &can) != 0) {
        return fail(text, text_bytes, path, "is no camera (V4L2)");
    }
    const uint32_t caps =
        can.capabilities & V4L2_CAP_DEVICE_CAPS ? can.device_caps : can.capabilities;
    if (!(caps & V4L2_CAP_VIDEO_CAPTURE) || !(caps & V4L2_CAP_STREAMING)) {
        snprintf(text, text_bytes, "%s: does not stream pictures", path);
        return false;
    }
    if (!choose_format(device, path, width, height, text, text_bytes) ||
        !map_buffers(device, path, text, text_bytes)) {
        return false;
    }
    if (ask(device->fd, VIDIOC_STREAMON, &type) != 0) {
        return fail(text, text_bytes, path, "does not start");
    }
    device->has_thread = pthread_create(&device->thread, NULL, capture, device) == 0;
    return device->has_thread || fail(text, text_bytes, path, "no thread");
}

struct ifd_device *ifd_device_open(const char *path, unsigned width, unsigned height, char *text,
                                   size_t text_bytes)
{
    struct ifd_device *device = calloc(1, sizeof(*device));
    if (!device) {
        snprintf(text, text_bytes, "%s: out of memory", path);
        return NULL;
    }
    device->fd = -1;
    pthread_mutex_init(&device->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&device->came, &attributes);
    pthread_condattr_destroy(&attributes);
    if (!start(device, path, width, height, text, text_bytes)) {
        ifd_device_close(device);
        return NULL;
    }
    return device;
}

void ifd_device_close(struct ifd_device *device)
{
    atomic_store(&device->is_ending, true);
    if (device->has_thread) {
        pthread_join(device->thread, NULL);
    }
    for (unsigned i = 0; i < device->buffer_count; i++) {
        munmap(device->buffer[i], device->buffer_bytes[i]);
    }
    if (device->fd >= 0) {
        close(device->fd); /* ends the stream, too */
    }
    pthread_cond_destroy(&device->came);
    pthread_mutex_destroy(&device->mutex);
    free(device->newest);
    free(device);
}

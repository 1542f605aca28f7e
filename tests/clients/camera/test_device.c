/* A V4L2 camera without a camera: a file has the buffers, and ioctl() below is the driver. */
#include "device.h"

#include <errno.h>
#include <linux/videodev2.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/folder.h"
#include "tests/support/test.h"

enum { BUFFER_BYTES = 4096, OWN_BUFFERS = 4, TRIES = 10000 };

struct shot {
    unsigned index;
    unsigned bytes;
    unsigned flags;
    char first; /* of the buffer's bytes */
};

static struct {
    unsigned capabilities, device_capabilities;
    unsigned format;         /* the only one that it gives */
    unsigned buffers;        /* as many as it grants, whatever is asked for */
    unsigned long failing;   /* this request fails with EIO */
    const struct shot *shot; /* in turn; then there is no frame, or the camera is gone */
    unsigned shots;
    bool is_gone_then;
    bool is_interrupted; /* each second call: the signal that ends a call is no failure */
    unsigned next;
    atomic_uint queued, empty; /* buffers that came back, calls that found no frame */
} driver;

static char text[200];

static void wait_a_moment(void)
{
    static const struct timespec moment = {.tv_nsec = 1000000};
    nanosleep(&moment, NULL);
}

static int refuse(int number)
{
    errno = number;
    return -1;
}

static void set_format(struct v4l2_pix_format *pix)
{
    pix->pixelformat = driver.format;
    pix->width = 320; /* whatever was asked for */
    pix->height = 240;
    pix->bytesperline = 704;
}

static int give_shot(int fd, struct v4l2_buffer *buffer)
{
    if (driver.next == driver.shots) {
        wait_a_moment(); /* since poll() finds a file always ready */
        atomic_fetch_add(&driver.empty, 1);
        return refuse(driver.is_gone_then ? ENODEV : EAGAIN);
    }
    const struct shot *shot = &driver.shot[driver.next++];
    buffer->index = shot->index;
    buffer->bytesused = shot->bytes;
    buffer->flags = shot->flags;
    if (shot->index < OWN_BUFFERS) {
        const off_t at = (off_t)shot->index * BUFFER_BYTES;
        REQUIRE(pwrite(fd, &shot->first, 1, at) == 1);
    }
    return 0;
}

static int answer(int fd, unsigned long request, void *arg)
{
    struct v4l2_buffer *buffer = arg;
    switch (request) {
    case VIDIOC_QUERYCAP:
        ((struct v4l2_capability *)arg)->capabilities = driver.capabilities;
        ((struct v4l2_capability *)arg)->device_caps = driver.device_capabilities;
        return 0;
    case VIDIOC_S_FMT:
        set_format(&((struct v4l2_format *)arg)->fmt.pix);
        return 0;
    case VIDIOC_REQBUFS:
        ((struct v4l2_requestbuffers *)arg)->count = driver.buffers;
        return 0;
    case VIDIOC_QUERYBUF:
        if (buffer->index >= driver.buffers) {
            return refuse(EINVAL);
        }
        buffer->length = BUFFER_BYTES;
        buffer->m.offset = buffer->index * BUFFER_BYTES;
        return 0;
    case VIDIOC_QBUF:
        atomic_fetch_add(&driver.queued, 1);
        return 0;
    case VIDIOC_DQBUF:
        return give_shot(fd, buffer);
    case VIDIOC_STREAMON:
        return 0;
    default:
        return refuse(ENOTTY);
    }
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list rest;
    va_start(rest, request);
    void *arg = va_arg(rest, void *);
    va_end(rest);
    driver.is_interrupted = !driver.is_interrupted;
    if (driver.is_interrupted) {
        return refuse(EINTR);
    }
    return request == driver.failing ? refuse(EIO) : answer(fd, request, arg);
}

/* ---- a camera ---- */

static void reset(unsigned format, const struct shot *shot, unsigned shots)
{
    memset(&driver, 0, sizeof(driver));
    driver.capabilities = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
    driver.format = format;
    driver.buffers = OWN_BUFFERS;
    driver.shot = shot;
    driver.shots = shots;
    memset(text, '?', sizeof(text));
}

static struct ifd_device *open_camera(void)
{
    return ifd_device_open(folder_at("camera"), 640, 480, text, sizeof(text));
}

static unsigned device_buffers(void)
{
    return driver.buffers < OWN_BUFFERS ? driver.buffers : OWN_BUFFERS;
}

/* All frames were looked at when a later call, too, found none. */
static void wait_for_shots(void)
{
    for (int i = 0; i < TRIES && atomic_load(&driver.empty) < 2; i++) {
        wait_a_moment();
    }
    EXPECT_INT(atomic_load(&driver.queued), device_buffers() + driver.shots);
}

static void begin(void)
{
    folder_begin();
    folder_put("camera", "");
    REQUIRE(truncate(folder_at("camera"), (off_t)OWN_BUFFERS * BUFFER_BYTES) == 0);
}

static void end(void)
{
    (void)unlink(folder_at("camera"));
    folder_end();
}

static void expect_frame(struct ifd_device *device, char first, size_t bytes, const char *type)
{
    struct ifd_frame frame = {0};
    REQUIRE(ifd_device_take(device, &frame));
    EXPECT_INT(frame.bytes, bytes);
    EXPECT_INT(*(const char *)frame.data, first);
    EXPECT_TEXT(frame.content_type, type);
    EXPECT(frame.taken_ns > 0);
    ifd_frame_finish(&frame);
}

/* ---- cases ---- */

static void the_newest_frame_is_given(void)
{
    static const struct shot shots[] = {{0, 100, 0, 'a'}, {1, 4096, 0, 'b'}, {3, 50, 0, 'c'}};
    begin();
    reset(V4L2_PIX_FMT_MJPEG, shots, 3);
    struct ifd_device *device = open_camera();
    REQUIRE(device != NULL);
    wait_for_shots();
    expect_frame(device, 'c', 50, "image/jpeg");
    expect_frame(device, 'c', 50, "image/jpeg"); /* until a newer one comes */
    ifd_device_close(device);
    end();
}

static void frames_without_a_header_say_what_they_are(void)
{
    static const struct shot shots[] = {{1, 4000, 0, 'y'}};
    begin();
    reset(V4L2_PIX_FMT_YUYV, shots, 1);
    driver.capabilities = V4L2_CAP_DEVICE_CAPS;
    driver.device_capabilities = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
    driver.buffers = 2;
    struct ifd_device *device = open_camera();
    REQUIRE(device != NULL);
    wait_for_shots();
    expect_frame(device, 'y', 4000, "video/x-raw; format=YUYV; width=320; height=240; stride=704");
    ifd_device_close(device);
    end();
}

static void broken_frames_are_passed_over(void)
{
    static const struct shot shots[] = {
        {0, 100, 0, 'a'},
        {1, 100, V4L2_BUF_FLAG_ERROR, 'b'},
        {OWN_BUFFERS, 100, 0, 'c'},    /* no buffer of ours */
        {2, BUFFER_BYTES + 1, 0, 'd'}, /* more than the buffer has */
        {3, 0, 0, 'e'},
    };
    begin();
    reset(V4L2_PIX_FMT_JPEG, shots, 5);
    driver.buffers = OWN_BUFFERS + 2; /* more than were asked for */
    struct ifd_device *device = open_camera();
    REQUIRE(device != NULL);
    wait_for_shots();
    expect_frame(device, 'a', 100, "image/jpeg");
    ifd_device_close(device);
    end();
}

static void a_camera_that_is_unplugged_gives_no_frame(void)
{
    static const struct shot shots[] = {{0, 100, 0, 'a'}};
    struct ifd_frame frame = {0};
    begin();
    reset(V4L2_PIX_FMT_MJPEG, shots, 1);
    driver.is_gone_then = true;
    struct ifd_device *device = open_camera();
    REQUIRE(device != NULL);
    bool is_taken = true;
    for (int i = 0; i < TRIES && is_taken; i++) {
        is_taken = ifd_device_take(device, &frame);
        wait_a_moment();
    }
    EXPECT(!is_taken); /* not the old one again */
    ifd_frame_finish(&frame);
    ifd_device_close(device);
    end();
}

static void expect_refused(const char *want)
{
    struct ifd_device *device = open_camera();
    EXPECT(device == NULL);
    EXPECT_HAS(text, folder_at("camera"));
    EXPECT_HAS(text, want);
    if (device) {
        ifd_device_close(device);
    }
}

static void what_a_driver_refuses_is_named(void)
{
    static const struct {
        unsigned long request;
        const char *want;
    } steps[] = {
        {VIDIOC_QUERYCAP, ": is no camera (V4L2): Input/output error"},
        {VIDIOC_S_FMT, ": gives neither MJPEG nor YUYV"},
        {VIDIOC_REQBUFS, ": no buffers: Input/output error"},
        {VIDIOC_QUERYBUF, ": a buffer: Input/output error"},
        {VIDIOC_QBUF, ": queueing a buffer: Input/output error"},
        {VIDIOC_STREAMON, ": does not start: Input/output error"},
    };
    begin();
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        reset(V4L2_PIX_FMT_MJPEG, NULL, 0);
        driver.failing = steps[i].request;
        expect_refused(steps[i].want);
    }
    reset(V4L2_PIX_FMT_NV12, NULL, 0);
    expect_refused(": gives neither MJPEG nor YUYV");
    reset(V4L2_PIX_FMT_MJPEG, NULL, 0);
    driver.capabilities = V4L2_CAP_VIDEO_CAPTURE;
    expect_refused(": does not stream pictures");
    reset(V4L2_PIX_FMT_MJPEG, NULL, 0);
    driver.capabilities |= V4L2_CAP_DEVICE_CAPS; /* then only the device's own count */
    expect_refused(": does not stream pictures");
    end();
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(the_newest_frame_is_given),      T(frames_without_a_header_say_what_they_are),
        T(broken_frames_are_passed_over),  T(a_camera_that_is_unplugged_gives_no_frame),
        T(what_a_driver_refuses_is_named),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

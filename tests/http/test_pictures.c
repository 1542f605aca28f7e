/* Pictures that wait for a thread: they end with their clients and at their deadlines, and keep
 * nothing else waiting. One picture holds the only thread as long as the test likes, inside the
 * allocator. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/json/base64.h"
#include "engine/base/cpu.h"
#include "server/media/taps.h"
#include "tests/http/hold.h"
#include "tests/http/live.h"
#include "tests/support/test.h"

#define PATH  "/v2/models/digits/infer"
#define SIDE  32
#define WIDTH 100
/* Of the picture that holds the thread: no other memory has this size. */
#define HELD_HEIGHT 51
#define HELD_BYTES  ((size_t)WIDTH * HELD_HEIGHT * 4)
#define HEIGHT      20
/* What resizing takes for the columns: for each of the input, room for 47 weights of 6 bytes. (It
 * is made of up to 10 pixels of 4 channels, and weights come in eights.) */
#define RESIZE_BYTES ((sizeof(struct ifd_tap) + (size_t)47 * 6) * SIDE)
#define BMP_HEAD     54

struct world {
    struct live live;
    struct ifd_alloc alloc;
    struct hold hold;
    atomic_int pixel_blocks; /* of pictures that do not hold the thread */
    atomic_int resized; /* pictures that were decoded to their end since the thread was let go */
};

struct request {
    char text[WIDTH * HELD_HEIGHT * 3 + 1000];
    size_t size;
};

static void *acquire(void *context, size_t size, size_t align)
{
    struct world *world = context;
    const struct ifd_alloc *system = ifd_alloc_system();
    if (size == HELD_BYTES) {
        hold_here(&world->hold);
    }
    world->resized += size == RESIZE_BYTES;
    world->pixel_blocks += size == (size_t)WIDTH * HEIGHT * 4;
    return system->acquire(system->context, size, align);
}

static void release(void *context, void *ptr, size_t size)
{
    const struct ifd_alloc *system = ifd_alloc_system();
    (void)context;
    system->release(system->context, ptr, size);
}

/* source: as in a query; "": none. */
static void write_picture(struct request *request, uint32_t height, const char *source)
{
    uint8_t head[BMP_HEAD] = {
        'B', 'M', [10] = BMP_HEAD, [14] = 40, [18] = WIDTH, [22] = (uint8_t)height, [28] = 24};
    const size_t bytes = sizeof(head) + (size_t)WIDTH * height * 3;
    const int size = snprintf(request->text, sizeof(request->text),
                              "POST " PATH "?source=%s HTTP/1.1\r\nHost: a\r\n"
                              "Content-Type: image/bmp\r\nContent-Length: %zu\r\n\r\n",
                              source, bytes);
    REQUIRE(size > 0 && (size_t)size + bytes <= sizeof(request->text));
    memset(request->text + size, 0, bytes);
    memcpy(request->text + size, head, sizeof(head));
    request->size = (size_t)size + bytes;
}

static int send_frame(const struct world *world, uint32_t height, const char *source)
{
    static struct request request;
    write_picture(&request, height, source);
    const int fd = client_connect(&world->live);
    REQUIRE(fd >= 0);
    client_send(fd, request.text, request.size);
    return fd;
}

static int send_picture(const struct world *world, uint32_t height)
{
    return send_frame(world, height, "");
}

/* The same picture as base64, in JSON with these parameters. */
static int send_json(const struct world *world, uint32_t height, const char *parameters)
{
    static struct request request;
    static char text[IFD_BASE64_TEXT_BYTES(sizeof(request.text)) + 1], head[300];
    write_picture(&request, height, "");
    const char *body = strstr(request.text, "\r\n\r\n") + 4;
    const size_t bytes = request.size - (size_t)(body - request.text);
    ifd_base64_encode((struct ifd_bytes){(const uint8_t *)body, bytes}, text);
    text[IFD_BASE64_TEXT_BYTES(bytes)] = '\0';
    const int size = snprintf(head, sizeof(head), "{\"parameters\":{%s},\"image\":\"", parameters);
    char line[200];
    (void)snprintf(line, sizeof(line),
                   "POST " PATH " HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n",
                   (size_t)size + strlen(text) + 2);
    const int fd = client_connect(&world->live);
    REQUIRE(fd >= 0);
    client_send_text(fd, line);
    client_send_text(fd, head);
    client_send_text(fd, text);
    client_send_text(fd, "\"}");
    return fd;
}

static void start(struct world *world, const char *option)
{
    char repository[200];
    (void)snprintf(repository, sizeof(repository), "--model-repository=%s", test_source("models"));
    const char *const options[] = {repository,
                                   "--model-control-mode=explicit",
                                   "--load-model=digits",
                                   "--image-threads=1",
                                   option,
                                   NULL};
    memset(world, 0, sizeof(*world));
    world->alloc = (struct ifd_alloc){.context = world, .acquire = acquire, .release = release};
    hold_init(&world->hold);
    live_start_in(&world->live, options, &world->alloc);
}

/* Returns the client whose picture holds the thread. */
static int begin(struct world *world, const char *option)
{
    start(world, option);
    const int fd = send_picture(world, HELD_HEIGHT);
    hold_wait(&world->hold);
    return fd;
}

static void let_go(struct world *world)
{
    world->resized = 0; /* something else at the start may be as large */
    hold_let_go(&world->hold);
}

static void end(struct world *world)
{
    live_stop(&world->live);
    hold_finish(&world->hold);
}

static const char aborted[] = "\ninferd_http_requests_total{outcome=\"aborted\"} ";
static const char late[] = "\ninferd_limit_hits_total{limit=\"default-timeout-ms\"} ";

static void pictures_of_clients_that_left_end_while_they_wait(void)
{
    static struct world world;
    const int held = begin(&world, "--image-max-pixels=1000000");
    for (int i = 0; i < 5; i++) {
        (void)close(send_picture(&world, HEIGHT));
    }
    live_wait_for_metric(&world.live, aborted, 5);
    const int stays = send_picture(&world, HEIGHT);
    let_go(&world);
    EXPECT_INT(client_read(held).status, 200);
    EXPECT_INT(client_read(stays).status, 200);
    EXPECT_INT(world.pixel_blocks, 1); /* of the one that stayed */
    EXPECT_INT(world.resized, 2);
    (void)close(held);
    (void)close(stays);
    end(&world);
}

static void pictures_wait_no_longer_than_their_deadline(void)
{
    static struct world world;
    const int held = begin(&world, "--default-timeout-ms=2000");
    const int other = send_picture(&world, HEIGHT);
    const struct answer answer = client_read(other);
    EXPECT_INT(answer.status, 503);
    EXPECT_HAS(answer.body, "Request timeout expired");
    EXPECT(live_metric(&world.live, late) >= 1);
    let_go(&world);
    EXPECT_INT(client_read(held).status, 200); /* decoding takes as long as it takes */
    EXPECT_INT(live_metric(&world.live, late), 1);
    EXPECT_INT(world.pixel_blocks, 0);
    EXPECT_INT(world.resized, 1);
    (void)close(held);
    (void)close(other);
    end(&world);
}

/* What the client says counts from its last byte; only the server's own timeout is of the wait. */
static void decoding_ends_with_the_requests_own_timeout(void)
{
    static struct world world;
    start(&world, "--default-timeout-ms=60000");
    const int held = send_json(&world, HELD_HEIGHT, "\"timeout\":200000");
    hold_wait(&world.hold);
    (void)usleep(250000);
    let_go(&world);
    const struct answer answer = client_read(held);
    EXPECT_INT(answer.status, 503);
    EXPECT_HAS(answer.body, "Request timeout expired");
    EXPECT_INT(live_metric(&world.live, late), 1);
    EXPECT_INT(world.resized, 0);
    (void)close(held);
    end(&world);
}

static void picture_of_a_client_that_left_is_decoded_no_further(void)
{
    static struct world world;
    (void)close(begin(&world, "--image-max-pixels=1000000"));
    /* the server notices the end of the first client before that of the second */
    (void)close(send_picture(&world, HEIGHT));
    live_wait_for_metric(&world.live, aborted, 1);
    let_go(&world);
    live_wait_for_metric(&world.live, aborted, 2);
    EXPECT_INT(world.resized, 0);
    end(&world);
}

static void pictures_that_wait_end_with_the_server(void)
{
    static struct world world;
    const int held = begin(&world, "--exit-timeout-secs=0");
    const int other = send_picture(&world, HEIGHT);
    live_wait_for_metric(&world.live, "\ninferd_http_requests_inflight ", 2);
    ifd_server_stop(world.live.server);
    const struct answer answer = client_read(other);
    EXPECT_INT(answer.status, 503);
    EXPECT_HAS(answer.body, "Server is stopping");
    let_go(&world);
    (void)close(held);
    (void)close(other);
    live_join(&world.live);
    EXPECT_INT(world.resized, 0);
}

static void large_json_does_not_wait_for_pictures(void)
{
    static struct world world;
    static char body[600000], head[300];
    const int held = begin(&world, "--image-max-pixels=1000000");
    int size = snprintf(body, sizeof(body),
                        "{\"inputs\":[{\"name\":\"image\",\"datatype\":\"UINT8\",\"shape\":"
                        "[1,%d,%d,3],\"data\":[0",
                        SIDE, SIDE);
    for (int i = 1; i < SIDE * SIDE * 3; i++) {
        size += snprintf(body + size, sizeof(body) - (size_t)size, ",%s0",
                         "                                                                      "
                         "                                        ");
    }
    size += snprintf(body + size, sizeof(body) - (size_t)size, "]}]}");
    REQUIRE(size > 256 << 10);
    (void)snprintf(head, sizeof(head),
                   "POST " PATH " HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", size);
    const int fd = client_connect(&world.live);
    REQUIRE(fd >= 0);
    client_send_text(fd, head);
    client_send(fd, body, (size_t)size);
    EXPECT_INT(client_read(fd).status, 200);
    let_go(&world);
    EXPECT_INT(client_read(held).status, 200);
    (void)close(fd);
    (void)close(held);
    end(&world);
}

/* Sends frames of many sources until all turns are taken: one for each core, one for each of the
 * model's instances. */
static uint32_t take_turns(const struct world *world, int *fd, uint32_t room)
{
    struct ifd_cpu cpu;
    ifd_cpu_detect(&cpu);
    const struct answer config = client_get(&world->live, "/v2/models/digits/config");
    const char *count = strstr(config.body, "\"count\":");
    REQUIRE(count != NULL);
    const uint32_t turns = (cpu.cores > 0 ? cpu.cores : 1) + (uint32_t)strtoul(count + 8, NULL, 10);
    char name[24];
    REQUIRE(turns <= room);
    for (uint32_t i = 0; i < turns; i++) {
        (void)snprintf(name, sizeof(name), "camera-%u", i);
        fd[i] = send_frame(world, HEIGHT, name);
    }
    live_wait_for_metric(&world->live, "\ninferd_http_requests_inflight ", turns + 1);
    return turns;
}

static const char waiting[] = "\ninferd_frames_waiting{model=\"digits\",version=\"1\"} ";

static const char ages[] = "\ninferd_frame_seconds_count{model=\"digits\",version=\"1\"} ";

static void expect_frames(const struct world *world, const char *result, long long want)
{
    char series[120];
    (void)snprintf(series, sizeof(series),
                   "\ninferd_frames_total{model=\"digits\",version=\"1\",result=\"%s\"} ", result);
    live_wait_for_metric(&world->live, series, want);
}

static void the_newest_frame_of_a_source_waits(void)
{
    static struct world world;
    int fd[256];
    const int held = begin(&world, "--image-max-pixels=1000000");
    const uint32_t turns = take_turns(&world, fd, 256);
    const int old = send_frame(&world, HEIGHT, "door");
    live_wait_for_metric(&world.live, waiting, 1);
    const int other = send_frame(&world, HEIGHT, "yard");
    live_wait_for_metric(&world.live, waiting, 2);
    const int new = send_frame(&world, HEIGHT, "door");
    const struct answer answer = client_read(old);
    EXPECT_INT(answer.status, 409);
    EXPECT_HAS(answer.body, "a newer frame of source 'door'");
    EXPECT_INT(live_metric(&world.live, waiting), 2);
    const int gone = send_frame(&world, HEIGHT, "gate");
    live_wait_for_metric(&world.live, waiting, 3);
    (void)close(gone);
    live_wait_for_metric(&world.live, waiting, 2);
    let_go(&world);
    EXPECT_INT(client_read(held).status, 200);
    for (uint32_t i = 0; i < turns; i++) {
        EXPECT_INT(client_read(fd[i]).status, 200);
        (void)close(fd[i]);
    }
    EXPECT_INT(client_read(other).status, 200);
    EXPECT_INT(client_read(new).status, 200);
    EXPECT_INT(world.pixel_blocks, turns + 2); /* what was skipped was never decoded */
    expect_frames(&world, "skipped", 1);
    expect_frames(&world, "answered", turns + 2);
    expect_frames(&world, "failed", 1); /* its client left */
    live_wait_for_metric(&world.live, ages, turns + 2);
    (void)close(held);
    (void)close(old);
    (void)close(other);
    (void)close(new);
    end(&world);
}

static void frames_wait_no_longer_than_their_deadline(void)
{
    static struct world world;
    int fd[256];
    const int held = begin(&world, "--default-timeout-ms=2000");
    const uint32_t turns = take_turns(&world, fd, 256);
    const int late_one = send_frame(&world, HEIGHT, "door");
    const struct answer answer = client_read(late_one);
    EXPECT_INT(answer.status, 503);
    EXPECT_HAS(answer.body, "Request timeout expired");
    for (uint32_t i = 0; i < turns; i++) { /* those wait for the thread */
        EXPECT_INT(client_read(fd[i]).status, 503);
        (void)close(fd[i]);
    }
    expect_frames(&world, "stale", turns + 1);
    let_go(&world);
    EXPECT_INT(client_read(held).status, 200);
    (void)close(held);
    (void)close(late_one);
    end(&world);
}

static void frames_that_wait_end_with_the_server(void)
{
    static struct world world;
    int fd[256];
    const int held = begin(&world, "--exit-timeout-secs=0");
    const uint32_t turns = take_turns(&world, fd, 256);
    const int other = send_frame(&world, HEIGHT, "door");
    live_wait_for_metric(&world.live, waiting, 1);
    ifd_server_stop(world.live.server);
    const struct answer answer = client_read(other);
    EXPECT_INT(answer.status, 503);
    EXPECT_HAS(answer.body, "Server is stopping");
    let_go(&world);
    for (uint32_t i = 0; i < turns; i++) {
        (void)close(fd[i]);
    }
    (void)close(held);
    (void)close(other);
    live_join(&world.live);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(pictures_of_clients_that_left_end_while_they_wait),
        T(picture_of_a_client_that_left_is_decoded_no_further),
        T(pictures_that_wait_end_with_the_server),
        T(pictures_wait_no_longer_than_their_deadline),
        T(decoding_ends_with_the_requests_own_timeout),
        T(large_json_does_not_wait_for_pictures),
        T(the_newest_frame_of_a_source_waits),
        T(frames_wait_no_longer_than_their_deadline),
        T(frames_that_wait_end_with_the_server),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

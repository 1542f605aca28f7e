/* A thread for each connection: it takes its camera's next frame, waits until it is due, sends it
 * and waits for the answer. */
#include "sender.h"

#include <inferd_client.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct camera {
    char name[80];
    uint64_t first_ns; /* when its frame 0 is due */
    unsigned index;
    pthread_mutex_t mutex; /* guards the rest */
    uint64_t next;         /* number of the next frame */
    struct ifd_counts counts;
};

struct sender {
    struct ifd_senders *all;
    struct camera *camera;
    struct ifd_client *client;
    pthread_t thread;
};

struct ifd_senders {
    const struct ifd_camera_options *options;
    struct ifd_feed *feed;
    uint64_t period_ns;
    struct camera *camera;
    struct sender *sender;
    unsigned camera_count, client_count, thread_count;
    atomic_bool has_ended;

    pthread_mutex_t mutex; /* guards the rest */
    pthread_cond_t stops;
    bool is_stopping;
    char failure[512];
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- a frame ---- */

/* The number of the camera's next frame. Frames that should have been sent a period ago are lost.
 */
static uint64_t take_number(const struct ifd_senders *all, struct camera *camera,
                            uint64_t *ret_due_ns)
{
    pthread_mutex_lock(&camera->mutex);
    const uint64_t now = now_ns();
    uint64_t due_ns = camera->first_ns + camera->next * all->period_ns;
    if (now > due_ns && now - due_ns >= all->period_ns) {
        const uint64_t missed = (now - due_ns) / all->period_ns;
        camera->counts.lost += missed;
        camera->next += missed;
        due_ns += missed * all->period_ns;
    }
    const uint64_t number = camera->next++;
    pthread_mutex_unlock(&camera->mutex);
    *ret_due_ns = due_ns;
    return number;
}

/* False: the senders stop. */
static bool wait_until(struct ifd_senders *all, uint64_t due_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(due_ns / 1000000000),
                                   .tv_nsec = (long)(due_ns % 1000000000)};
    pthread_mutex_lock(&all->mutex);
    while (!all->is_stopping && now_ns() < due_ns) {
        pthread_cond_timedwait(&all->stops, &all->mutex, &until);
    }
    const bool goes_on = !all->is_stopping;
    pthread_mutex_unlock(&all->mutex);
    return goes_on;
}

static void note_failure(struct ifd_senders *all, const char *name, const char *text)
{
    pthread_mutex_lock(&all->mutex);
    if (all->failure[0] == '\0') {
        snprintf(all->failure, sizeof(all->failure), "%s: %.400s", name, text);
    }
    pthread_mutex_unlock(&all->mutex);
}

static void send_frame(struct sender *sender, const struct ifd_frame *frame, uint64_t due_ns)
{
    struct ifd_senders *all = sender->all;
    struct camera *camera = sender->camera;
    struct ifd_client_result *result = NULL;
    struct ifd_client_err err = {0};
    const char *type = frame->content_type ? frame->content_type : "application/octet-stream";
    const enum ifd_client_code code =
        ifd_client_infer_frame(sender->client, all->options->model, all->options->version,
                               camera->name, type, frame->data, frame->bytes, &result, &err);
    const uint64_t since_ns = frame->taken_ns > 0 ? frame->taken_ns : due_ns;
    const uint64_t age_ns = now_ns() - since_ns;
    const int status = code == IFD_CLIENT_REFUSED ? err.http_status : 0;
    if (code == IFD_CLIENT_OK) {
        ifd_client_result_destroy(result);
    } else if (status != 409 && status != 503) {
        note_failure(all, camera->name, err.text);
    }
    pthread_mutex_lock(&camera->mutex);
    camera->counts.sent++;
    if (code == IFD_CLIENT_OK) {
        camera->counts.answered++;
        ifd_spread_add(&camera->counts.age, age_ns);
    } else if (status == 409) {
        camera->counts.skipped++;
    } else if (status == 503) {
        camera->counts.refused++;
    } else {
        camera->counts.failed++;
    }
    pthread_mutex_unlock(&camera->mutex);
}

static void *run(void *arg)
{
    struct sender *sender = arg;
    struct ifd_senders *all = sender->all;
    struct ifd_frame frame = {0};
    uint64_t due_ns = 0;
    bool goes_on = true;
    while (goes_on) {
        const uint64_t number = take_number(all, sender->camera, &due_ns);
        goes_on = wait_until(all, due_ns);
        if (goes_on && !ifd_feed_take(all->feed, sender->camera->index + number, &frame)) {
            note_failure(all, sender->camera->name, "no frame");
            atomic_store(&all->has_ended, true);
            goes_on = false;
        }
        if (goes_on) {
            send_frame(sender, &frame, due_ns);
        }
    }
    ifd_frame_finish(&frame);
    return NULL;
}

/* ---- life ---- */

static bool make_sender(struct ifd_senders *all, struct camera *camera, const char *token,
                        char *text, size_t text_bytes)
{
    struct sender *sender = &all->sender[all->client_count];
    const struct ifd_client_options options = {
        .url = all->options->url, .token = token, .timeout_ms = all->options->timeout_ms};
    struct ifd_client_err err = {0};
    *sender = (struct sender){.all = all, .camera = camera};
    if (ifd_client_create(&options, &sender->client, &err) != IFD_CLIENT_OK) {
        snprintf(text, text_bytes, "%s", err.text);
        return false;
    }
    all->client_count++;
    return true;
}

static void init_camera(struct ifd_senders *all, uint64_t begin_ns)
{
    struct camera *camera = &all->camera[all->camera_count];
    const unsigned count = all->options->cameras;
    camera->index = all->camera_count++;
    camera->first_ns = begin_ns + all->period_ns / count * camera->index;
    snprintf(camera->name, sizeof(camera->name), "%.64s%u", all->options->prefix, camera->index);
    pthread_mutex_init(&camera->mutex, NULL);
}

static bool start_all(struct ifd_senders *all, const char *token, char *text, size_t text_bytes)
{
    const struct ifd_camera_options *options = all->options;
    const uint64_t begin_ns = now_ns() + 100000000; /* when all threads are there */
    for (unsigned i = 0; i < options->cameras; i++) {
        init_camera(all, begin_ns);
        for (unsigned k = 0; k < options->connections; k++) {
            if (!make_sender(all, &all->camera[i], token, text, text_bytes)) {
                return false;
            }
        }
    }
    for (unsigned i = 0; i < all->client_count; i++) {
        if (pthread_create(&all->sender[i].thread, NULL, run, &all->sender[i]) != 0) {
            snprintf(text, text_bytes, "no thread for connection %u of %u", i, all->client_count);
            return false;
        }
        all->thread_count++;
    }
    return true;
}

struct ifd_senders *ifd_senders_start(const struct ifd_camera_options *options, const char *token,
                                      struct ifd_feed *feed, char *text, size_t text_bytes)
{
    struct ifd_senders *all = calloc(1, sizeof(*all));
    struct camera *camera = calloc(options->cameras, sizeof(*camera));
    struct sender *sender =
        calloc((size_t)options->cameras * options->connections, sizeof(*sender));
    if (!all || !camera || !sender) {
        snprintf(text, text_bytes, "out of memory");
        free(all);
        free(camera);
        free(sender);
        return NULL;
    }
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&all->stops, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&all->mutex, NULL);
    all->options = options;
    all->feed = feed;
    all->period_ns = (uint64_t)(1e9 / options->rate);
    all->camera = camera;
    all->sender = sender;
    if (!start_all(all, token, text, text_bytes)) {
        ifd_senders_stop(all);
        ifd_senders_destroy(all);
        return NULL;
    }
    return all;
}

bool ifd_senders_have_ended(struct ifd_senders *all)
{
    return atomic_load(&all->has_ended);
}

void ifd_senders_stop(struct ifd_senders *all)
{
    pthread_mutex_lock(&all->mutex);
    all->is_stopping = true;
    pthread_cond_broadcast(&all->stops);
    pthread_mutex_unlock(&all->mutex);
    for (unsigned i = 0; i < all->thread_count; i++) {
        pthread_join(all->sender[i].thread, NULL);
    }
    all->thread_count = 0;
}

const struct ifd_counts *ifd_senders_counts(const struct ifd_senders *all, unsigned camera)
{
    return &all->camera[camera].counts;
}

const char *ifd_senders_failure(const struct ifd_senders *all)
{
    return all->failure;
}

void ifd_senders_destroy(struct ifd_senders *all)
{
    for (unsigned i = 0; i < all->client_count; i++) {
        ifd_client_destroy(all->sender[i].client);
    }
    for (unsigned i = 0; i < all->camera_count; i++) {
        pthread_mutex_destroy(&all->camera[i].mutex);
    }
    pthread_cond_destroy(&all->stops);
    pthread_mutex_destroy(&all->mutex);
    free(all->camera);
    free(all->sender);
    free(all);
}

/* inferd-camera: sends pictures as cameras do, and prints what became of them. */
#include <errno.h>
#include <inferd_client.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sender.h"
#include "token_file.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_UNREACHABLE = 3, LOOK_NS = 200000000 };

/* Waits until a signal comes, the time is over, or the device has ended. The signals are blocked.
 */
static void wait_for_end(const sigset_t *signals, double seconds, struct ifd_senders *senders)
{
    struct timespec begin, now;
    double passed = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while ((seconds <= 0 || passed < seconds) && !ifd_senders_have_ended(senders)) {
        const double left = seconds > 0 ? (seconds - passed) * 1e9 : LOOK_NS;
        const struct timespec look = {.tv_nsec = left < LOOK_NS ? (long)left : LOOK_NS};
        if (sigtimedwait(signals, NULL, &look) > 0) {
            return;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        passed = (double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9;
    }
}

static void print_row(const char *name, const struct ifd_counts *counts)
{
    printf("%-12.40s %8llu %8llu %8llu %8llu %8llu %8llu %8.1f %8.1f %8.1f\n", name,
           (unsigned long long)counts->sent, (unsigned long long)counts->answered,
           (unsigned long long)counts->skipped, (unsigned long long)counts->refused,
           (unsigned long long)counts->failed, (unsigned long long)counts->lost,
           (double)ifd_spread_at(&counts->age, 0.5) / 1e6,
           (double)ifd_spread_at(&counts->age, 0.99) / 1e6, (double)counts->age.max_ns / 1e6);
}

static void add(struct ifd_counts *counts, const struct ifd_counts *other)
{
    counts->sent += other->sent;
    counts->answered += other->answered;
    counts->skipped += other->skipped;
    counts->refused += other->refused;
    counts->failed += other->failed;
    counts->lost += other->lost;
    ifd_spread_merge(&counts->age, &other->age);
}

static int report(const struct ifd_camera_options *options, const struct ifd_senders *senders)
{
    struct ifd_counts all = {0};
    uint64_t least = UINT64_MAX, most = 0;
    printf("%-12s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", "", "sent", "answered", "skipped",
           "refused", "failed", "lost", "p50 ms", "p99 ms", "max ms");
    for (unsigned i = 0; i < options->cameras; i++) {
        const struct ifd_counts *counts = ifd_senders_counts(senders, i);
        char name[80];
        snprintf(name, sizeof(name), "%.64s%u", options->prefix, i);
        if (options->prints_each) {
            print_row(name, counts);
        }
        add(&all, counts);
        least = counts->answered < least ? counts->answered : least;
        most = counts->answered > most ? counts->answered : most;
    }
    print_row("all", &all);
    printf("answered of each camera: %llu to %llu\n", (unsigned long long)least,
           (unsigned long long)most);
    if (ifd_senders_failure(senders)[0] != '\0') {
        fprintf(stderr, "inferd-camera: %s\n", ifd_senders_failure(senders));
    }
    if (fflush(stdout) != 0) {
        return EXIT_USAGE;
    }
    return all.answered == 0 ? EXIT_UNREACHABLE : all.failed > 0 ? EXIT_FAILED : EXIT_SUCCESS;
}

static int run(const struct ifd_camera_options *options, const char *token)
{
    char text[512] = "";
    sigset_t signals;
    struct ifd_feed *feed =
        ifd_feed_open(options->path, options->width, options->height, text, sizeof(text));
    if (!feed) {
        fprintf(stderr, "inferd-camera: %s\n", text);
        return EXIT_USAGE;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* all threads inherit it */
    struct ifd_senders *senders = ifd_senders_start(options, token, feed, text, sizeof(text));
    int status = EXIT_USAGE;
    if (senders) {
        wait_for_end(&signals, options->seconds, senders);
        ifd_senders_stop(senders);
        status = report(options, senders);
        ifd_senders_destroy(senders);
    } else {
        fprintf(stderr, "inferd-camera: %s\n", text);
    }
    ifd_feed_close(feed);
    return status;
}

int main(int argc, char **argv)
{
    struct ifd_camera_options options;
    struct ifd_client_err err = {0};
    char token[IFD_TOKEN_BYTES];
    int status = EXIT_SUCCESS;
    if (!ifd_camera_options(argc, argv, &options, &status)) {
        return status;
    }
    if (options.token_file &&
        ifd_token_file_read(options.token_file, token, &err) != IFD_CLIENT_OK) {
        fprintf(stderr, "inferd-camera: %s\n", err.text);
        return EXIT_USAGE;
    }
    return run(&options, options.token_file ? token : NULL);
}

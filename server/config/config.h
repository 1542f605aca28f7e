/** Settings: the table in config_list.inc as a struct, filled from a file and the command line; and what the environment
 *  says, which nothing else reads. Thread: any. */
#ifndef INFERD_SERVER_CONFIG_CONFIG_H
#define INFERD_SERVER_CONFIG_CONFIG_H

#include <stdio.h>

#include "inferd/status.h"

/** Values of a LIST setting at most. */
#define IFD_CONFIG_LIST_MAX   32
#define IFD_CONFIG_TEXT_BYTES 4096
/** Of the file that --config names. */
#define IFD_CONFIG_FILE_BYTES 16384

struct ifd_config_list {
    const char *item[IFD_CONFIG_LIST_MAX];
    uint32_t count;
};

/** Texts point into argv or to memory of the struct. */
struct ifd_config {
    struct ifd_config_list repositories, load_models, backends;
    const char *model_control_mode, *http_address, *http_socket, *admin_socket, *id,
        *metrics_address, *state_dir, *cache_dir, *precision, *config_file, *log_format,
        *access_log, *access_log_format, *performance_hint, *token_file;
    bool admin_on_http, warms_up, strict_readiness, exit_on_error, exact, fast, inline_identity,
        allow_metrics, metrics_triton_names;
    uint32_t model_load_threads, poll_secs, settle_ms, dwell_secs, swaps_per_hour,
        warm_up_timeout_ms, threads, http_port, metrics_port, max_connections,
        max_connections_per_address, idle_timeout_secs, receive_timeout_secs, max_header_bytes,
        header_timeout_secs, min_receive_rate, send_timeout_secs, min_send_rate, max_queue_size,
        spin_us, inline_run_us, cache_size_mb, default_timeout_ms, image_threads, exit_timeout_secs,
        log_verbose;
    uint64_t max_model_bytes, memory_budget, request_memory, http_max_input_size, image_max_pixels;

    char list_text[IFD_CONFIG_TEXT_BYTES]; /* copies of list items that had to be cut at commas */
    size_t list_text_used;
    char file_text[IFD_CONFIG_FILE_BYTES]; /* the file, cut into names and values */
};

/** Defaults, then the file of --config, then argv[0 … argc-1] (without program and sub-command): --flag value,
 *  --flag=value, or a bare folder. *ret must not move afterwards.
 *  Errors: INVALID (unknown flag, with the nearest one that exists; value out of range), TOO_LARGE, IO (the file); what is
 *  wrong in the file is said with its line. */
IFD_NODISCARD enum ifd_code ifd_config_parse(int argc, char **argv, struct ifd_config *ret,
                                             struct ifd_err *err);

/** Takes over from next what SIGHUP may change (the LIVE rows). changed is called for every setting that differs:
 *  is_live false: it stays as it was. */
void ifd_config_update(struct ifd_config *config, const struct ifd_config *next,
                       void (*changed)(void *arg, const char *flag, bool is_live), void *arg);

/** What a service manager passed on. */
struct ifd_environment {
    const char *notify_socket;  /* NULL: none */
    const char *journal_stream; /* NULL: none */
    uint64_t watchdog_us;       /* 0: nobody waits for pings */
};
struct ifd_environment ifd_config_environment(void);

/** What `inferd serve --help` prints. */
void ifd_config_help(FILE *out);
/** The manual page inferd(1), as troff. */
void ifd_config_man(FILE *out);

#endif

/** Settings: the table config_list.inc as a struct, filled from a file and the command line; and
 *  the environment, which nothing else reads. Thread: any. */
#ifndef INFERD_SERVER_CONFIG_CONFIG_H
#define INFERD_SERVER_CONFIG_CONFIG_H

#include <stdio.h>

#include "inferd/status.h"
#include "inferd/types.h"

/** Most values of a LIST setting. */
#define IFD_CONFIG_LIST_MAX   32
#define IFD_CONFIG_TEXT_BYTES 4096
/** Largest file of --config. */
#define IFD_CONFIG_FILE_BYTES 16384

struct ifd_config_list {
    const char *item[IFD_CONFIG_LIST_MAX];
    uint32_t count;
};

/* Words of the CHOICE settings: X(constant of the enum, word). */
#define IFD_CONTROL_MODES(X)                                                                       \
    X(IFD_CONTROL_NONE, "none") X(IFD_CONTROL_EXPLICIT, "explicit") X(IFD_CONTROL_POLL, "poll")
#define IFD_PERFORMANCE_HINTS(X) X(IFD_HINT_LATENCY, "latency") X(IFD_HINT_THROUGHPUT, "throughput")
#define IFD_LINE_FORMATS(X)      X(IFD_LINES_TEXT, "text") X(IFD_LINES_JSON, "json")
#define IFD_PRECISION_WORDS(X)                                                                     \
    X(IFD_PRECISION_F32, "f32") X(IFD_PRECISION_BF16, "bf16") X(IFD_PRECISION_FP16, "fp16")

#define X(id, word) id,
enum ifd_control_mode { IFD_CONTROL_MODES(X) };
enum ifd_performance_hint { IFD_PERFORMANCE_HINTS(X) };
enum ifd_line_format { IFD_LINE_FORMATS(X) };
#undef X

/** How a running server takes over a LIVE setting that changed. */
#define IFD_APPLIERS(X)                                                                            \
    X(USE)  /* no applier: it is read at each use, and never copied */                             \
    X(HTTP) /* ifd_http_change_limits */                                                           \
    X(API)  /* ifd_api_change_max_input */                                                         \
    X(LOG)  /* the levels of the log */

#define X(id) IFD_APPLIER_##id,
enum ifd_applier { IFD_APPLIERS(X) IFD_APPLIER_COUNT };
#undef X

/** The value of each setting. Texts point into argv or to memory of the struct. */
struct ifd_config {
#define MEMBER_U32(member, choice)    uint32_t member;
#define MEMBER_U64(member, choice)    uint64_t member;
#define MEMBER_BOOL(member, choice)   bool member;
#define MEMBER_TEXT(member, choice)   const char *member;
#define MEMBER_LIST(member, choice)   struct ifd_config_list member;
#define MEMBER_CHOICE(member, choice) enum choice member;
#define SETTING(section, member, flag, type, fallback, min, max, unit, text)                       \
    MEMBER_##type(member, min)
#define LIVE(applier, section, member, flag, type, fallback, min, max, unit, text)                 \
    MEMBER_##type(member, min)
#include "server/config/config_list.inc"
#undef LIVE
#undef SETTING
#undef MEMBER_CHOICE
#undef MEMBER_LIST
#undef MEMBER_TEXT
#undef MEMBER_BOOL
#undef MEMBER_U64
#undef MEMBER_U32

    char list_text[IFD_CONFIG_TEXT_BYTES]; /* copies of list items */
    size_t list_text_used;
    char file_text[IFD_CONFIG_FILE_BYTES]; /* the file, cut into names and values */
};

/** max_model_bytes as far as this machine can address it. */
static inline size_t ifd_config_model_bytes(const struct ifd_config *config)
{
    return config->max_model_bytes < SIZE_MAX ? (size_t)config->max_model_bytes : SIZE_MAX;
}

/** Defaults, then the file of --config, then argv[0 … argc-1] (without program and sub-command):
 *  --flag value, --flag=value, or a bare folder. *ret must not move afterwards. Errors: INVALID
 *  (unknown flag, with the nearest one that exists; value out of range), TOO_LARGE, IO (the file);
 *  errors of the file have its line. */
IFD_NODISCARD enum ifd_code ifd_config_parse(int argc, char **argv, struct ifd_config *ret,
                                             struct ifd_err *err);

/** Takes over the LIVE settings from next. Calls changed for every setting that differs; is_live
 *  false: it stays. Returns the appliers of those that changed: bit 1 << enum ifd_applier. */
IFD_NODISCARD unsigned ifd_config_update(struct ifd_config *config, const struct ifd_config *next,
                                         void (*changed)(void *arg, const char *flag, bool is_live),
                                         void *arg);

/** Environment of a service manager. */
struct ifd_environment {
    const char *notify_socket;  /* NULL: none */
    const char *journal_stream; /* NULL: none */
    uint64_t watchdog_us;       /* 0: no pings */
};
struct ifd_environment ifd_config_environment(void);

/** Prints `inferd serve --help`. */
void ifd_config_help(FILE *out);
/** Prints the manual pages inferd(1) and inferd.conf(5), as troff. */
void ifd_config_man(FILE *out);
void ifd_config_man_file(FILE *out);
/** Prints docs/config.md. */
void ifd_config_markdown(FILE *out);
/** Prints the completions of the two shells. */
void ifd_config_bash(FILE *out);
void ifd_config_zsh(FILE *out);

#endif

/** Arguments of a command: positional words, --name value (or --name=value), --switch. One table
 *  gives parsing, errors and help. Values point into argv. */
#ifndef INFERD_ENGINE_TOOLS_ARGS_H
#define INFERD_ENGINE_TOOLS_ARGS_H

#include "inferd/status.h"

#define IFD_ARGS_REPEAT_MAX 64

enum ifd_arg_kind { IFD_ARG_SWITCH, IFD_ARG_TEXT, IFD_ARG_NUMBER, IFD_ARG_LIST };

/** One option. target by kind: bool *, const char **, uint32_t *, struct ifd_arg_list *. */
struct ifd_arg {
    const char *name; /* without the dashes */
    enum ifd_arg_kind kind;
    void *target;
    uint32_t min, max; /* NUMBER */
    const char *value; /* the value's name in the help: "FILE" */
    const char *doc;
};

struct ifd_arg_list {
    const char *item[IFD_ARGS_REPEAT_MAX];
    uint32_t count;
};

typedef enum ifd_code (*ifd_command_fn)(void *arg, struct ifd_err *err);

struct ifd_command {
    const char *name;       /* "run" */
    const char *positional; /* "MODEL" */
    const char *doc;        /* one sentence */
    const struct ifd_arg *arg;
    uint32_t arg_count;
    ifd_command_fn check; /* checks the options before the model is opened */
    ifd_command_fn body;
};

/** Parses argv[1 … argc-1] (argv[0] is the command), then calls check(arg, err) and body(arg,
 *  err). Expects exactly one positional word; --help prints the help and does nothing else.
 *  Prints an error to stderr in one line. Returns the exit status: 0 done, 1 body failed, 2
 *  wrong usage. */
int ifd_command_main(const struct ifd_command *command, int argc, char **argv,
                     const char **ret_positional, void *arg);

#endif

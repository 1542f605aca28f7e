/** Shared by the files of inferctl: cli.c reads the command line, cli_text.c explains it, the
 *  others are the commands. Not for users. Thread: one. */
#ifndef INFERD_CLIENTS_C_CLI_H
#define INFERD_CLIENTS_C_CLI_H

#include <stdio.h>

#include "inferd_client.h"

#define IFD_CLI_INPUTS_MAX     64
#define IFD_CLI_NEEDS_INPUT    "needs --input: .npy files, or one picture or sound"
#define IFD_CLI_CLIENTS_MAX    1024       /**< of bench */
#define IFD_CLI_FILE_BYTES_MAX 2147483647 /**< the largest --http-max-input-size of a server */

struct ifd_cli_arguments {
    const char *url, *admin_socket, *token_file, *config, *version, *output_dir, *command, *model;
    const char *inputs[IFD_CLI_INPUTS_MAX];
    size_t input_count;
    long timeout_ms;
    unsigned top_count;
    bool is_json;
    const struct ifd_client_options *connection; /**< for commands that need more clients */
    unsigned clients, rate, seconds, warm_up;    /**< of bench; rate 0: closed loop */
    bool is_report_json;
};

/** Whether the word behind a command is there. */
enum ifd_cli_model { IFD_CLI_MODEL_NONE, IFD_CLI_MODEL_OPTIONAL, IFD_CLI_MODEL_NEEDED };

/** Fills err with "subject: why"; returns its code. */
enum ifd_client_code ifd_cli_fail(struct ifd_client_err *err, const char *subject, const char *why);
/** Reads the whole file, with room for one more byte; free(3) it. Errors: INVALID (no regular file,
 *  2 GiB or more, unreadable). */
enum ifd_client_code ifd_cli_read_file(const char *path, void **ret_data, size_t *ret_bytes,
                                       struct ifd_client_err *err);

/** What the arguments say to send; .npy files, one picture or sound, or zeros without any. The
 *  metadata of the model is asked for tensors. */
struct ifd_cli_request;
enum ifd_client_code ifd_cli_request_create(struct ifd_client *client,
                                            const struct ifd_cli_arguments *args,
                                            struct ifd_cli_request **ret_request,
                                            struct ifd_client_err *err);
/** Any number of threads may send one request, each by its own client. */
enum ifd_client_code ifd_cli_request_send(struct ifd_client *client,
                                          const struct ifd_cli_request *request,
                                          struct ifd_client_result **ret_result,
                                          struct ifd_client_err *err);
/** Accepts NULL. */
void ifd_cli_request_destroy(struct ifd_cli_request *request);

/** Prints the help. */
void ifd_cli_usage(FILE *out);
/** Prints the text that the argument names (--version, --man, --bash-completion, --zsh-completion);
 *  false: it names none. */
bool ifd_cli_print(const char *argument);

/* ---- the commands of cli_list.inc: each asks, and prints the answer ---- */

#define COMMAND(name, model, function, arguments, text)                                            \
    enum ifd_client_code function(struct ifd_client *client, const struct ifd_cli_arguments *args, \
                                  struct ifd_client_err *err);
#define OPTION(letter, name, value, text)
#include "cli_list.inc"
#undef OPTION
#undef COMMAND

#endif

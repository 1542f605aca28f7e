/** Shared by cli.c, which reads the command line, and cli_infer.c, its largest command. Not for
 *  users. Thread: one. */
#ifndef INFERD_CLIENTS_C_CLI_H
#define INFERD_CLIENTS_C_CLI_H

#include "inferd_client.h"

#define IFD_CLI_INPUTS_MAX 64

struct ifd_cli_arguments {
    const char *url, *admin_socket, *token_file, *config, *version, *output_dir, *command, *model;
    const char *inputs[IFD_CLI_INPUTS_MAX];
    size_t input_count;
    long timeout_ms;
    unsigned top_count;
    bool is_json;
};

/** Fills err with "subject: why"; returns its code. */
enum ifd_client_code ifd_cli_fail(struct ifd_client_err *err, const char *subject, const char *why);
/** Reads the whole file, with room for one more byte; free(3) it. Errors: INVALID (no regular file,
 *  2 GiB or more, unreadable). */
enum ifd_client_code ifd_cli_read_file(const char *path, void **ret_data, size_t *ret_bytes,
                                       struct ifd_client_err *err);

/** The command infer: reads the inputs, sends them, prints and writes the outputs. (cli_infer.c) */
enum ifd_client_code ifd_cli_infer(struct ifd_client *client, const struct ifd_cli_arguments *args,
                                   struct ifd_client_err *err);

#endif

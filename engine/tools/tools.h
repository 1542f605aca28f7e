/** The engine's commands: `inferd run | check | inspect | compare | bench`. Each takes its name and
 *  arguments, prints to stdout, reports an error to stderr in one line, and returns an exit
 *  status: 0 done, 1 failed, 2 wrong usage.
 *
 *  They use inferd/engine.h only; struct ifd_tool_host provides the rest. Thread: one at a time. */
#ifndef INFERD_ENGINE_TOOLS_TOOLS_H
#define INFERD_ENGINE_TOOLS_TOOLS_H

#include "inferd/engine.h"

/** Decodes a picture for an image input into data; bytes: size of one sample. */
typedef enum ifd_code (*ifd_tool_image_fn)(struct ifd_bytes picture, const struct ifd_port *port,
                                           void *data, size_t bytes, struct ifd_err *err);

struct ifd_tool_host {
    const struct ifd_backend *const *backends; /* in default order of preference */
    uint32_t backend_count;
    ifd_tool_image_fn decode_image; /* NULL: pictures are refused */
};

int ifd_tool_run(const struct ifd_tool_host *host, int argc, char **argv);
int ifd_tool_check(const struct ifd_tool_host *host, int argc, char **argv);
int ifd_tool_inspect(const struct ifd_tool_host *host, int argc, char **argv);
int ifd_tool_compare(const struct ifd_tool_host *host, int argc, char **argv);
int ifd_tool_bench(const struct ifd_tool_host *host, int argc, char **argv);

#endif

/* The table of formats: one row each, recognized by content. */
#include "engine/parse/parse.h"

#include <stdio.h>

#include "engine/parse/onnx/onnx.h"
#include "engine/parse/tflite/tflite.h"

struct format {
    bool (*sniff)(struct ifd_bytes file);
    /** NULL: none lie outside. */
    enum ifd_code (*externals)(struct ifd_bytes file, const struct ifd_limits *limits,
                               struct ifd_arena *arena, struct ifd_external_names *ret,
                               struct ifd_err *err);
    enum ifd_code (*parse)(struct ifd_bytes file, const struct ifd_parse_options *options,
                           struct ifd_graph *graph, struct ifd_parsed *ret, struct ifd_err *err);
};

static const struct format formats[] = {
    {ifd_tflite_sniff, NULL, ifd_tflite_parse},
    {ifd_onnx_sniff, ifd_onnx_externals, ifd_onnx_parse},
};

/* Below the parser INVALID means a wrong argument; here the argument came from the file. */
static enum ifd_code blame_file(enum ifd_code code, struct ifd_err *err)
{
    if (code != IFD_INVALID) {
        return code;
    }
    if (err) {
        err->code = IFD_CORRUPT;
    }
    return IFD_CORRUPT;
}

enum ifd_code ifd_parse_externals(struct ifd_bytes file, const struct ifd_limits *limits,
                                  struct ifd_arena *arena, struct ifd_external_names *ret,
                                  struct ifd_err *err)
{
    *ret = (struct ifd_external_names){0};
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (formats[i].sniff(file) && formats[i].externals) {
            return formats[i].externals(file, limits, arena, ret, err);
        }
    }
    return IFD_OK;
}

enum ifd_code ifd_parse(struct ifd_bytes file, const struct ifd_parse_options *options,
                        struct ifd_graph *graph, struct ifd_parsed *ret, struct ifd_err *err)
{
    *ret = (struct ifd_parsed){0};
    if (file.size > options->limits->file_bytes) {
        return ifd_fail(err, IFD_TOO_LARGE, "the file has %zu bytes, limit %zu", file.size,
                        options->limits->file_bytes);
    }
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (formats[i].sniff(file)) {
            const enum ifd_code code = formats[i].parse(file, options, graph, ret, err);
            if (code == IFD_OK && options->kept && !options->kept->content) {
                options->kept->content = graph->arena;
            }
            return blame_file(code, err);
        }
    }
    if (file.size == 0) {
        return ifd_fail(err, IFD_CORRUPT, "the file is empty");
    }
    char found[3 * 8 + 1] = "";
    for (size_t i = 0; i < 8 && i < file.size; i++) {
        snprintf(found + 3 * i, sizeof(found) - 3 * i, " %02x", file.data[i]);
    }
    return ifd_fail(err, IFD_CORRUPT, "unknown model format: %zu bytes that begin with%s",
                    file.size, found);
}

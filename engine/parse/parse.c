/* The table of formats: one row each, recognized by content. */
#include "engine/parse/parse.h"

#include <stdio.h>

#include "engine/parse/tflite/tflite.h"

struct format {
    bool (*sniff)(struct ifd_bytes file);
    enum ifd_code (*parse)(struct ifd_bytes file, const struct ifd_limits *limits,
                           struct ifd_graph *graph, struct ifd_parsed *ret, struct ifd_err *err);
};

/* ONNX is a protobuf without a magic number. It begins with the field ir_version (number 1,
 * varint: byte 08), a small number; a field with a length follows: of the model, or an opset
 * import. */
static bool sniff_onnx(struct ifd_bytes file)
{
    return file.size > 2 && file.data[0] == 0x08 && file.data[1] >= 1 && file.data[1] <= 0x20 &&
           (file.data[2] & 7) == 2 && file.data[2] >> 3 <= 20 && file.data[2] >> 3 >= 2;
}

static enum ifd_code refuse_onnx(struct ifd_bytes file, const struct ifd_limits *limits,
                                 struct ifd_graph *graph, struct ifd_parsed *ret,
                                 struct ifd_err *err)
{
    (void)file;
    (void)limits;
    (void)graph;
    (void)ret;
    return ifd_fail(err, IFD_UNSUPPORTED, "ONNX models are not supported yet");
}

static const struct format formats[] = {
    {ifd_tflite_sniff, ifd_tflite_parse},
    {sniff_onnx, refuse_onnx},
};

enum ifd_code ifd_parse(struct ifd_bytes file, const struct ifd_limits *limits,
                        struct ifd_graph *graph, struct ifd_parsed *ret, struct ifd_err *err)
{
    if (file.size > limits->file_bytes) {
        return ifd_fail(err, IFD_TOO_LARGE, "the file has %zu bytes, limit %zu", file.size,
                        limits->file_bytes);
    }
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (formats[i].sniff(file)) {
            return formats[i].parse(file, limits, graph, ret, err);
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

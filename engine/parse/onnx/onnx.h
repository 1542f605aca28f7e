/** The ONNX format. Thread: any. */
#ifndef INFERD_ENGINE_PARSE_ONNX_ONNX_H
#define INFERD_ENGINE_PARSE_ONNX_ONNX_H

#include "engine/parse/parse.h"

bool ifd_onnx_sniff(struct ifd_bytes file);

/** As ifd_parse(). A dimension that the file leaves open is 1 if it is the first of an input (the
 *  batch), and refused elsewhere. */
IFD_NODISCARD enum ifd_code ifd_onnx_parse(struct ifd_bytes file, const struct ifd_limits *limits,
                                           struct ifd_graph *graph, struct ifd_parsed *ret,
                                           struct ifd_err *err);

#endif

/** The ONNX format. Thread: any. */
#ifndef INFERD_ENGINE_PARSE_ONNX_ONNX_H
#define INFERD_ENGINE_PARSE_ONNX_ONNX_H

#include "engine/parse/parse.h"

bool ifd_onnx_sniff(struct ifd_bytes file);

/** As ifd_parse(), for a file that ifd_onnx_sniff() accepted. */
IFD_NODISCARD enum ifd_code ifd_onnx_parse(struct ifd_bytes file,
                                           const struct ifd_parse_options *options,
                                           struct ifd_graph *graph, struct ifd_parsed *ret,
                                           struct ifd_err *err);
/** As ifd_parse_externals(). */
IFD_NODISCARD enum ifd_code ifd_onnx_externals(struct ifd_bytes file,
                                               const struct ifd_limits *limits,
                                               struct ifd_arena *arena,
                                               struct ifd_external_names *ret, struct ifd_err *err);

#endif

/** The TFLite format: verified FlatBuffer → semantic check → graph. Row of parse.c. Thread: any. */
#ifndef INFERD_ENGINE_PARSE_TFLITE_TFLITE_H
#define INFERD_ENGINE_PARSE_TFLITE_TFLITE_H

#include "engine/parse/parse.h"

/** True if the file has the identifier of a TFLite model, damaged or not. */
bool ifd_tflite_sniff(struct ifd_bytes file);

/** As ifd_parse(), for a file that ifd_tflite_sniff() accepted. */
IFD_NODISCARD enum ifd_code ifd_tflite_parse(struct ifd_bytes file,
                                             const struct ifd_parse_options *options,
                                             struct ifd_graph *graph, struct ifd_parsed *ret,
                                             struct ifd_err *err);

#endif

/** Model files: recognizes the format by its content and turns untrusted bytes into a verified
 *  graph or a precise error. One row per format in parse.c. Thread: any. */
#ifndef INFERD_ENGINE_PARSE_PARSE_H
#define INFERD_ENGINE_PARSE_PARSE_H

#include "engine/ir/graph.h"
#include "inferd/engine.h"

/** A file's content besides the graph, all in the arena. Ports are in the order of the graph's
 *  inputs and outputs; the engine fills their desc and batched. */
struct ifd_parsed {
    const char *format;
    uint32_t format_version;
    const char *description;
    struct ifd_port *input, *output;
};

/** file must outlive the graph: constants are used in place. limits: every field set. graph:
 *  initialized by the caller. After OK the graph verifies, every operator is known, every shape
 *  is inferred. */
IFD_NODISCARD enum ifd_code ifd_parse(struct ifd_bytes file, const struct ifd_limits *limits,
                                      struct ifd_graph *graph, struct ifd_parsed *ret,
                                      struct ifd_err *err);

#endif

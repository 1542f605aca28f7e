/** What the reader's files share: lists, tensors and ports (reader_values.c) of what the graphs
 *  (onnx_reader.c) name, and the order of their nodes (sort.c). */
#ifndef INFERD_ENGINE_PARSE_ONNX_READER_IMPL_H
#define INFERD_ENGINE_PARSE_ONNX_READER_IMPL_H

#include "engine/parse/onnx/beside.h"
#include "engine/parse/onnx/onnx_reader.h"
#include "engine/parse/onnx/wire.h"

struct ifd_onnx_reader {
    struct ifd_bytes file;
    struct ifd_onnx_places places;
    const struct ifd_limits *limits;
    struct ifd_arena *arena;
    uint32_t names; /* of values that nodes make, and constants */
    uint32_t nodes; /* of all graphs */
    uint32_t depth; /* of graphs in nodes */
    struct ifd_err *err;
};

static inline struct ifd_str ifd_onnx_field_text(const struct ifd_wire_field *field)
{
    return (struct ifd_str){.data = (const char *)field->bytes.data, .size = field->bytes.size};
}

/** Fails: CORRUPT. what: the message. */
enum ifd_code ifd_onnx_damaged(struct ifd_onnx_reader *r, const char *what);
/** An array from the arena; NULL without memory: then *code is set. */
void *ifd_onnx_reader_take(struct ifd_onnx_reader *r, size_t count, size_t size,
                           enum ifd_code *code);

/** How often a field is there; false if the message is damaged. */
bool ifd_onnx_count_fields(struct ifd_bytes message, uint32_t number, enum ifd_wire_type type,
                           uint32_t *ret);

enum ifd_onnx_numbers { IFD_ONNX_AS_INT, IFD_ONNX_AS_F32, IFD_ONNX_AS_F64 };
/** The numbers of all fields of one number, NULL if there are none. Does nothing if *code is not
 *  OK. */
const void *ifd_onnx_read_numbers(struct ifd_onnx_reader *r, struct ifd_bytes message,
                                  uint32_t number, enum ifd_onnx_numbers kind, uint32_t *ret_count,
                                  enum ifd_code *code);
/** The same for texts. */
const struct ifd_str *ifd_onnx_read_strings(struct ifd_onnx_reader *r, struct ifd_bytes message,
                                            uint32_t number, uint32_t *ret_count,
                                            enum ifd_code *code);
/** A TensorProto. */
IFD_NODISCARD enum ifd_code ifd_onnx_read_tensor(struct ifd_onnx_reader *r,
                                                 struct ifd_bytes message,
                                                 struct ifd_onnx_tensor *ret);
/** A ValueInfoProto. */
IFD_NODISCARD enum ifd_code ifd_onnx_read_port(struct ifd_onnx_reader *r, struct ifd_bytes message,
                                               struct ifd_onnx_port *ret);
/** Sorts the names of a graph that is read. */
IFD_NODISCARD enum ifd_code ifd_onnx_sort_names(struct ifd_onnx_reader *r,
                                                struct ifd_onnx_graph *graph);
/** Puts each of a graph's nodes behind those that make its inputs. Does nothing where this is so,
 *  and where nodes need each other. node: the graph's. */
IFD_NODISCARD enum ifd_code ifd_onnx_sort(struct ifd_onnx_reader *r,
                                          const struct ifd_onnx_graph *graph,
                                          struct ifd_onnx_node *node);

#endif

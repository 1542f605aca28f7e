/** A partition of one node and the memory that it is bound to, for tests of backends. Thread:
 * one. */
#ifndef INFERD_TESTS_CONFORMANCE_ONE_NODE_H
#define INFERD_TESTS_CONFORMANCE_ONE_NODE_H

#include "engine/base/team.h"
#include "engine/exec/texts.h"
#include "inferd/backend.h"

#define ONE_NODE_OPERANDS 24

struct one_node {
    struct ifd_partition_view view;
    struct ifd_partition_node node;
    struct ifd_partition_value value[2 * ONE_NODE_OPERANDS];
    struct ifd_operand operand[ONE_NODE_OPERANDS];
    struct ifd_desc out_desc[ONE_NODE_OPERANDS];
    uint32_t input_value[ONE_NODE_OPERANDS], output_value[ONE_NODE_OPERANDS];
    const void *input[ONE_NODE_OPERANDS];
    uint8_t *output[ONE_NODE_OPERANDS];
    size_t output_bytes[ONE_NODE_OPERANDS];
    struct ifd_text_store texts;
};

/** A device without options; where there is none, the test is skipped. */
struct ifd_device *one_node_open(const struct ifd_backend *backend);

/** A node without operands. name and attrs are used in place. */
void one_node_init(struct one_node *node, const char *name, enum ifd_op op, const void *attrs);

/** Appends an input with the content data, aligned and padded as a tensor; desc and data are
 *  used in place. desc NULL: an optional input that is absent. */
void one_node_add_input(struct one_node *node, const struct ifd_desc *desc, const void *data,
                        bool is_constant);

/** Appends an output and acquires its memory. */
void one_node_add_output(struct one_node *node, const struct ifd_desc *desc);

/** Compiles and runs; checks that the bytes behind every output are unchanged. */
IFD_NODISCARD enum ifd_code one_node_run(struct one_node *node, const struct ifd_backend *backend,
                                         struct ifd_device *device, const struct ifd_team *team,
                                         bool exact, struct ifd_err *err);

void one_node_finish(struct one_node *node);

#endif

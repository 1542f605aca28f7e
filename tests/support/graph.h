/** Graphs for tests: short builders, random ones, and an interpreter that computes a graph node by
 *  node in separate memory, without planner, optimizer or executor. Every function ends the test
 *  if something fails. */
#ifndef INFERD_TESTS_SUPPORT_GRAPH_H
#define INFERD_TESTS_SUPPORT_GRAPH_H

#include "engine/ir/graph.h"
#include "tests/support/test.h"

#define SHAPE(...)                                                                                 \
    ((struct ifd_shape){.rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                \
                        .dim = {__VA_ARGS__}})

/** A value without content: an input, or the result of a node to come. */
uint32_t test_graph_f32(struct ifd_graph *graph, const char *name, struct ifd_shape shape);

/** A constant; data has as many elements as shape says. */
uint32_t test_graph_constant(struct ifd_graph *graph, const char *name, struct ifd_shape shape,
                             const float *data);

/** A node with one f32 output, whose shape is inferred. Attributes are at their defaults. */
uint32_t test_graph_op1(struct ifd_graph *graph, enum ifd_op op, uint32_t input, const char *name);
uint32_t test_graph_op2(struct ifd_graph *graph, enum ifd_op op, uint32_t a, uint32_t b,
                        const char *name);

/** A reshape to a shape; dimension -1 is what is left over. */
uint32_t test_graph_reshape(struct ifd_graph *graph, uint32_t input, struct ifd_shape shape,
                            const char *name);

/** One input and one output of the graph. */
void test_graph_io(struct ifd_graph *graph, uint32_t input, uint32_t output);

/** Element-wise f32 graph of shape [batch,channels] with node_count nodes, two inputs and up to
 *  three outputs, with constants, dead ends, identities, repeated operands and foldable parts. */
void test_graph_random(struct ifd_graph *graph, struct test_random *random, int64_t batch,
                       int64_t channels, uint32_t node_count);

/** Computes a graph: input[i] is the content of input i, output[i] gets that of output i. */
void test_graph_interpret(const struct ifd_graph *graph, const void *const *input,
                          void *const *output);

#endif

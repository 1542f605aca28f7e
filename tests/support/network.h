/** Random networks of what vision models are made of: convolutions of all shapes, their neighbours,
 *  several outputs; floats or numbers of 8 bits with any quantization. A number decides
 *  everything. */
#ifndef INFERD_TESTS_SUPPORT_NETWORK_H
#define INFERD_TESTS_SUPPORT_NETWORK_H

#include "tests/support/graph.h"

struct test_network {
    enum ifd_dtype dtype; /* F32, U8 or S8 */
    uint64_t seed;
    uint32_t nodes;   /* about this number */
    bool is_wide;     /* of layers that cost time: many pixels of many channels */
    double macs_most; /* multiply-accumulates of all of it */
};

/** Adds all nodes to an empty graph, and says what goes in and out. Dimension 0 of all tensors is
 *  the same. */
void test_network_build(const struct test_network *network, struct ifd_graph *graph);

/** Content of the input. */
void test_network_fill(const struct test_network *network, void *data, size_t bytes);

#endif

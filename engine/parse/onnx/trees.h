/** Ensembles of trees: what both forms of the format are read into (tree_forms.c), and what is
 *  computed of it (trees.c). */
#ifndef INFERD_ENGINE_PARSE_ONNX_TREES_H
#define INFERD_ENGINE_PARSE_ONNX_TREES_H

#include "engine/parse/onnx/onnx_impl.h"

#define IFD_ONNX_NO_NODE UINT32_MAX

/** Conditions, numbered as in the newer form. */
enum ifd_onnx_branch {
    IFD_ONNX_LEQ,
    IFD_ONNX_LT,
    IFD_ONNX_GTE,
    IFD_ONNX_GT,
    IFD_ONNX_EQ,
    IFD_ONNX_NEQ,
    IFD_ONNX_MEMBER, /* becomes EQ */
    IFD_ONNX_LEAF
};
/** What becomes of the leaves' weights, numbered likewise. */
enum ifd_onnx_aggregate { IFD_ONNX_AVERAGE, IFD_ONNX_SUM, IFD_ONNX_LEAST, IFD_ONNX_MOST };

struct ifd_onnx_tree_node {
    int64_t feature;
    float value;
    enum ifd_onnx_branch mode;
    uint32_t child[2];   /* where the condition holds, where not; IFD_ONNX_NO_NODE: a leaf */
    uint32_t leaf;       /* number of the leaf */
    bool tracks_missing; /* the condition holds for NaN */
    bool is_root, is_child, is_reached;
};

struct ifd_onnx_forest {
    struct ifd_onnx_tree_node *node; /* several may lead to one */
    float *weight;                   /* [leaves][results] */
    uint32_t count, trees, leaves;
};

/** An array in the graph's arena; NULL without memory: then the builder has failed. */
void *ifd_onnx_tree_take(struct ifd_onnx_call *call, uint64_t count, size_t size);
/** Room for weights of f->leaves; false: the builder has failed. */
bool ifd_onnx_forest_weights(struct ifd_onnx_call *call, struct ifd_onnx_forest *f, int64_t results,
                             enum ifd_onnx_aggregate aggregate);
/** What a leaf adds to a result. */
void ifd_onnx_forest_add(struct ifd_onnx_forest *f, uint32_t leaf, int64_t results, int64_t result,
                         float weight, enum ifd_onnx_aggregate aggregate);
/** [n, results]; input 0 of the node: [n, columns]. Sets is_reached of nodes. */
uint32_t ifd_onnx_forest_sums(struct ifd_onnx_call *call, struct ifd_onnx_forest *f,
                              int64_t results, enum ifd_onnx_aggregate aggregate);

#endif

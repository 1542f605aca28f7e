/** What count.c, which walks over a graph, and affine.c share. */
#ifndef INFERD_ENGINE_IR_COUNT_IMPL_H
#define INFERD_ENGINE_IR_COUNT_IMPL_H

#include "engine/ir/count.h"
#include "engine/ir/shape.h"

/** Slope of an element that is not affine. */
#define IFD_COUNT_UNKNOWN INT64_MIN

enum ifd_count_kind {
    IFD_COUNT_FIXED = 0, /* the same for every number of samples */
    IFD_COUNT_SAMPLES,   /* dimension 0 is a multiple of the number, the others are fixed */
    IFD_COUNT_NUMBERS,   /* a constant of fixed size, whose elements have slopes */
    IFD_COUNT_OTHER /* its size depends on the number in another way, or its content is not known */
};

struct ifd_count_form {
    enum ifd_count_kind kind;
    const int64_t *slope; /* per element: how it grows with one sample more */
};

struct ifd_count {
    const struct ifd_graph *graph, *other; /* two readings of a file */
    int64_t batch, other_batch;
    bool *batched; /* per value: IFD_COUNT_SAMPLES */
    struct ifd_count_form *form;
    struct ifd_arena *arena;
    double work_left;
    bool has_read; /* sizes that depend on the number decide what read_source builds */
    uint32_t read_source;
    bool is_found;
};

static inline size_t ifd_count_elements(const struct ifd_count *c, uint32_t value)
{
    size_t count = 0;
    return ifd_shape_elements(&c->graph->value[value].desc.shape, &count) ? count : SIZE_MAX;
}

/** Of IFD_NONE, too. */
const struct ifd_count_form *ifd_count_form_of(const struct ifd_count *c, uint32_t value);
/** Is it a constant with elements that are not affine? */
bool ifd_count_has_unknown(const struct ifd_count *c, uint32_t value);

/** A computed node, whose inputs are FIXED or NUMBERS, of results of fixed size: computes it for
 *  other numbers of samples, and writes the forms of its outputs. (affine.c) */
IFD_NODISCARD enum ifd_code ifd_count_compute(struct ifd_count *c, const struct ifd_node *node,
                                              struct ifd_err *err);

#endif

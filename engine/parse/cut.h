/** What the formats share where the data decides shapes (struct ifd_cut): the values that the next
 *  reading needs, and how it takes them. Thread: one at a time. */
#ifndef INFERD_ENGINE_PARSE_CUT_H
#define INFERD_ENGINE_PARSE_CUT_H

#include "engine/build/builder.h"
#include "engine/parse/parse.h"

/** A cut while it is made. */
struct ifd_cutter {
    struct ifd_graph *graph;
    const uint32_t *input; /* values: the graph's inputs */
    uint32_t input_count;
    struct ifd_cut *cut;
    uint32_t *output,
        output_count;    /* values that the graph ends with; output 0 is the wanted one */
    uint32_t *output_of; /* per value: its number among the outputs, IFD_NONE */
};

/** Begins a cut of at most `most` values, in scratch, which lives until its end. wanted: made by a
 *  node (ifd_cut_own). Errors: NOMEM. */
IFD_NODISCARD enum ifd_code ifd_cut_begin(struct ifd_cutter *cutter, struct ifd_arena *scratch,
                                          size_t most, uint32_t wanted, struct ifd_err *err);
/** Adds a value of the graph. Returns the entry, whose axis is IFD_NONE. */
struct ifd_cut_value *ifd_cut_add(struct ifd_cutter *cutter, uint64_t id, uint32_t value);
/** The graph gets its inputs, and ends with the outputs; the memory of the cut's values is the
 *  graph's. Errors: as ifd_graph_set_io. */
IFD_NODISCARD enum ifd_code ifd_cut_end(const struct ifd_cutter *cutter, struct ifd_err *err);

/** The wanted value, or a copy if no node makes it. */
uint32_t ifd_cut_own(struct ifd_builder *b, uint32_t wanted);
/** Fails where the content of a value is too large to decide a shape (IFD_CUT_BYTES). */
void ifd_cut_check(struct ifd_builder *b, uint32_t wanted);
/** The front of a constant: size elements along an axis, all of it for IFD_NONE. */
uint32_t ifd_cut_front(struct ifd_builder *b, uint32_t value, uint32_t axis, int64_t size);

/** Adds a value of a resumed reading to the graph, under a name. Constants in the file, or among
 *  what is kept (NULL: nothing), are used in place; others, and texts, are copied. Errors:
 *  NOMEM. */
IFD_NODISCARD enum ifd_code ifd_resume_take(struct ifd_graph *graph, struct ifd_bytes file,
                                            const struct ifd_parse_kept *kept, const char *name,
                                            const struct ifd_resume_value *from, uint32_t *ret,
                                            struct ifd_err *err);

#endif

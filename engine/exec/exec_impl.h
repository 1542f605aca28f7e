/** Between the files of this folder: the callers' tensors of one run. */
#ifndef INFERD_ENGINE_EXEC_EXEC_IMPL_H
#define INFERD_ENGINE_EXEC_EXEC_IMPL_H

#include "engine/exec/instance.h"

/** Consecutive samples of the whole batch that one executable computes at once. */
struct ifd_chunk {
    int64_t first, count;
};

/** The callers of one run; the whole batch is their batches in this order. */
struct ifd_callers {
    const struct ifd_io *io;
    uint32_t count;
    int64_t batch;        /* sum of theirs */
    uint64_t deadline_ns; /* the latest of theirs; 0: loops have IFD_LOOP_NS */
};

/** Does no caller want the results any more? context: struct ifd_callers. */
bool ifd_callers_are_gone(const void *context);

/** Checks every tensor against the model's ports. Errors: INVALID, TOO_LARGE; names the tensor. */
IFD_NODISCARD enum ifd_code ifd_io_check(const struct ifd_instance *instance,
                                         const struct ifd_io *io, uint32_t io_count,
                                         int64_t *ret_batch, struct ifd_err *err);

/** Sets instance->input and instance->output for a chunk: to the caller's memory if it is aligned,
 *  padded and contiguous; else to the executable's own memory, into which the input is copied. */
void ifd_io_bind(struct ifd_instance *instance, const struct ifd_executable *executable,
                 const struct ifd_callers *callers, struct ifd_chunk chunk);

/** Copies the outputs of a chunk to where the callers want them, unless they are there already. */
void ifd_io_collect(struct ifd_instance *instance, const struct ifd_callers *callers,
                    struct ifd_chunk chunk);

/** Writes type, shape and size of every wanted output, and its memory if the caller brought
 *  none. */
void ifd_io_describe(const struct ifd_instance *instance, const struct ifd_callers *callers);

#endif

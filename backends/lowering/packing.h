/** Packed constants of a partition: weights in the form that the backend's kernels read, made once
 *  per model.
 *
 *  Steps reserve packed memory; those of a layer that comes again and again (the steps of a
 *  recurrent one) share it. Partitions for several batch sizes share equal content, the next
 *  start takes what an earlier one left (view.packed), and several threads pack the rest. Packed
 *  memory holds no pointers. */
#ifndef INFERD_BACKENDS_LOWERING_PACKING_H
#define INFERD_BACKENDS_LOWERING_PACKING_H

#include "backends/lowering/values.h"

/** Fills packed memory. context: the backend's; workspace: temporary memory of the size that the
 *  job asked for. */
typedef void (*ifd_low_pack_fn)(const void *context, const void *params, uint8_t *workspace,
                                uint8_t *packed);

/** Do these parameters of two jobs of the same pack, source and bytes make the same content? */
typedef bool (*ifd_low_same_fn)(const void *params, const void *other);

struct ifd_low_pack_job {
    ifd_low_pack_fn pack;
    ifd_low_same_fn same; /* NULL: nothing is known */
    const void *params;
    const void *source; /* content of the constant that is packed */
    size_t bytes;
    uint32_t step;        /* that reads it */
    bool is_twin;         /* an earlier job of the partition makes its content */
    const uint8_t *block; /* the memory that holds it, of this partition or an older one; */
    size_t offset;        /* where in it */
};

struct ifd_low_packed {
    struct ifd_low_pack_job *job;
    uint32_t job_count, job_capacity;
    size_t workspace_bytes; /* the largest that a job wants */
    const uint8_t *data;    /* of those that no older partition has */
    size_t bytes;
    bool is_owned;    /* not that of an earlier start */
    bool is_released; /* the sources of its jobs are gone */
};

/** Reserves packed memory for a step. job->pack fills it, with workspace_bytes of temporary memory.
 *
 *  job->source: only pack may read it; its memory may be released before the partition runs. Two
 *  jobs of the same pack, source and bytes yield the same content, which partitions for several
 *  batch sizes share: packed content should not depend on the batch. */
IFD_NODISCARD enum ifd_code ifd_low_add_pack(struct ifd_low_packed *packed,
                                             struct ifd_lowering *lowering,
                                             const struct ifd_low_pack_job *job,
                                             size_t workspace_bytes, struct ifd_err *err);

/** Sets block and offset of all jobs: shares the content of older (NULL: nothing), takes
 *  view.packed if it fits, packs the rest. context: for pack functions. older outlives packed. */
IFD_NODISCARD enum ifd_code ifd_low_pack(struct ifd_low_packed *packed,
                                         const struct ifd_low_packed *older,
                                         const struct ifd_partition_view *view, const void *context,
                                         const struct ifd_alloc *alloc, struct ifd_err *err);

void ifd_low_release_packed(struct ifd_low_packed *packed, const struct ifd_alloc *alloc);

#endif

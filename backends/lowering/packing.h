/** Packed constants of a partition: weights in the form that the backend's kernels read, made once per model.
 *
 *  Steps say what they want packed. Partitions for several batch sizes share what is the same, the next start takes what an
 *  earlier one left (view.packed), and the rest is packed by several threads. Packed memory holds no pointers. */
#ifndef INFERD_BACKENDS_LOWERING_PACKING_H
#define INFERD_BACKENDS_LOWERING_PACKING_H

#include "backends/lowering/values.h"

/** Fills packed memory. context: the backend's; workspace: temporary memory of the size that the job asked for. */
typedef void (*ifd_low_pack_fn)(const void *context, const void *params, uint8_t *workspace,
                                uint8_t *packed);

struct ifd_low_pack_job {
    ifd_low_pack_fn pack;
    const void *params;
    const void *source; /* content of the constant that is packed */
    size_t bytes;
    uint32_t step;        /* that reads it */
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

/** Reserves bytes of packed memory for a step, which pack will fill with workspace_bytes of temporary memory.
 *
 *  source: nothing but pack may read it; its memory may be gone when the partition runs. Two jobs of the same pack, source
 *  and bytes yield the same content: partitions for several batch sizes share it, so what is packed should not depend on the
 *  batch. */
IFD_NODISCARD enum ifd_code ifd_low_add_pack(struct ifd_low_packed *packed,
                                             struct ifd_lowering *lowering,
                                             const struct ifd_low_pack_job *job,
                                             size_t workspace_bytes, struct ifd_err *err);

/** Sets block and offset of all jobs: shares what older has (NULL: nothing), takes view.packed where it is there, packs the
 *  rest. context: for pack functions. older outlives packed. */
IFD_NODISCARD enum ifd_code ifd_low_pack(struct ifd_low_packed *packed,
                                         const struct ifd_low_packed *older,
                                         const struct ifd_partition_view *view, const void *context,
                                         const struct ifd_alloc *alloc, struct ifd_err *err);

void ifd_low_release_packed(struct ifd_low_packed *packed, const struct ifd_alloc *alloc);

#endif

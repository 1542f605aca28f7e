/** Which steps several threads share, where they join, into how many chunks a part is cut. */
#ifndef INFERD_BACKENDS_CPUACC_SCHEDULE_THREADS_H
#define INFERD_BACKENDS_CPUACC_SCHEDULE_THREADS_H

#include "backends/cpuacc/draft.h"

/** Decides for all drafts how many threads share each, and where threads wait for each other
 *  (joins). ret_is_parallel: some step is shared. */
IFD_NODISCARD enum ifd_code ifd_acc_plan_threads(struct ifd_acc_lowering *lowering,
                                                 bool *ret_is_parallel, struct ifd_err *err);

/** Into how many chunks of at least `least` items a thread's part may be cut: 1 …
 *  IFD_ACC_CHUNKS_MAX. */
uint32_t ifd_acc_chunks_of(size_t items, size_t least);

/** Into how many chunks a thread's part of `lines` may be cut: lines that two windows share are
 *  read or made again by each chunk. */
uint32_t ifd_acc_chunks_of_lines(const struct ifd_acc_lowering *lowering, size_t lines,
                                 size_t window);

#endif

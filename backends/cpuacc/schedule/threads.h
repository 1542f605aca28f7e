/** Which steps several threads share, where they meet, into how many chunks a thread's part is cut. */
#ifndef INFERD_BACKENDS_CPUACC_SCHEDULE_THREADS_H
#define INFERD_BACKENDS_CPUACC_SCHEDULE_THREADS_H

#include "backends/cpuacc/compile.h"

/** When all steps are there: decides how many threads share each, and where threads wait for each other (step->joins).
 *  ret_is_parallel: some step is shared. */
IFD_NODISCARD enum ifd_code ifd_acc_plan_threads(struct ifd_acc_lowering *lowering,
                                                 bool *ret_is_parallel, struct ifd_err *err);

/** Into how many chunks of least items or more a thread's part may be cut: 1 … IFD_ACC_CHUNKS_MAX. */
uint32_t ifd_acc_chunks_of(size_t items, size_t least);

/** Into how many chunks a thread's part of so many lines may be cut: what their windows share, another chunk reads or makes
 *  again. */
uint32_t ifd_acc_chunks_of_lines(const struct ifd_acc_lowering *lowering, size_t lines,
                                 size_t window);

#endif

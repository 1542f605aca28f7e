/** Control flow: runs the graphs that the attributes of a node name, as a backend of the executor's
 *  own. The graphs have plans of their own on all backends; their memory is scratch of the
 *  partition. Thread: as for other backends. */
#ifndef INFERD_ENGINE_EXEC_CONTROL_H
#define INFERD_ENGINE_EXEC_CONTROL_H

#include "engine/plan/plan.h"

/** Time of a loop in a run without a deadline. */
#define IFD_LOOP_NS ((uint64_t)10000000000)

/** Runs, describes and releases what ifd_control_compile makes. The registry does not have it. */
extern const struct ifd_backend ifd_control_backend;

/** view: of one node. limit_bytes: of the memory of each graph. Errors: as ifd_executable_init. */
IFD_NODISCARD enum ifd_code ifd_control_compile(const struct ifd_partition_view *view,
                                                const struct ifd_plan_options *options,
                                                size_t limit_bytes,
                                                struct ifd_partition **ret_partition,
                                                struct ifd_partition_info *ret_info,
                                                struct ifd_err *err);

#endif

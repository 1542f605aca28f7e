/** A handful of operators for tests of the graph itself, so that these do not depend on engine/ops:
 *  linked in place of ifd_ops, ifd_op_def() knows these and no others.
 *
 *  ADD     two f32 operands of one shape
 *  CONCAT  variadic f32 inputs along attribute axis
 *  SPLIT   variadic outputs: input 0 cut into equal parts along dimension 0
 *  RESHAPE input 0 of any type, input 1 a constant s32 vector: the new shape (shape_inputs) */
#ifndef INFERD_TESTS_SUPPORT_FAKE_OPS_H
#define INFERD_TESTS_SUPPORT_FAKE_OPS_H

#include "inferd/op.h"

/** "f32[2,3]"-like descriptions without writing out dimensions. */
struct ifd_desc fake_f32(uint32_t rank, int64_t d0, int64_t d1);
struct ifd_desc fake_s32(int64_t d0);

#endif

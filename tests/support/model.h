/** Models of hand-built graphs: an engine with CpuRef (and optionally the fake backend before it), without a file. */
#ifndef INFERD_TESTS_SUPPORT_MODEL_H
#define INFERD_TESTS_SUPPORT_MODEL_H

#include "engine/engine_impl.h"
#include "tests/support/graph.h"

/** An engine whose backends are Fake and CpuRef, or CpuRef alone. */
IFD_NODISCARD enum ifd_code test_engine(const struct ifd_alloc *alloc, bool with_fake,
                                        struct ifd_engine **ret_engine, struct ifd_err *err);

/** Optimizes and plans what the test has put into model->graph; ports are named after the values. */
IFD_NODISCARD enum ifd_code test_model_build(struct ifd_model *model, struct ifd_err *err);

/** A tensor of f32 in memory that is aligned and padded. Give back with ifd_release_tensor(system, data, bytes). */
struct ifd_tensor test_tensor_f32(struct ifd_shape shape);

#endif

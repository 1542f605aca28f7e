/** Attributes by name: the one place that checks kinds and ranges. Thread: any, on different
 *  structs. */
#ifndef INFERD_ENGINE_IR_ATTRS_H
#define INFERD_ENGINE_IR_ATTRS_H

#include "inferd/op.h"

/** Fills attrs (def->attrs_bytes, may be NULL if that is 0) with the defaults. */
void ifd_attrs_defaults(const struct ifd_op_def *def, void *attrs);

/** Sets one attribute. INVALID: unknown attribute, wrong kind, out of range; names operator,
 *  attribute, got, range. */
IFD_NODISCARD enum ifd_code ifd_attrs_set_int(const struct ifd_op_def *def, void *attrs,
                                              const char *name, int64_t value,
                                              struct ifd_err *err); /* INT, ENUM and BOOL */
IFD_NODISCARD enum ifd_code ifd_attrs_set_f32(const struct ifd_op_def *def, void *attrs,
                                              const char *name, double value, struct ifd_err *err);
IFD_NODISCARD enum ifd_code ifd_attrs_set_ints(const struct ifd_op_def *def, void *attrs,
                                               const char *name, const int64_t *value, size_t count,
                                               struct ifd_err *err);

/** Checks that every field is within its range, for attributes that were not set by name. INVALID
 *  as above. */
IFD_NODISCARD enum ifd_code ifd_attrs_check(const struct ifd_op_def *def, const void *attrs,
                                            struct ifd_err *err);

/** Every attribute as "name=value name=value" into text (cut to size). */
void ifd_attrs_text(const struct ifd_op_def *def, const void *attrs, char *text, size_t size);

#endif

/** Parameters of a config, or of its preset, as numbers and words. Thread: any. */
#ifndef INFERD_SERVER_OBJECTS_PARAMETERS_IMPL_H
#define INFERD_SERVER_OBJECTS_PARAMETERS_IMPL_H

#include "inferd/status.h"
#include "server/model/desc.h"

/** Value without blanks at its ends; {NULL,0} if nobody sets it. */
struct ifd_str ifd_parameter(const struct ifd_model_desc *desc, const char *key);

/* The following leave *ret if nobody sets the parameter. Errors: INVALID, with what is expected. */

IFD_NODISCARD enum ifd_code ifd_parameter_number(const struct ifd_model_desc *desc, const char *key,
                                                 double low, double high, float *ret,
                                                 struct ifd_err *err);
IFD_NODISCARD enum ifd_code ifd_parameter_count(const struct ifd_model_desc *desc, const char *key,
                                                uint32_t low, uint32_t high, uint32_t *ret,
                                                struct ifd_err *err);
/** Numbers with commas between them. *ret_count is at most max. */
IFD_NODISCARD enum ifd_code ifd_parameter_numbers(const struct ifd_model_desc *desc,
                                                  const char *key, uint32_t max, float *ret,
                                                  uint32_t *ret_count, struct ifd_err *err);
/** One of count words; *ret is its number. */
IFD_NODISCARD enum ifd_code ifd_parameter_word(const struct ifd_model_desc *desc, const char *key,
                                               const char *const *word, uint32_t count,
                                               uint32_t *ret, struct ifd_err *err);

#endif

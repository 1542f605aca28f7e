/** The `parameters` of a config: its own, and those that its preset stands for. Thread: any. */
#ifndef INFERD_SERVER_MODEL_PARAMETERS_H
#define INFERD_SERVER_MODEL_PARAMETERS_H

#include "inferd/status.h"
#include "server/model/desc.h"

/** Value of a parameter that the config itself has; NULL if absent. */
const char *ifd_desc_parameter(const struct ifd_model_desc *desc, const char *key);

/** The same, or what the config's `preset` stands for; NULL if neither says anything. For what a
 *  model takes and means. */
const char *ifd_meaning_parameter(const struct ifd_model_desc *desc, const char *key);

/** Name of a preset; NULL behind the last. */
const char *ifd_preset_name(size_t index);
/** Checks that the preset, if the config names one, exists. Errors: INVALID (with the nearest
 *  name). */
IFD_NODISCARD enum ifd_code ifd_preset_check(const struct ifd_model_desc *desc,
                                             struct ifd_err *err);

/** The name that is most like an unknown parameter; NULL if somebody reads parameter key. */
const char *ifd_parameter_nearest(const char *key);

#endif

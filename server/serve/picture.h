/** Rules that turn pictures into inputs. Thread: any. */
#ifndef INFERD_SERVER_SERVE_PICTURE_H
#define INFERD_SERVER_SERVE_PICTURE_H

#include "api/core/service.h"
#include "inferd/engine.h"
#include "server/media/image.h"
#include "server/repo/manifest.h"

/** Makes the rule of an input. An image has 1 or 3 channels in the last dimension (or in the one
 *  before height and width, if the config says FORMAT_NCHW, or nothing and only that can be), fixed
 *  height and width of at least 8, and a type of FP32, UINT8 or INT8. mean and std come, in this
 *  order, from
 *  1. the config's parameters image_mean and image_std, or its preset: one number, or one for each
 *     channel, separated by commas;
 *  2. the file's metadata;
 *  3. for 8-bit types: the pixel itself (UINT8: the stored value is the pixel; INT8: the pixel -
 *     128).
 *
 *  An FP32 input without 1 and 2 has no rule: a guess would give plausible but wrong results.
 *  Errors: INVALID (an unknown preset, a parameter that is no number or word of its list, std of 0,
 *  colours that the input has no channels for). */
IFD_NODISCARD enum ifd_code ifd_picture_rule(const struct ifd_model_desc *manifest,
                                             const struct ifd_tensor_info *tensor,
                                             const struct ifd_port *port, bool has_batch,
                                             struct ifd_image_rule *ret, struct ifd_err *err);

/** The rule in the form that the decoder takes. */
struct ifd_image_target ifd_picture_target(const struct ifd_image_rule *rule, float scale,
                                           int32_t zero_point);

/** Decodes a picture for a port of a model without a config; for the tools. */
IFD_NODISCARD enum ifd_code ifd_picture_for_port(struct ifd_bytes picture,
                                                 const struct ifd_port *port, void *data,
                                                 size_t bytes, struct ifd_err *err);

#endif

/** The dialect of DeepStack and CodeProject.AI, which recorders of cameras speak: /v1/vision. A
 *  form with a picture comes in, a flat list of predictions goes out. Thread: as stated. */
#ifndef INFERD_API_HTTP_VISION_H
#define INFERD_API_HTTP_VISION_H

#include "api/http/infer.h"

/** Predictions of less confidence are left out, unless the request says otherwise: what Frigate
 *  drops and CodeProject.AI's default. */
#define IFD_VISION_CONFIDENCE 0.4F

static inline bool ifd_infer_is_vision(const struct ifd_http_infer *infer)
{
    return ifd_route_is_vision(infer->http->route);
}

/** Fills call->core.model, if the path does not name it: from the settings, or else the first model
 *  by name whose outputs mean what the path asks for. Errors: NOT_FOUND, NOMEM. Thread: loop. */
IFD_NODISCARD enum ifd_code ifd_vision_choose(struct ifd_http_call *call, struct ifd_err *err);
/** Authorization from the field api_key of the form in the body; {NULL,0} without one. Errors:
 *  INVALID (the form), NOMEM. Thread: any. */
IFD_NODISCARD enum ifd_code ifd_vision_key(const struct ifd_http_call *call, struct ifd_str *ret,
                                           struct ifd_err *err);
/** Checks that the model finds something that has a label or a box. Thread: any. */
IFD_NODISCARD enum ifd_code ifd_vision_check(const struct ifd_http_infer *infer,
                                             struct ifd_err *err);
/** Writes the answer of an inference. Thread: any. (vision_answer.c) */
IFD_NODISCARD enum ifd_code ifd_vision_write(struct ifd_http_infer *infer, struct ifd_json_out *out,
                                             struct ifd_err *err);

#endif

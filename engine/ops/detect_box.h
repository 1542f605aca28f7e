/** Boxes of detection_postprocess, decoded relative to anchors. Thread: any. */
#ifndef INFERD_ENGINE_OPS_DETECT_BOX_H
#define INFERD_ENGINE_OPS_DETECT_BOX_H

#include "inferd/op.h"
#include "inferd/op_attrs.h"

/** The operator's inputs. */
enum { IFD_DETECT_BOXES, IFD_DETECT_SCORES, IFD_DETECT_ANCHORS };

struct ifd_box {
    float ymin, xmin, ymax, xmax;
};

/** Numbers first … first + count - 1 of a tensor of f32 or u8. */
void ifd_detect_real_values(const struct ifd_desc *desc, const void *data, int64_t first,
                            int64_t count, float *ret);
float ifd_detect_real_value(uint8_t stored, float zero, float scale);

/** Box i of the call's inputs. */
struct ifd_box ifd_box_decode(const struct ifd_ref_call *call, int64_t i);

/** INVALID if a box of the call has a negative size. */
IFD_NODISCARD enum ifd_code ifd_box_check(const struct ifd_ref_call *call, struct ifd_err *err);

/** Intersection over union; 0 if one of them is empty. */
float ifd_box_overlap(const struct ifd_box *a, const struct ifd_box *b);

#endif

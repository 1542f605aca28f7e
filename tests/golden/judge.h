/* Compares a model's answers with those of another engine. */
#ifndef INFERD_TESTS_GOLDEN_JUDGE_H
#define INFERD_TESTS_GOLDEN_JUDGE_H

#include "inferd/engine.h"

/* kind "lsb": in numbers as they are stored; "of_range": in shares of the expected tensor's range; "detections": boxes,
 * classes, scores and count. */
struct golden_tolerance {
    const char *kind;
    double limit;
    bool keeps_best; /* the most probable class stays that, too */
};

/* Element i of a tensor, and how many there are. */
double golden_number(const struct ifd_tensor *tensor, size_t i);
size_t golden_count(const struct ifd_tensor *tensor);

/* Are all outputs within the tolerance? Raises ret_largest to the largest difference. Says what has another type, shape or
 * best class. */
bool golden_judge(const struct ifd_model_info *info, const struct ifd_tensor *got,
                  const struct ifd_tensor *want, uint32_t count,
                  const struct golden_tolerance *tolerance, double *ret_largest);

#endif

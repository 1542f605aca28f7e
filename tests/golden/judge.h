/* Compares a model's answers with those of another engine. */
#ifndef INFERD_TESTS_GOLDEN_JUDGE_H
#define INFERD_TESTS_GOLDEN_JUDGE_H

#include "inferd/engine.h"

/* kind "lsb": differences of the stored numbers; "of_range": divided by the expected tensor's
 * range; "detections": boxes, classes, scores and count. */
struct golden_tolerance {
    const char *kind;
    double limit; /* of the largest difference */
    double
        /* of the mean difference, divided by the expected tensor's range; 0: no limit */
        mean_limit;
};

/* Element i of a tensor as a number; false: its type is none that can be compared. */
bool golden_number(const struct ifd_tensor *tensor, size_t i, double *ret_number);
/* Elements of a tensor; 0 for a type outside the enum. */
size_t golden_count(const struct ifd_tensor *tensor);

/* Are these the names of the model's outputs, in their order? Prints the model's if not. */
bool golden_has_outputs(const struct ifd_model_info *info, const char *const *names, size_t count);

/* Are all outputs within the tolerance, and is the most probable class of every list of
 * probabilities the expected one? Raises ret_largest to the largest difference. Prints what is
 * wrong besides differences. No outputs, empty ones, types that cannot be compared and kinds that
 * are unknown fail. A number that is not finite must be met exactly. */
bool golden_judge(const struct ifd_model_info *info, const struct ifd_tensor *got,
                  const struct ifd_tensor *want, uint32_t count,
                  const struct golden_tolerance *tolerance, double *ret_largest);

#endif

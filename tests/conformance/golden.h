/** Golden cases of operators: tests/ops/<file>.json, made by the generators in tests/ops/gen from
 * another engine.
 *
 *      {"op": "add", "source": "who computed the outputs", "cases": [
 *        {"name": "s8 broadcast", "attrs": {"activation": 1}, "relative": 1e-6, "absolute": 0,
 *         "inputs": [{"dtype": "s8", "shape": [2,3], "scale": [0.5], "zero_point": [3], "axis": 0,
 *         "constant": true,
 *                     "data": [1,2,3,4,5,6]}, null],
 *         "outputs": [{…}]}]}
 *
 *  scale, zero_point, axis, constant, relative and absolute may be absent. null is an absent
 *  optional input. f16 data are bit patterns; floats that are no numbers are the texts "inf",
 *  "-inf", "nan". Without a tolerance, results must be equal. A file that is not like this ends the
 *  test. Thread: one. */
#ifndef INFERD_TESTS_CONFORMANCE_GOLDEN_H
#define INFERD_TESTS_CONFORMANCE_GOLDEN_H

#include "inferd/op.h"

#define GOLDEN_OPERANDS 24

struct golden_tensor {
    struct ifd_desc desc;
    bool is_absent, is_constant;
    void *data; /* padded and aligned like a tensor, bytes long */
    size_t bytes;
    float *scale;
    int32_t *zero_point;
};

struct golden_case {
    char name[128]; /* "add: s8 broadcast" */
    enum ifd_op op;
    void *attrs;
    double relative, absolute;
    struct golden_tensor input[GOLDEN_OPERANDS], output[GOLDEN_OPERANDS];
    uint32_t input_count, output_count;
};

/** Calls run for every case of the file; returns how many there were. */
size_t golden_for_each(const char *path, void (*run)(struct golden_case *golden, void *context),
                       void *context);

/** Compares the results (in the order of golden->output) with the expected values and reports the
 * first difference. */
void golden_compare(const struct golden_case *golden, uint32_t output, const void *got);

#endif

/** 32-bit sums of products of 8-bit rows with constant s8 matrices that lie below each other. */
#ifndef INFERD_BACKENDS_CPUACC_OPS_SUMS_H
#define INFERD_BACKENDS_CPUACC_OPS_SUMS_H

#include "backends/cpuacc/driver.h"

#define IFD_ACC_SUMS_PARTS 4

/** Part i is [rows, k]: columns rows*i … of the sums. bias: NULL for none; zero: that of the data,
 *  native. */
struct ifd_acc_sums {
    size_t rows, k;
    uint32_t parts;
    const int8_t *weights[IFD_ACC_SUMS_PARTS];
    const int32_t *bias[IFD_ACC_SUMS_PARTS];
    int32_t zero;
    size_t packed; /* where in the step's packed memory */
};

/** Do all sums fit into what kernels hold? */
bool ifd_acc_sums_fit(const struct ifd_acc_sums *sums);
/** Of packed memory, a multiple of the alignment; of temporary memory. */
size_t ifd_acc_sums_bytes(const struct ifd_acc_sums *sums, const struct ifd_kernels *kernels);
size_t ifd_acc_sums_workspace(const struct ifd_acc_sums *sums);
void ifd_acc_sums_pack(const struct ifd_acc_sums *sums, const struct ifd_kernels *kernels,
                       uint8_t *workspace, uint8_t *packed);
/** Sums of count rows of data, stride elements apart. */
void ifd_acc_sums_run(const struct ifd_acc_sums *sums, const struct ifd_acc_step *step,
                      const struct ifd_acc_frame *frame, const ifd_q8 *data, size_t count,
                      size_t stride, int32_t *ret);

#endif

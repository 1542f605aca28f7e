/** Chooses between ways to compute the same layer by measuring them on the device, and keeps what
 *  it learned in a file for the next start.
 *
 *  --backend-option GpuAcc:tuning=LEVEL      0 measures nothing: what the file knows, else the best
 *                                            estimate; 1 measures the 4 ways that are estimated
 *                                            best, 2 the best 12, 3 all
 *  --backend-option GpuAcc:tuning-file=FILE  read when the device is opened, written after each
 *                                            partition that taught something
 *
 *  The file is text: a line that names device, driver and kernels, then a line for each layer. A
 *  file of another device, driver or kernels, or a damaged line, is ignored, and the file written
 *  anew once something is learned. It may be deleted at any time. Thread: one at a time per
 *  device. */
#ifndef INFERD_BACKENDS_GPUACC_TUNER_H
#define INFERD_BACKENDS_GPUACC_TUNER_H

#include "backends/gpuacc/lower.h"

#define IFD_GPU_TUNING_MAX 3
#define IFD_GPU_WAY_TEXT   64

/** What can be computed in several ways, the one that is estimated best first. */
struct ifd_gpu_ways {
    uint32_t count; /* at least 1 */
    /** Calls of a way, one after the other: at least 1. Gets the ways' context, as those below. */
    uint32_t (*calls)(const void *context, uint32_t way);
    /** Describes call number `index` of a way. */
    enum ifd_code (*describe)(const void *context, uint32_t way, uint32_t index,
                              struct ifd_gpu_call *ret_call, struct ifd_err *err);
    /** Names a way, the same in every start; no line ends. */
    void (*name)(const void *context, uint32_t way, char ret[IFD_GPU_WAY_TEXT]);
    const void *context;
};

/** Reads the file. The device is open. */
void ifd_gpu_tuner_open(struct ifd_device *device, const struct ifd_gpu_options *options);
void ifd_gpu_tuner_close(struct ifd_device *device);

/** The way to compute a layer; another than that which is estimated best only if it is clearly
 *  faster, measured in turn with it. key: what the layer is, without line ends and " = ". A way
 *  that fails while it is measured is not chosen. */
uint32_t ifd_gpu_tune(struct ifd_gpu_lowering *lowering, const char *key,
                      const struct ifd_gpu_ways *ways);

/** Has it learned something that the next start will know? */
bool ifd_gpu_tuner_keeps_news(const struct ifd_device *device);

/** Writes the file, if something was learned since. A failure is a line for debugging only. Gives
 *  back the memory for measuring. */
void ifd_gpu_tuner_save(struct ifd_device *device);

#endif

/** Patches of an image, as Winograd's algorithms compute it. */
#ifndef INFERD_BACKENDS_CPUACC_CONV_PATCHES_H
#define INFERD_BACKENDS_CPUACC_CONV_PATCHES_H

#include "backends/cpuacc/conv/run.h"

/** How many patches of this size the pixels of a line, or of a column, take. */
static inline size_t ifd_acc_patches_of(size_t pixels, size_t size)
{
    return (pixels + size - 1) / size;
}

/** The layer's tail for patches begin … begin+count-1 of an image: pixel line by pixel line of each
 *  line of patches. */
void ifd_acc_patches_tail(const struct ifd_acc_conv_run *run, size_t image, size_t begin,
                          size_t count);

#endif

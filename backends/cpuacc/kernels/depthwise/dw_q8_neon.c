/* Q8 depthwise convolution for plain NEON, 32 and 64 bit. */
#include "backends/cpuacc/kernels/depthwise/dw_q8_neon_impl.h"

const struct ifd_kern_dw_q8 ifd_kern_dw_q8_neon = {wide_packed_bytes, wide_pack, scratch_bytes,
                                                   wide_run};

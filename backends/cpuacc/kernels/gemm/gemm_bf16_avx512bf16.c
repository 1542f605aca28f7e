/* bf16 products of AVX-512: pairs of inputs. */
#include "backends/cpuacc/kernels/gemm/gemm_bf16_pairs_tmpl.h"

/* On AMD cores; Intel ones of this instruction set have AMX. */
static float speed(void)
{
    return 2.0f;
}

const struct ifd_kern_gemm_f32 ifd_kern_gemm_bf16_avx512bf16 = {
    .packed_bytes = packed_bytes,
    .pack = pack,
    .run = run,
    .lanes = lanes,
    .narrow = narrow,
    .narrow_rows = narrow_rows,
    .depth = depth,
    .speed = speed,
};

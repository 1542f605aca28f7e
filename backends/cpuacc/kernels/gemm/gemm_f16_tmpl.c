/* gemm of f32 inputs with half-precision weights, widened when they are loaded: half the memory,
 * and only the weights are rounded. */
#include "backends/cpuacc/kernels/simd/simd.h"

#define GEMM_INPUT  float
#define GEMM_PAIR   1
#define GEMM_WEIGHT uint16_t
#define GEMM_FORMAT IFD_PACK_F16

INLINE vf gemm_weights(const uint16_t *w)
{
    return vf_load_f16(w);
}
INLINE vf gemm_inputs(const float *in)
{
    return vf_broadcast(in);
}
INLINE vf gemm_add(vf inputs, vf weights, vf sum)
{
    return vf_fma(inputs, weights, sum);
}

#include "backends/cpuacc/kernels/gemm/gemm_float_tmpl.h"

static float speed(void)
{
    return 1.0f;
}

const struct ifd_kern_gemm_f32 IFD_TABLE = {
    .packed_bytes = packed_bytes, .pack = pack, .run = run, .lanes = lanes, .speed = speed};

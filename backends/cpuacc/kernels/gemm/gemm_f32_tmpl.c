/* f32 gemm and convolution. */
#include "backends/cpuacc/kernels/simd/simd.h"

#define GEMM_INPUT       float
#define GEMM_PAIR        1
#define GEMM_WEIGHT      float
#define GEMM_FORMAT      IFD_PACK_AS_IS
#define GEMM_BLOCKS_EVEN GEMM_EVEN
#if defined(VF_HAS_PAIRS)
#define GEMM_HAS_HALVES
#endif
#if defined(VF_GEMM_A64)
#define GEMM_A64
#elif GEMM_MAX_NV == 4 && VF_REGISTERS == 32
#define GEMM_STREAMS
#endif

#if !defined(GEMM_A64)
INLINE vf gemm_weights(const GEMM_WEIGHT *w)
{
    return vf_load(w);
}
INLINE vf gemm_inputs(const GEMM_INPUT *in)
{
    return vf_broadcast(in);
}
INLINE vf gemm_add(vf inputs, vf weights, vf sum)
{
    return vf_fma(inputs, weights, sum);
}
#endif

#include "backends/cpuacc/kernels/gemm/gemm_float_tmpl.h"

static void pack_part(const struct ifd_gemm_weights *part, size_t n0, size_t k0, void *dst)
{
    const struct ifd_packed *header = dst;
    ifd_pack_gemm_f32_part(choose_layout(header->n, header->k, 1), part, n0, k0, dst);
}

const struct ifd_kern_gemm_f32 IFD_TABLE = {
    .packed_bytes = packed_bytes, .pack = pack, .pack_part = pack_part, .run = run, .lanes = lanes};

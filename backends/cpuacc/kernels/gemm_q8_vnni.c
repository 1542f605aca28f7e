/* Q8 matrix product for AVX-512 with VNNI. */
#include "backends/cpuacc/kernels/gemm_q8_vnni_impl.h"

static const struct ifd_pack_layout layout = {
    .lanes = 16, .quad = 4, .kr = 4, .bytes = 1, .max_nv = 4, .mr = {16, 12, 8, 6}};

static size_t packed_bytes(size_t n, size_t k, size_t taps)
{
    return ifd_pack_gemm_bytes(&layout, n, k, taps, IFD_TAIL_ROWS);
}

static void pack(const struct ifd_gemm_weights *weights, const struct ifd_requant *requant,
                 void *dst)
{
    ifd_pack_gemm_q8(&layout, weights, requant, dst);
}

const struct ifd_kern_gemm_q8 ifd_kern_gemm_q8_vnni = {packed_bytes, pack, run, row_sum};

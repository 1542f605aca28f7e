/* The loops for AVX-512. */
#include "server/media/rows_tmpl.c"

const struct ifd_rows *ifd_rows_avx512(void)
{
    static const struct ifd_rows rows = {"avx512", mix,   mix_fixed, dot,  yuv,
                                         grey,     scale, quantise,  weave};
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") ? &rows : NULL;
}

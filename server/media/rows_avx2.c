/* The loops for AVX2. */
#include "server/media/rows_tmpl.c"

const struct ifd_rows *ifd_rows_avx2(void)
{
    static const struct ifd_rows rows = {"avx2", mix,   mix_fixed, dot,  yuv,
                                         grey,   scale, quantise,  weave};
    return __builtin_cpu_supports("avx2") ? &rows : NULL;
}

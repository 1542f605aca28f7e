/* The loops for every processor, and the choice among the tables. */
#include "server/media/rows_tmpl.c"

const struct ifd_rows *ifd_rows_portable(void)
{
    static const struct ifd_rows rows = {"portable", mix,  mix_fixed, dot,
                                         yuv,        grey, scale,     quantise};
    return &rows;
}

size_t ifd_rows_tables(const struct ifd_rows *ret[2])
{
    size_t count = 0;
    ret[count++] = ifd_rows_portable();
#if defined(__x86_64__)
    const struct ifd_rows *avx2 = ifd_rows_avx2();
    if (avx2) {
        ret[count++] = avx2;
    }
#endif
    return count;
}

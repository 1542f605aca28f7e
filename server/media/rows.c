/* The loops for every processor, and the choice among the tables. */
#include "server/media/rows_tmpl.c"

const struct ifd_rows *ifd_rows_portable(void)
{
    static const struct ifd_rows rows = {"portable", mix,   mix_fixed, dot,  yuv,
                                         grey,       scale, quantise,  weave};
    return &rows;
}

size_t ifd_rows_tables(const struct ifd_rows *ret[IFD_ROWS_TABLES])
{
    size_t count = 0;
    ret[count++] = ifd_rows_portable();
#if defined(__x86_64__)
    const struct ifd_rows *const more[] = {ifd_rows_avx2(), ifd_rows_avx512()};
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        if (more[i]) {
            ret[count++] = more[i];
        }
    }
#endif
    return count;
}

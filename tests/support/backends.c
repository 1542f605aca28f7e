#include "tests/support/backends.h"

#include "backends/builtin.h"
#ifdef IFD_HAVE_GPUACC
#include "backends/gpuacc/gpuacc.h"
#endif

#include <string.h>

#define BACKENDS_MAX 8

const struct ifd_backend *const *test_backends(uint32_t *ret_count)
{
    static const struct ifd_backend *all[BACKENDS_MAX];
    uint32_t count = 0;
    const struct ifd_backend *const *builtin = ifd_backends_builtin(&count);
    memcpy(all, builtin, count * sizeof(all[0]));
#ifdef IFD_HAVE_GPUACC
    all[count++] = &ifd_backend_gpuacc;
#endif
    *ret_count = count;
    return all;
}

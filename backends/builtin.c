/* The list of statically linked backends. */
#include "backends/builtin.h"

#ifdef IFD_HAVE_CPUACC
#include "backends/cpuacc/cpuacc.h"
#endif
#include "backends/cpuref/cpuref.h"

static const struct ifd_backend *const builtin[] = {
#ifdef IFD_HAVE_CPUACC
    &ifd_backend_cpuacc,
#endif
    &ifd_backend_cpuref,
};

const struct ifd_backend *const *ifd_backends_builtin(uint32_t *ret_count)
{
    *ret_count = (uint32_t)(sizeof(builtin) / sizeof(builtin[0]));
    return builtin;
}

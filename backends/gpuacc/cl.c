/* Finds the functions of libOpenCL, and the names of its errors. */
#include "backends/gpuacc/cl.h"

#include <dlfcn.h>
#include <string.h>

static enum ifd_code find_functions(struct ifd_cl *cl, const char *library, struct ifd_err *err)
{
#define IFD_X(name) {"cl" #name, offsetof(struct ifd_cl, name)},
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {IFD_CL_FUNCTIONS(IFD_X)};
#undef IFD_X
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *found = dlsym(cl->library, functions[i].name);
        if (!found) {
            return ifd_fail(err, IFD_UNAVAILABLE, "GpuAcc: %s has no function %s", library,
                            functions[i].name);
        }
        memcpy((char *)cl + functions[i].offset, &found, sizeof(found));
    }
    return IFD_OK;
}

enum ifd_code ifd_cl_open(const char *library, struct ifd_cl *ret, struct ifd_err *err)
{
    struct ifd_cl cl = {0};
    /* drivers have threads that outlive the last context: their code must stay */
    const char *name = library ? library : "libOpenCL.so.1";
    cl.library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!cl.library) {
        const char *why = dlerror();
        return ifd_fail(err, IFD_UNAVAILABLE, "GpuAcc: no OpenCL: %s", why ? why : name);
    }
    const enum ifd_code code = find_functions(&cl, name, err);
    if (code != IFD_OK) {
        ifd_cl_close(&cl);
        return code;
    }
    *ret = cl;
    return IFD_OK;
}

void ifd_cl_close(struct ifd_cl *cl)
{
    if (cl->library) {
        dlclose(cl->library);
    }
    *cl = (struct ifd_cl){0};
}

const char *ifd_cl_error_name(cl_int error)
{
#define NAME(x)                                                                                    \
    {                                                                                              \
        x, #x                                                                                      \
    }
    static const struct {
        cl_int error;
        const char *name;
    } names[] = {
        NAME(CL_DEVICE_NOT_FOUND),       NAME(CL_DEVICE_NOT_AVAILABLE),
        NAME(CL_COMPILER_NOT_AVAILABLE), NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE),
        NAME(CL_OUT_OF_RESOURCES),       NAME(CL_OUT_OF_HOST_MEMORY),
        NAME(CL_BUILD_PROGRAM_FAILURE),  NAME(CL_INVALID_VALUE),
        NAME(CL_INVALID_BINARY),         NAME(CL_INVALID_KERNEL_NAME),
        NAME(CL_INVALID_ARG_INDEX),      NAME(CL_INVALID_ARG_SIZE),
        NAME(CL_INVALID_KERNEL_ARGS),    NAME(CL_INVALID_WORK_GROUP_SIZE),
        NAME(CL_INVALID_WORK_ITEM_SIZE), NAME(CL_INVALID_BUFFER_SIZE),
        NAME(CL_INVALID_COMMAND_QUEUE),  NAME(CL_INVALID_MEM_OBJECT),
    };
#undef NAME
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].error == error) {
            return names[i].name;
        }
    }
    return error == -1001 ? "no platform is installed" : "?";
}

enum ifd_code ifd_cl_fail(struct ifd_err *err, cl_int error, const char *what)
{
    const bool is_memory = error == CL_MEM_OBJECT_ALLOCATION_FAILURE ||
                           error == CL_OUT_OF_HOST_MEMORY || error == CL_INVALID_BUFFER_SIZE;
    const bool is_lost = error == CL_DEVICE_NOT_AVAILABLE || error == CL_INVALID_COMMAND_QUEUE ||
                         error == CL_OUT_OF_RESOURCES;
    return ifd_fail(err,
                    is_memory ? IFD_NOMEM
                    : is_lost ? IFD_UNAVAILABLE
                              : IFD_INTERNAL,
                    "GpuAcc: %s: error %d (%s)", what, error, ifd_cl_error_name(error));
}

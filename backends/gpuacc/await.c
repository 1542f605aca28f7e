/* Asks a marker behind the commands whether it was reached. */
#include "backends/gpuacc/await.h"

#include "engine/base/clock.h"

#include <sched.h>
#include <time.h>

/* Time in which a device is asked without a pause, as drivers do: to wake up takes longer than a
 * kernel. A device that is no GPU computes on this processor, which it needs for itself. */
#define EAGER_GPU_NS   20000000
#define EAGER_OTHER_NS 500000
#define PAUSE_MIN_NS   20000
#define PAUSE_MAX_NS   1000000

/* Pauses are a sixteenth of the time that has passed. */
static void pause(const struct ifd_device *device, uint64_t passed_ns)
{
    if (passed_ns < (device->info.is_gpu ? EAGER_GPU_NS : EAGER_OTHER_NS)) {
        (void)sched_yield();
        return;
    }
    const uint64_t wanted = passed_ns / 16;
    const uint64_t ns = wanted < PAUSE_MIN_NS   ? PAUSE_MIN_NS
                        : wanted > PAUSE_MAX_NS ? PAUSE_MAX_NS
                                                : wanted;
    (void)nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

static cl_int status_of(const struct ifd_device *device, cl_event event)
{
    cl_int status = CL_QUEUED;
    const cl_int error = device->cl.GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                 sizeof(status), &status, NULL);
    return error == CL_SUCCESS ? status : error;
}

bool ifd_gpu_has_ended(const struct ifd_device *device, cl_event event)
{
    return status_of(device, event) <= CL_COMPLETE;
}

static enum ifd_code lost(cl_int error, struct ifd_err *err)
{
    (void)ifd_cl_fail(err, error, "a run");
    if (err) {
        err->code = IFD_UNAVAILABLE;
    }
    return IFD_UNAVAILABLE;
}

enum ifd_code ifd_gpu_await(const struct ifd_device *device, cl_command_queue queue,
                            cl_event *ret_stuck, struct ifd_err *err)
{
    const struct ifd_cl *cl = &device->cl;
    cl_event event = NULL;
    *ret_stuck = NULL;
    cl_int error = cl->EnqueueMarkerWithWaitList(queue, 0, NULL, &event);
    if (error != CL_SUCCESS) {
        return lost(error, err);
    }
    const uint64_t begin = ifd_monotonic_ns();
    uint64_t passed = 0;
    error = cl->Flush(queue);
    cl_int status = error == CL_SUCCESS ? status_of(device, event) : error;
    while (status > CL_COMPLETE && passed <= device->timeout_ns) {
        pause(device, passed);
        passed = ifd_monotonic_ns() - begin;
        status = status_of(device, event);
    }
    if (status > CL_COMPLETE) {
        *ret_stuck = event;
        return ifd_fail(err, IFD_UNAVAILABLE,
                        "GpuAcc: the device has not finished within %llu ms (timeout-ms)",
                        (unsigned long long)(device->timeout_ns / 1000000));
    }
    (void)cl->ReleaseEvent(event);
    return status == CL_COMPLETE ? IFD_OK : lost(status, err);
}

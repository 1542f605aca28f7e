/** A compiled partition: steps and constants on the device. */
#ifndef INFERD_BACKENDS_GPUACC_PARTITION_H
#define INFERD_BACKENDS_GPUACC_PARTITION_H

#include "backends/gpuacc/call.h"
#include "backends/lowering/place.h"
#include "engine/base/arena.h"

/** An argument that is bound. */
struct ifd_gpu_bound {
    enum ifd_gpu_arg_kind kind;
    struct ifd_low_place place; /* IN, OUT */
    size_t element;             /* IN, OUT: bytes of an element */
    cl_mem buffer;              /* CONSTANT; IN: of a constant, else NULL */
    int32_t number;             /* NUMBER: its 32 bits */
};

struct ifd_gpu_step {
    const struct ifd_gpu_program *program;
    enum ifd_gpu_kernel kernel;
    const struct ifd_gpu_bound *arg;
    uint32_t arg_count;
    size_t items[3], group[3]; /* group[0] 0: the driver's choice */
    struct ifd_step_info info;
};

/** A constant that is on the device. */
struct ifd_gpu_resident {
    struct ifd_gpu_constant constant;
    cl_mem buffer; /* counted: partitions for several batch sizes share it */
};

struct ifd_partition {
    struct ifd_device *device;
    struct ifd_arena arena;
    const struct ifd_gpu_step *step;
    uint32_t step_count;
    struct ifd_gpu_resident *resident;
    uint32_t resident_count;
    size_t constant_bytes; /* of those that it does not share */
};

#endif

/** An OpenCL device: which one, what it offers, and what all partitions on it share. */
#ifndef INFERD_BACKENDS_GPUACC_DEVICE_H
#define INFERD_BACKENDS_GPUACC_DEVICE_H

#include "backends/gpuacc/cl.h"
#include "backends/gpuacc/measure.h"
#include "engine/base/thread.h"
#include "inferd/backend.h"

/** How 4 products of 8 bits are summed up (kernels/conv_q8.cl). PLAIN: by other operations, for
 *  tests. */
enum ifd_gpu_dot { IFD_GPU_DOT_NONE, IFD_GPU_DOT_PLAIN, IFD_GPU_DOT_ARM, IFD_GPU_DOT_KHR };

/** What the device says about itself. */
struct ifd_gpu_info {
    char platform[96], name[96], driver[64];
    bool is_gpu;
    bool shares_memory; /* with the host */
    uint32_t compute_units, clock_mhz;
    size_t max_group;                 /* work items of a work group */
    size_t max_buffer;                /* bytes of one buffer */
    size_t local_bytes;               /* of local memory of a work group */
    size_t constant_bytes;            /* of one buffer in constant memory */
    size_t image_width, image_height; /* at most; 0: it has no images */
    size_t
        image_pitch; /* texels of which rows of an image in a buffer are multiples; 0: it cannot */
    enum ifd_gpu_dot dot;
    bool has_fp16;         /* cl_khr_fp16: arithmetic in half precision */
    bool has_mma;          /* NVIDIA's PTX with mma.m16n8k16 (kernels/conv_mma.cl) */
    bool divides_exactly;  /* it can round quotients and roots of floats correctly */
    uint64_t memory_bytes; /* of the device */
};

struct ifd_gpu_program;
struct ifd_gpu_unit;
struct ifd_gpu_lesson;
struct ifd_gpu_unbuilt;

/** What is known of ways to compute layers (tuner.h). */
struct ifd_gpu_tuner {
    uint32_t level;
    const char *file; /* NULL: none */
    struct ifd_gpu_lesson *lessons;
    const char *only; /* NULL; tests: the way of every layer that has it */
    bool has_news;    /* lessons that are not in the file */
    struct ifd_gpu_measure measure;
};

/** Immutable after ifd_gpu_open, but for the lists, the tuner and what was not built. */
struct ifd_device {
    const struct ifd_host *host;
    struct ifd_cl cl;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue; /* for constants; runs have queues of their own */
    struct ifd_gpu_info info;
    const char *cache;                 /* folder of the program cache (cache.h); NULL: none */
    uint64_t timeout_ns;               /* of a wait for the device (context.h) */
    bool sums_fp16;                    /* layers sum in half precision, if the model's may */
    bool maps;                         /* the host copies to and from its memory in place */
    struct ifd_cl_recording recording; /* zeroed: every kernel is launched by a call (record.h) */
    struct ifd_mutex lock;             /* of these lists: */
    struct ifd_gpu_program *programs;  /* asked for so far (program.h) */
    struct ifd_gpu_unit *units;        /* built so far (program.h) */
    struct ifd_context *stuck;         /* given up while they wait for the device (context.h) */
    struct ifd_gpu_tuner tuner;        /* of the thread that compiles */
    struct ifd_gpu_unbuilt *unbuilt;   /* of the thread that compiles (program.h) */
};

/** Where kernels are recorded (record.h). auto: on GPUs; where the device is the host's processor,
 *  a launch costs little. */
enum ifd_gpu_record_choice { IFD_GPU_RECORD_AUTO, IFD_GPU_RECORD_ALWAYS, IFD_GPU_RECORD_NEVER };

/** In which type layers sum up with --precision fp16. */
enum ifd_gpu_sums_choice { IFD_GPU_SUMS_F32, IFD_GPU_SUMS_FP16 };

/** What a user told GpuAcc. */
struct ifd_gpu_options {
    const char *device;      /* which one; NULL: see below */
    const char *cache;       /* folder for built programs; NULL: none */
    uint64_t timeout_ms;     /* 0: IFD_GPU_TIMEOUT_MS */
    uint32_t sums;           /* enum ifd_gpu_sums_choice */
    bool copies;             /* by commands, also where host and device share memory */
    uint32_t record;         /* enum ifd_gpu_record_choice */
    uint32_t tuning;         /* level (tuner.h) */
    const char *tuning_file; /* NULL: none */
};

/** A run takes milliseconds; the first one of a large network on a slow CPU may take seconds, since
 *  drivers finish their kernels then. */
#define IFD_GPU_TIMEOUT_MS 30000

/** Which device: NULL or "" for the first GPU, else the first accelerator or CPU; a number for that
 *  device, counted over all platforms; "gpu", "cpu" or "accelerator" for the first of that type;
 *  any other text for the first device whose platform or name contains it, whatever the case. */
IFD_NODISCARD enum ifd_code ifd_gpu_open(const struct ifd_host *host,
                                         const struct ifd_gpu_options *options,
                                         struct ifd_device **ret_device, struct ifd_err *err);
/** NULL is fine. */
void ifd_gpu_close(struct ifd_device *device);

#endif

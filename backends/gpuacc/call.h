/** A call of a kernel as drivers describe it: the kernel, its definitions, its arguments in order,
 *  and how many work items compute it.
 *
 *      struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_softmax);
 *      ifd_gpu_in(&call, node->input_value[0]);
 *      ifd_gpu_out(&call, node->output_value[0]);
 *      ifd_gpu_int(&call, channels);
 *      ifd_gpu_items(&call, rows, 1, 1);
 *      return ifd_gpu_add_step(lowering, &call, "softmax", 0, err);
 *
 *  Too many arguments or definitions are an error of ifd_gpu_add_step. Thread: one. */
#ifndef INFERD_BACKENDS_GPUACC_CALL_H
#define INFERD_BACKENDS_GPUACC_CALL_H

#include "backends/gpuacc/kernels.h"
#include "backends/lowering/broadcast.h"

#define IFD_GPU_ARGS_MAX     64
#define IFD_GPU_DEFINES_SIZE 4096

/** Writes a constant in the form that a kernel reads. source: content of the model's constant. */
typedef void (*ifd_gpu_pack_fn)(const void *params, const void *source, void *packed);

/** Rows of texels of 4 numbers; width 0: no image, a buffer. */
struct ifd_gpu_image {
    size_t width, height;
    bool is_half;
};

/** A constant of a kernel. source: NULL if params alone decide the content, which is not shared
 *  then. params: in the partition's arena. */
struct ifd_gpu_constant {
    ifd_gpu_pack_fn pack;
    const void *params, *source;
    size_t bytes;
    size_t row; /* of a matrix as it is packed: the same numbers may have another shape elsewhere */
    struct ifd_gpu_image image;
};

enum ifd_gpu_arg_kind {
    IFD_GPU_ARG_IN,       /* a value: its buffer, and where it begins in there, in elements */
    IFD_GPU_ARG_OUT,      /* likewise */
    IFD_GPU_ARG_CONSTANT, /* a buffer */
    IFD_GPU_ARG_NUMBER    /* int or float */
};

struct ifd_gpu_arg {
    enum ifd_gpu_arg_kind kind;
    uint32_t value;
    size_t element; /* bytes of the value's elements as the kernel sees them; 0: its type's */
    struct ifd_gpu_constant constant;
    union {
        int32_t integer;
        float real;
    } number;
};

struct ifd_gpu_call {
    enum ifd_gpu_kernel kernel;
    char defines[IFD_GPU_DEFINES_SIZE]; /* text in front of the kernel's file */
    size_t defines_used;
    struct ifd_gpu_arg arg[IFD_GPU_ARGS_MAX];
    uint32_t arg_count;
    size_t items[3]; /* work items */
    size_t group[3]; /* work items of a group; 0: the driver's choice */
    bool is_too_large;
};

struct ifd_gpu_call ifd_gpu_call(enum ifd_gpu_kernel kernel);

/** element: bytes of an element as the kernel sees the value. */
void ifd_gpu_in_elements(struct ifd_gpu_call *call, uint32_t value, size_t element);
void ifd_gpu_out_elements(struct ifd_gpu_call *call, uint32_t value, size_t element);
/** Of a value of the model: its type's. */
void ifd_gpu_in(struct ifd_gpu_call *call, uint32_t value);
void ifd_gpu_out(struct ifd_gpu_call *call, uint32_t value);
void ifd_gpu_constant(struct ifd_gpu_call *call, ifd_gpu_pack_fn pack, const void *params,
                      const void *source, size_t bytes);
/** The constant that was added last has rows of so many numbers. */
void ifd_gpu_in_rows(struct ifd_gpu_call *call, size_t row);
/** The constant that was added last is an image. */
void ifd_gpu_as_image(struct ifd_gpu_call *call, const struct ifd_gpu_image *image);
void ifd_gpu_int(struct ifd_gpu_call *call, int64_t number);
void ifd_gpu_float(struct ifd_gpu_call *call, float number);

/** Dimension and strides of both operands, from the innermost outwards, rank times; dimensions that
 *  do not exist are 1. */
void ifd_gpu_broadcast(struct ifd_gpu_call *call, const struct ifd_low_broadcast *broadcast,
                       uint32_t rank);

/** Appends to the definitions; format as printf's. */
void ifd_gpu_define(struct ifd_gpu_call *call, const char *format, ...) IFD_PRINTF(2, 3);

void ifd_gpu_items(struct ifd_gpu_call *call, size_t x, size_t y, size_t z);
/** Work groups of this size; the numbers of items are rounded up to multiples of it. */
void ifd_gpu_group(struct ifd_gpu_call *call, size_t x, size_t y, size_t z);

#endif

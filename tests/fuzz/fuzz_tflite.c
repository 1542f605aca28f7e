/* Any bytes as a TFLite model: refused, or loaded and run once without a fault, on CpuRef if the size is odd and on
 * whatever the engine prefers if it is even. "Accepted means safe to run"
 * is the promise; the sanitizers are the judge. Small limits keep one round short. */
#include <stdlib.h>
#include <string.h>

#include "backends/builtin.h"
#include "inferd/engine.h"
#include "tests/fuzz/fuzz.h"

#define TENSOR_BYTES                                                                               \
    ((size_t)4 << 10) /* a convolution of such tensors takes some million steps at most */
#define ARENA_BYTES ((size_t)4 << 20)
#define NODES       64
#define OPERANDS    64

static void expect(bool ok)
{
    if (!ok) {
        abort();
    }
}

/* Inputs of zeros and of ones in turn; outputs in the instance's memory. */
static void run_once(struct ifd_instance *instance, const struct ifd_model_info *info)
{
    static _Alignas(IFD_TENSOR_ALIGN) uint8_t memory[2][TENSOR_BYTES + IFD_TENSOR_PAD];
    struct ifd_tensor input[OPERANDS] = {0};
    struct ifd_tensor output[OPERANDS] = {0};
    struct ifd_err err = {0};
    if (info->input_count > OPERANDS || info->output_count > OPERANDS) {
        return;
    }
    memset(memory[1], 1, TENSOR_BYTES);
    for (uint32_t i = 0; i < info->input_count; i++) {
        const struct ifd_desc *desc = &info->input[i].desc;
        size_t bytes = ifd_dtype_bytes(desc->dtype);
        for (uint32_t d = 0; d < desc->shape.rank; d++) {
            bytes *= (size_t)desc->shape.dim[d];
        }
        expect(bytes <= TENSOR_BYTES);
        input[i] = (struct ifd_tensor){.dtype = desc->dtype,
                                       .shape = desc->shape,
                                       .data = memory[i % 2],
                                       .bytes = bytes,
                                       .capacity = sizeof(memory[0])};
    }
    const struct ifd_io io = {.input = input, .output = output, .batch = 1};
    enum ifd_code code = ifd_instance_run(instance, &io, 1, &err);
    expect(code == IFD_OK ||
           (code != IFD_INTERNAL && err.text[0] != '\0')); /* INVALID: an index out of range */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ifd_engine_options engine_options = {.alloc = ifd_alloc_system()};
    engine_options.backends = ifd_backends_builtin(&engine_options.backend_count);
    static const char *const reference[] = {"CpuRef"};
    const struct ifd_model_options model_options = {.backends = reference,
                                                    .backend_count = size % 2,
                                                    .limits = {.nodes = NODES,
                                                               .node_inputs = OPERANDS,
                                                               .tensor_bytes = TENSOR_BYTES,
                                                               .arena_bytes = ARENA_BYTES}};
    struct ifd_engine *engine = NULL;
    struct ifd_model *model = NULL;
    struct ifd_instance *instance = NULL;
    struct ifd_err err = {0};
    expect(ifd_engine_create(&engine_options, &engine, &err) == IFD_OK);
    const struct ifd_bytes file = {.data = data, .size = size};
    enum ifd_code code = ifd_model_load(engine, file, &model_options, &model, &err);
    expect(code == IFD_OK || (code != IFD_INTERNAL && code != IFD_INVALID && err.text[0] != '\0'));
    if (code == IFD_OK) {
        const struct ifd_instance_options instance_options = {.threads = 1};
        code = ifd_instance_create(model, &instance_options, &instance, &err);
        if (code == IFD_OK) {
            run_once(instance, ifd_model_info(model));
        }
        ifd_instance_destroy(instance);
        ifd_model_destroy(model);
    }
    ifd_engine_destroy(engine);
    return 0;
}

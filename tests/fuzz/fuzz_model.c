/* Any bytes as a TFLite or ONNX model: refused, or loaded and run without a fault, on whatever the
 * engine prefers (CpuAcc) and on CpuRef. "Accepted means safe to run" is the promise; the
 * sanitizers are the judge. Small limits keep one round short.
 *
 * The file's bytes choose how it is run (struct way), so that one file always meets the same
 * kernels: which instructions the CPU is said to have, exact or fast rounding, the precision of
 * products, threads, the size of a batch. */
#include <stdlib.h>
#include <string.h>

#include "backends/builtin.h"
#include "inferd/engine.h"
#include "tests/fuzz/fuzz.h"

#define TENSOR_BYTES                                                                               \
    ((size_t)4 << 10) /* a convolution of these tensors takes some million steps at most */
#define ARENA_BYTES ((size_t)4 << 20)
#define NODES       64
#define OPERANDS    64
#define MAX_BATCH   3

struct way {
    uint32_t cpu_mask; /* 0: none at all */
    bool exact, fast;
    enum ifd_precision precision;
    uint32_t threads, batch;
};

static void expect(bool ok)
{
    if (!ok) {
        abort();
    }
}

static struct way choose_way(struct ifd_bytes file)
{
    static const uint32_t masks[] = {
        UINT32_MAX,
        UINT32_MAX & ~(uint32_t)(IFD_CPU_AMX_INT8 | IFD_CPU_AMX_BF16 | IFD_CPU_I8MM),
        IFD_CPU_AVX2 | IFD_CPU_AVX512 | IFD_CPU_NEON,
        IFD_CPU_AVX2 | IFD_CPU_NEON,
        0,
    };
    const uint8_t *bytes = file.data;
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < file.size; i++) {
        hash = (hash ^ bytes[i]) * 16777619u;
    }
    hash ^= hash >> 15;
    return (struct way){
        .cpu_mask = masks[hash % (sizeof(masks) / sizeof(masks[0]))],
        .exact = hash >> 8 & 1,
        .fast = (hash >> 8 & 3) == 2,
        .precision = hash >> 8 & 1 ? IFD_PRECISION_F32 : (enum ifd_precision)((hash >> 10) % 3),
        .threads = 1 + (hash >> 12 & 1),
        .batch = 1 + (hash >> 13) % MAX_BATCH,
    };
}

/* Inputs of zeros and of ones in turn; outputs in the instance's memory. */
static void run_once(struct ifd_instance *instance, const struct ifd_model_info *info,
                     int64_t batch)
{
    static _Alignas(IFD_TENSOR_ALIGN) uint8_t memory[2][MAX_BATCH * TENSOR_BYTES + IFD_TENSOR_PAD];
    struct ifd_tensor input[OPERANDS] = {0};
    struct ifd_tensor output[OPERANDS] = {0};
    struct ifd_err err = {0};
    if (info->input_count > OPERANDS || info->output_count > OPERANDS) {
        return;
    }
    memset(memory[1], 1, MAX_BATCH * TENSOR_BYTES);
    batch = info->batch_is_free ? batch : 1;
    for (uint32_t i = 0; i < info->input_count; i++) {
        const struct ifd_desc *desc = &info->input[i].desc;
        size_t bytes = ifd_dtype_bytes(desc->dtype);
        for (uint32_t d = 0; d < desc->shape.rank; d++) {
            bytes *= (size_t)info->input[i].example.dim[d];
        }
        expect(bytes <= TENSOR_BYTES);
        input[i] = (struct ifd_tensor){.dtype = desc->dtype,
                                       .shape = info->input[i].example,
                                       .data = memory[i % 2],
                                       .bytes = bytes * (size_t)batch,
                                       .capacity = sizeof(memory[0])};
        if (info->batch_is_free) {
            input[i].shape.dim[0] = batch;
        }
    }
    const struct ifd_io io = {.input = input, .output = output, .batch = batch};
    enum ifd_code code = ifd_instance_run(instance, &io, 1, &err);
    expect(code == IFD_OK ||
           (code != IFD_INTERNAL && err.text[0] != '\0')); /* INVALID: an index out of range */
}

#ifdef IFD_FUZZ
/* Inserted bytes shift offsets, which the verifier sees at once. So two times of three, numbers are
 * changed where they stand: the file stays a FlatBuffer more often, and what follows the verifier
 * gets its share. */
static size_t change_numbers(uint8_t *data, size_t size, unsigned random)
{
    static const uint32_t numbers[] = {0,          1,          2,          3,          4,
                                       5,          7,          8,          9,          16,
                                       255,        256,        0xffffffff, 0xfffffffe, 0x7fffffff,
                                       0x80000000, 0x80000001, 0x10000,    0x3f800000, 0xbf800000,
                                       0x7f800000, 0x7fc00000, 0x00000001, 0x7f7fffff};
    const unsigned changes = 1 + random % 3;
    for (unsigned i = 0; i < changes && size >= 4; i++) {
        random = random * 1664525u + 1013904223u;
        const size_t at = random % (size / 4) * 4;
        random = random * 1664525u + 1013904223u;
        const uint32_t number = numbers[(random >> 8) % (sizeof(numbers) / sizeof(numbers[0]))];
        memcpy(data + at, &number, (random >> 16) % 3 == 0 ? 1 : sizeof(number));
    }
    return size;
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return seed % 3 == 0 ? LLVMFuzzerMutate(data, size, max_size)
                         : change_numbers(data, size, seed);
}
#endif

/* backend: NULL for the engine's own order. */
static void load_and_run(struct ifd_engine *engine, struct ifd_bytes file, const struct way *way,
                         const char *backend)
{
    const struct ifd_model_options options = {.backends = backend ? &backend : NULL,
                                              .backend_count = backend ? 1 : 0,
                                              .max_threads = way->threads,
                                              .precision = way->precision,
                                              .limits = {.nodes = NODES,
                                                         .node_inputs = OPERANDS,
                                                         .tensor_bytes = TENSOR_BYTES,
                                                         .arena_bytes = ARENA_BYTES}};
    struct ifd_model *model = NULL;
    struct ifd_instance *instance = NULL;
    struct ifd_err err = {0};
    enum ifd_code code = ifd_model_load(engine, file, &options, &model, &err);
    expect(code == IFD_OK || (code != IFD_INTERNAL && code != IFD_INVALID && err.text[0] != '\0'));
    if (code == IFD_OK) {
        const struct ifd_instance_options instance_options = {.threads = way->threads,
                                                              .max_batch = way->batch};
        code = ifd_instance_create(model, &instance_options, &instance, &err);
        if (code == IFD_OK) {
            run_once(instance, ifd_model_info(model), way->batch);
        }
        ifd_instance_destroy(instance);
        ifd_model_destroy(model);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct ifd_bytes file = {.data = data, .size = size};
    const struct way way = choose_way(file);
    struct ifd_engine_options options = {.alloc = ifd_alloc_system(),
                                         .cpu_mask = way.cpu_mask,
                                         .no_cpu_features = way.cpu_mask == 0,
                                         .exact = way.exact,
                                         .fast = way.fast};
    struct ifd_engine *engine = NULL;
    struct ifd_err err = {0};
    options.backends = ifd_backends_builtin(&options.backend_count);
    expect(ifd_engine_create(&options, &engine, &err) == IFD_OK);
    load_and_run(engine, file, &way, NULL);
    load_and_run(engine, file, &way, "CpuRef");
    ifd_engine_destroy(engine);
    return 0;
}

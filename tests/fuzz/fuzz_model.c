/* Any bytes as a TFLite or ONNX model: refused, or loaded and run without a fault, on whatever the
 * engine prefers (CpuAcc) and on CpuRef, and both answer the same (same.h). "Accepted means safe to
 * run" is the promise; the sanitizers are the judge. Small limits keep one round short.
 *
 * The file's bytes choose how it is run (struct way), so that one file always meets the same
 * kernels: which instructions the CPU is said to have, exact or fast rounding, the precision of
 * products, threads, the size of a batch, what its inputs hold. */
#include <stdio.h>
#include <string.h>

#include "backends/builtin.h"
#include "engine/base/clock.h"
#include "engine/model/model.h"
#include "inferd/engine.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/same.h"

#define TENSOR_BYTES                                                                               \
    ((size_t)4 << 10) /* a convolution of these tensors takes some million steps at most */
#define ARENA_BYTES ((size_t)4 << 20)
#define NODES       64
#define OPERANDS    64
#define MAX_BATCH   3
#define ASKED_TWICE 16 /* of so many files that CpuAcc refuses, CpuRef is asked about one, too */
#define RUN_NS      ((uint64_t)100 * 1000 * 1000) /* loops without an end stop here */

/* The engines differ in the instructions that they see, and in how they round. */
enum { ROUNDS, ROUNDS_EXACT, ROUNDS_FAST, ROUNDINGS };

static const uint32_t masks[] = {
    UINT32_MAX,
    UINT32_MAX & ~(uint32_t)(IFD_CPU_AMX_INT8 | IFD_CPU_AMX_BF16 | IFD_CPU_I8MM),
    IFD_CPU_AVX2 | IFD_CPU_AVX512 | IFD_CPU_NEON,
    IFD_CPU_AVX2 | IFD_CPU_NEON,
    0, /* none at all */
};

#define MASKS (sizeof(masks) / sizeof(masks[0]))

struct way {
    uint32_t mask, rounding; /* of masks; enum */
    enum ifd_precision precision;
    uint32_t threads, batch, seed;
};

/* A model on one backend. */
struct loaded {
    struct ifd_model *model;
    struct ifd_instance *instance;
    const struct ifd_model_info *info;
    struct ifd_tensor output[OPERANDS];
    enum ifd_code code;
    struct ifd_err err;
};

static struct way choose_way(struct ifd_bytes file)
{
    static const uint32_t roundings[] = {ROUNDS, ROUNDS_EXACT, ROUNDS_FAST, ROUNDS_EXACT};
    const uint8_t *bytes = file.data;
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < file.size; i++) {
        hash = (hash ^ bytes[i]) * 16777619u;
    }
    hash ^= hash >> 15;
    return (struct way){
        .mask = hash % MASKS,
        .rounding = roundings[hash >> 8 & 3],
        .precision = hash >> 8 & 1 ? IFD_PRECISION_F32 : (enum ifd_precision)((hash >> 10) % 3),
        .threads = 1 + (hash >> 12 & 1),
        .batch = 1 + (hash >> 13) % MAX_BATCH,
        .seed = hash,
    };
}

/* Engines live as long as the process: to open one takes longer than most rounds. */
static struct ifd_engine *engine_of(const struct way *way)
{
    static struct ifd_engine *engines[MASKS][ROUNDINGS];
    struct ifd_engine **engine = &engines[way->mask][way->rounding];
    struct ifd_err err = {0};
    if (!*engine) {
        struct ifd_engine_options options = {.alloc = ifd_alloc_system(),
                                             .cpu_mask = masks[way->mask],
                                             .no_cpu_features = masks[way->mask] == 0,
                                             .cores = 2,
                                             .exact = way->rounding == ROUNDS_EXACT,
                                             .fast = way->rounding == ROUNDS_FAST};
        options.backends = ifd_backends_builtin(&options.backend_count);
        MUST(ifd_engine_create(&options, engine, &err) == IFD_OK);
    }
    return *engine;
}

/* backend: NULL for the engine's own order. */
static void load(struct ifd_engine *engine, struct ifd_bytes file, const struct way *way,
                 const char *backend, struct loaded *ret)
{
    const struct ifd_model_options options = {.backends = backend ? &backend : NULL,
                                              .backend_count = backend ? 1 : 0,
                                              .max_threads = way->threads,
                                              .precision = way->precision,
                                              .limits = {.nodes = NODES,
                                                         .node_inputs = OPERANDS,
                                                         .tensor_bytes = TENSOR_BYTES,
                                                         .arena_bytes = ARENA_BYTES}};
    const struct ifd_instance_options instance = {.threads = way->threads, .max_batch = way->batch};
    *ret = (struct loaded){.model = NULL};
    ret->code = ifd_model_load(engine, file, &options, &ret->model, &ret->err);
    MUST(ret->code == IFD_OK || (ret->code != IFD_INTERNAL && ret->code != IFD_INVALID));
    if (!ret->code) {
        ret->info = ifd_model_info(ret->model);
        ret->code = ifd_instance_create(ret->model, &instance, &ret->instance, &ret->err);
    }
    MUST(ret->code == IFD_OK || ret->err.text[0] != '\0');
}

static void unload(struct loaded *loaded)
{
    ifd_instance_destroy(loaded->instance);
    ifd_model_destroy(loaded->model);
}

/* Room for the inputs of a run; shared, as their content is. */
static bool make_inputs(const struct ifd_model_info *info, const struct way *way,
                        struct ifd_tensor input[OPERANDS])
{
    static _Alignas(IFD_TENSOR_ALIGN)
        uint8_t memory[OPERANDS][MAX_BATCH * TENSOR_BYTES + IFD_TENSOR_PAD];
    if (info->input_count > OPERANDS || info->output_count > OPERANDS) {
        return false;
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        const struct ifd_desc *desc = &info->input[i].desc;
        const size_t batch = info->batch_is_free ? way->batch : 1;
        size_t count = 1;
        for (uint32_t d = 0; d < desc->shape.rank; d++) {
            count *= (size_t)info->input[i].example.dim[d];
        }
        MUST(count * ifd_dtype_bytes(desc->dtype) <= TENSOR_BYTES);
        count *= batch;
        input[i] = (struct ifd_tensor){.dtype = desc->dtype,
                                       .shape = info->input[i].example,
                                       .data = memory[i],
                                       .bytes = count * ifd_dtype_bytes(desc->dtype),
                                       .capacity = sizeof(memory[0])};
        if (info->batch_is_free) {
            input[i].shape.dim[0] = (int64_t)batch;
        }
        fuzz_fill(&input[i], count, way->seed + i);
    }
    return true;
}

static void run(struct loaded *loaded, const struct ifd_tensor *input, const struct way *way)
{
    const struct ifd_io io = {.input = input,
                              .output = loaded->output,
                              .batch = loaded->info->batch_is_free ? way->batch : 1,
                              .deadline_ns = ifd_monotonic_ns() + RUN_NS};
    loaded->err.text[0] = '\0';
    loaded->code = ifd_instance_run(loaded->instance, &io, 1, &loaded->err);
    MUST(!loaded->code || (loaded->code != IFD_INTERNAL && loaded->err.text[0] != '\0'));
}

/* ---- both answer the same ---- */

/* A limit that one of them met before the other, and time, are no difference. */
static void expect_same_code(const char *what, const struct loaded *fast, const struct loaded *ref)
{
    const bool is_limit = fast->code == IFD_TOO_LARGE || ref->code == IFD_TOO_LARGE ||
                          fast->code == IFD_DEADLINE || ref->code == IFD_DEADLINE;
    if (fast->code != ref->code && !is_limit) {
        (void)fprintf(stderr, "%s: \"%s\", CpuRef \"%s\"\n", what, fast->err.text, ref->err.text);
        __builtin_trap();
    }
}

/* Whether CpuRef itself answers something else if its inputs move a little: rounding may have gone
 * either way then. Changes the inputs. */
static bool is_shaky(struct loaded *ref, uint32_t index, double distance, struct ifd_tensor *input,
                     const struct way *way)
{
    static uint8_t memory[MAX_BATCH * TENSOR_BYTES];
    struct ifd_tensor first = ref->output[index];
    MUST(first.bytes <= sizeof(memory));
    memcpy(memory, first.data, first.bytes);
    first.data = memory;
    bool moves = false;
    for (uint32_t turn = 0; turn < 8; turn++) {
        for (uint32_t i = 0; i < ref->info->input_count; i++) {
            moves |= fuzz_move(&input[i], way->seed + 64 * turn + i);
        }
        run(ref, input, way);
        const struct ifd_tensor *now = &ref->output[index];
        if (ref->code || !ifd_shape_equal(&now->shape, &first.shape) ||
            fuzz_distance(now, &first) >= distance / 16) {
            return true;
        }
    }
    return !moves;
}

/* Of constants beyond all measure the order of a sum makes one number, another or none. */
static bool has_wild_constants(const struct ifd_graph *graph)
{
    bool has = false;
    for (; graph; graph = graph->next) {
        for (uint32_t i = 0; i < graph->value_count; i++) {
            const struct ifd_value *value = &graph->value[i];
            has = has || fuzz_is_wild(value->desc.dtype, value->data);
        }
    }
    return has;
}

static void expect_same_outputs(const struct loaded *fast, struct loaded *ref,
                                struct ifd_tensor *input, const struct way *way)
{
    const bool is_close = fast->info->exact && fast->info->precision == IFD_PRECISION_F32 &&
                          !has_wild_constants(&ref->model->graph);
    for (uint32_t i = 0; i < fast->info->output_count; i++) {
        const struct ifd_tensor *a = &fast->output[i], *b = &ref->output[i];
        const bool has_shape = a->dtype == b->dtype && ifd_shape_equal(&a->shape, &b->shape);
        const double distance = has_shape && is_close ? fuzz_distance(a, b) : !has_shape;
        if (distance > fuzz_tolerance(b->dtype) && !is_shaky(ref, i, distance, input, way)) {
            (void)fprintf(stderr, "output %u \"%s\" is %g off, same shape: %d\n", i,
                          fast->info->output[i].name, distance, has_shape);
            __builtin_trap();
        }
        if (distance > fuzz_tolerance(b->dtype)) {
            return; /* the reference's outputs are of other inputs now */
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct ifd_bytes file = {.data = data, .size = size};
    const struct way way = choose_way(file);
    struct ifd_engine *engine = engine_of(&way);
    struct ifd_tensor input[OPERANDS] = {0};
    struct loaded fast, ref;
    load(engine, file, &way, NULL, &fast);
    if (fast.code && way.seed % ASKED_TWICE != 0) { /* nearly always by the parser */
        unload(&fast);
        return 0;
    }
    load(engine, file, &way, "CpuRef", &ref);
    expect_same_code("load", &fast, &ref);
    if (!fast.code && !ref.code) {
        MUST(fast.info->input_count == ref.info->input_count &&
             fast.info->output_count == ref.info->output_count);
        if (make_inputs(fast.info, &way, input)) {
            run(&fast, input, &way);
            run(&ref, input, &way);
            expect_same_code("run", &fast, &ref);
            if (!fast.code && !ref.code) {
                expect_same_outputs(&fast, &ref, input, &way);
            }
        }
    }
    unload(&fast);
    unload(&ref);
    return 0;
}

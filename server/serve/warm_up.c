/* Makes requests for warm-up and runs them. */
#include "server/serve/warm_up.h"

#include <inttypes.h>
#include <string.h>

#include "engine/base/str.h"
#include "server/model/reshape.h"

#define ARENA_BYTES ((size_t)1 << 30)

/* ---- a run and its check ---- */

/* Bits that are all set only in infinities and NaNs; 0: the type has neither. */
static uint64_t exponent_bits(enum ifd_dtype dtype)
{
    return dtype == IFD_F32    ? 0x7f800000
           : dtype == IFD_F64  ? 0x7ff0000000000000
           : dtype == IFD_F16  ? 0x7c00
           : dtype == IFD_BF16 ? 0x7f80
                               : 0;
}

static bool is_finite(const struct ifd_tensor *tensor, size_t *ret_element)
{
    const uint64_t mask = exponent_bits(tensor->dtype);
    const size_t each = ifd_dtype_bytes(tensor->dtype);
    for (size_t at = 0; mask != 0 && at + each <= tensor->bytes; at += each) {
        uint64_t bits = 0;
        memcpy(&bits, (const uint8_t *)tensor->data + at, each);
        if ((bits & mask) == mask) {
            *ret_element = at / each;
            return false;
        }
    }
    return true;
}

/* Sound models that divide by the sum of their input, or take its logarithm, answer zeros with NaN.
 * So made-up inputs show a broken version only by comparison. */
static enum ifd_code check_outputs(struct ifd_warm_up *self, const struct ifd_job *job,
                                   bool is_made_up, struct ifd_err *err)
{
    const struct ifd_version *version = self->version;
    self->made_up_runs += is_made_up;
    for (uint32_t i = 0; i < job->output_count; i++) {
        const char *name = self->version->desc.output[i].name;
        size_t element = 0;
        if (is_finite(&job->output[i], &element)) {
            continue;
        }
        if (!is_made_up || version->has_to_be_finite) {
            return ifd_fail(err, IFD_CORRUPT, "output \"%s\": element %zu is infinite or NaN, %s",
                            name, element,
                            is_made_up
                                ? "the version that serves answers such inputs with finite numbers"
                                : "all have to be finite");
        }
        if (self->odd_runs++ == 0) {
            ifd_log_warn(self->log, "warm-up output is infinite or NaN",
                         "model=%s version=%s output=%s element=%zu", version->name,
                         version->number_text, name, element);
        }
        return IFD_OK;
    }
    return IFD_OK;
}

/* Makes a request that wants all outputs. The caller fills its inputs through ret_input. */
static enum ifd_code make_request(const struct ifd_warm_up *self, int64_t batch,
                                  struct ifd_arena *arena, struct ifd_job *ret_job,
                                  struct ifd_tensor **ret_input, struct ifd_err *err)
{
    const struct ifd_model_desc *desc = &self->version->desc;
    struct ifd_tensor *input = ifd_arena_take_array(arena, desc->input_count, sizeof(*input));
    struct ifd_tensor *output = ifd_arena_take_array(arena, desc->output_count, sizeof(*output));
    bool *wanted = ifd_arena_take_array(arena, desc->output_count, sizeof(*wanted));
    if (!input || !output || !wanted) {
        return ifd_arena_fail(arena, sizeof(*input), err);
    }
    memset(wanted, true, desc->output_count * sizeof(*wanted));
    *ret_job = (struct ifd_job){.input = input,
                                .output = output,
                                .wanted = wanted,
                                .input_count = desc->input_count,
                                .output_count = desc->output_count,
                                .batch = batch};
    *ret_input = input;
    return IFD_OK;
}

static enum ifd_code run(struct ifd_warm_up *self, struct ifd_runner *runner,
                         const struct ifd_job *request, bool is_made_up, struct ifd_err *err)
{
    struct ifd_job job = *request, *jobs[] = {&job};
    memset(job.output, 0, job.output_count * sizeof(*job.output));
    if (*self->is_stopping) {
        return ifd_fail(err, IFD_UNAVAILABLE, "the server is stopping");
    }
    const uint64_t begun_ns = ifd_now_ns(self->clock);
    enum ifd_code code = runner->run(runner, jobs, 1, err);
    self->spent_ns += ifd_now_ns(self->clock) - begun_ns;
    self->runs++;
    if (!code) {
        code = check_outputs(self, &job, is_made_up, err);
    }
    ifd_release_tensor(self->alloc, job.memory, job.memory_bytes);
    if (!code && self->most_ns > 0 && self->spent_ns > self->most_ns) {
        code = ifd_fail(err, IFD_DEADLINE,
                        "%u runs took %" PRIu64 " ms, --warm-up-timeout-ms allows %" PRIu64,
                        self->runs, self->spent_ns / 1000000, self->most_ns / 1000000);
    }
    return code;
}

/* ---- zeros ---- */

enum ifd_code ifd_zero_input(const struct ifd_port *port, struct ifd_arena *arena,
                             struct ifd_tensor *ret, struct ifd_err *err)
{
    struct ifd_shape shape = port->example;
    size_t bytes = ifd_dtype_bytes(port->desc.dtype);
    bool is_known = port->desc.dtype != IFD_STR;
    for (uint32_t d = 0; is_known && d < shape.rank; d++) {
        if (d == 0 && port->batched) {
            shape.dim[0] = 1;
        }
        is_known = shape.dim[d] > 0 && ifd_size_mul(bytes, (size_t)shape.dim[d], &bytes);
    }
    if (!is_known) {
        return ifd_fail(err, IFD_UNSUPPORTED,
                        "input \"%s\": only a request can say how large it is", port->name);
    }
    void *data = ifd_arena_take_tensor(arena, bytes);
    if (!data) {
        return ifd_arena_fail(arena, bytes, err);
    }
    memset(data, 0, bytes);
    if (port->value.size == bytes) { /* what a request may leave out */
        memcpy(data, port->value.data, bytes);
    }
    *ret = (struct ifd_tensor){
        .dtype = port->desc.dtype, .shape = shape, .data = data, .bytes = bytes, .capacity = bytes};
    return IFD_OK;
}

static enum ifd_code run_zeros(struct ifd_warm_up *self, struct ifd_runner *runner,
                               struct ifd_arena *arena, struct ifd_err *err)
{
    const struct ifd_model_info *info = ifd_model_info(self->version->engine);
    struct ifd_job request;
    struct ifd_tensor *input = NULL;
    enum ifd_code code = make_request(self, 1, arena, &request, &input, err);
    for (uint32_t i = 0; i < info->input_count && !code; i++) {
        code = ifd_zero_input(&info->input[i], arena, &input[i], err);
    }
    if (code == IFD_UNSUPPORTED) {
        return IFD_OK;
    }
    code = code ? code : run(self, runner, &request, true, err);
    if (code && code != IFD_INVALID) {
        ifd_err_prefix(err, "warm-up with zeros");
    }
    return code == IFD_INVALID ? IFD_OK : code; /* the model refuses zeros */
}

/* ---- samples of the config ---- */

static const struct ifd_warm_input_info *find_input(const struct ifd_warm_up_info *sample,
                                                    const char *name)
{
    for (uint32_t i = 0; i < sample->input_count; i++) {
        if (strcmp(sample->input[i].tensor.name, name) == 0) {
            return &sample->input[i];
        }
    }
    return NULL;
}

static bool fits(const struct ifd_shape *dims, const struct ifd_shape *declared)
{
    bool is_same = dims->rank == declared->rank;
    for (uint32_t d = 0; is_same && d < dims->rank; d++) {
        is_same = declared->dim[d] == IFD_DIM_ANY || declared->dim[d] == dims->dim[d];
    }
    return is_same;
}

static enum ifd_code check_sample(const struct ifd_warm_up_info *sample,
                                  const struct ifd_model_desc *desc, struct ifd_err *err)
{
    uint32_t most = desc->max_batch_size > 0 ? (uint32_t)desc->max_batch_size : 1, used = 0;
    if (sample->batch_size > most) {
        return ifd_fail(err, IFD_INVALID, "batch_size %u is more than %u", sample->batch_size,
                        most);
    }
    for (uint32_t i = 0; i < desc->input_count; i++) {
        const struct ifd_tensor_info *info = &desc->input[i];
        const struct ifd_warm_input_info *input = find_input(sample, info->name);
        used += input != NULL;
        if (!input && !info->optional && !info->is_hidden) {
            return ifd_fail(err, IFD_INVALID, "input \"%s\" is missing", info->name);
        }
        if (input && input->tensor.dtype != info->dtype) {
            return ifd_fail(err, IFD_INVALID, "input \"%s\" is %s in the model, not %s", info->name,
                            ifd_dtype_wire_name(info->dtype),
                            ifd_dtype_wire_name(input->tensor.dtype));
        }
        if (input && !fits(&input->tensor.shape, &info->shape)) {
            return ifd_fail(err, IFD_INVALID, "input \"%s\": its dims are not those of the model",
                            info->name);
        }
    }
    return used == sample->input_count
               ? IFD_OK
               : ifd_fail(err, IFD_INVALID, "it has %u inputs, %u of them are the model's",
                          sample->input_count, used);
}

/* Fills data with numbers between 0 and 1, any integers, false and true; strings stay empty. The
 * same values every time. */
static void fill_random(void *data, size_t bytes, enum ifd_dtype dtype)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    size_t each = ifd_dtype_bytes(dtype);
    for (size_t at = 0; dtype != IFD_STR && at + each <= bytes; at += each) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t bits = state >> 11;
        double real = (double)bits / 9007199254740992.0;
        float single = (float)real;
        uint8_t truth = bits & 1;
        const void *from = dtype == IFD_F32    ? (const void *)&single
                           : dtype == IFD_F64  ? (const void *)&real
                           : dtype == IFD_BOOL ? (const void *)&truth
                                               : (const void *)&bits;
        bool is_half = dtype == IFD_F16 || dtype == IFD_BF16; /* zeros are enough */
        if (!is_half) {
            memcpy((uint8_t *)data + at, from, each);
        }
    }
}

static enum ifd_code read_sample(const struct ifd_source *source,
                                 const struct ifd_warm_input_info *input,
                                 const struct ifd_alloc *alloc, struct ifd_bytes *ret,
                                 struct ifd_err *err)
{
    char path[300];
    if (!ifd_str_format(path, sizeof(path), "warmup/%s", input->file) ||
        !ifd_path_is_inside(ifd_str(path))) {
        return ifd_fail(err, IFD_INVALID, "input_data_file \"%.80s\" is not in the folder warmup",
                        input->file);
    }
    return ifd_source_read(source, path, ARENA_BYTES, alloc, ret, err);
}

/* info: the input as the model's description has it. */
static enum ifd_code make_input(const struct ifd_version *version,
                                const struct ifd_tensor_info *info,
                                const struct ifd_warm_input_info *input, uint32_t batch,
                                struct ifd_arena *arena, struct ifd_tensor *ret,
                                struct ifd_err *err)
{
    const struct ifd_shape *dims = &input->tensor.shape;
    bool has_batch = version->desc.max_batch_size > 0;
    size_t bytes = input->tensor.dtype == IFD_STR ? 4 : ifd_dtype_bytes(input->tensor.dtype);
    size_t all = 0;
    struct ifd_bytes file = {0};
    enum ifd_code code = IFD_OK;
    *ret = (struct ifd_tensor){.dtype = input->tensor.dtype};
    ret->shape.rank = dims->rank + has_batch;
    ret->shape.dim[0] = batch;
    for (uint32_t d = 0; d < dims->rank; d++) {
        if (!ifd_size_mul(bytes, (size_t)dims->dim[d], &bytes)) {
            return ifd_fail(err, IFD_TOO_LARGE, "input \"%s\" is too large", input->tensor.name);
        }
        ret->shape.dim[d + has_batch] = dims->dim[d];
    }
    if (input->fill == IFD_WARM_FILE) {
        code = read_sample(version->source, input, arena->alloc, &file, err);
        if (!code && input->tensor.dtype != IFD_STR && file.size != bytes) {
            code = ifd_fail(err, IFD_INVALID, "\"%.80s\" has %zu bytes, a sample of \"%s\" has %zu",
                            input->file, file.size, input->tensor.name, bytes);
        }
        bytes = file.size;
    }
    if (!code && !ifd_size_mul(bytes, batch, &all)) {
        code = ifd_fail(err, IFD_TOO_LARGE, "input \"%s\" is too large", input->tensor.name);
    }
    ret->data = code ? NULL : ifd_arena_take_tensor(arena, all);
    if (!code && !ret->data) {
        code = ifd_arena_fail(arena, all, err);
    }
    for (uint32_t i = 0; i < batch && !code; i++) {
        uint8_t *sample = (uint8_t *)ret->data + i * bytes;
        if (file.size > 0) {
            memcpy(sample, file.data, bytes);
        } else {
            memset(sample, 0, bytes);
        }
        if (input->fill == IFD_WARM_RANDOM) {
            fill_random(sample, bytes, input->tensor.dtype);
        }
    }
    ifd_release_tensor(arena->alloc, (void *)(uintptr_t)file.data, file.size);
    ifd_reshape_to_file(info, has_batch, &ret->shape);
    ret->bytes = ret->capacity = all;
    return code;
}

static enum ifd_code run_sample(struct ifd_warm_up *self, struct ifd_runner *runner,
                                const struct ifd_warm_up_info *sample, struct ifd_arena *arena,
                                struct ifd_err *err)
{
    const struct ifd_model_desc *desc = &self->version->desc;
    bool is_made_up = false;
    struct ifd_job request;
    struct ifd_tensor *input = NULL;
    enum ifd_code code = check_sample(sample, desc, err);
    code = code ? code : make_request(self, sample->batch_size, arena, &request, &input, err);
    for (uint32_t i = 0; i < desc->input_count && !code; i++) {
        const struct ifd_warm_input_info *from = find_input(sample, desc->input[i].name);
        if (from) {
            code = make_input(self->version, &desc->input[i], from, sample->batch_size, arena,
                              &input[i], err);
            is_made_up = is_made_up || from->fill != IFD_WARM_FILE;
        } else if (!code && desc->input[i].is_hidden) { /* the beginning of a sequence */
            const struct ifd_warm_input_info zeros = {.tensor = desc->input[i]};
            code = make_input(self->version, &desc->input[i], &zeros, sample->batch_size, arena,
                              &input[i], err);
        }
    }
    for (uint32_t i = 0; i < sample->count && !code; i++) {
        code = run(self, runner, &request, is_made_up, err);
    }
    if (code) {
        ifd_err_prefix(err, "model_warmup \"%s\"", sample->name);
    }
    return code;
}

enum ifd_code ifd_warm_up(struct ifd_warm_up *self, struct ifd_runner *runner, struct ifd_err *err)
{
    const struct ifd_model_desc *m = &self->version->desc;
    const bool runs_zeros = self->runs_zeros && self->version->engine && m->warm_up_count == 0 &&
                            ifd_model_info(self->version->engine)->unsized[0] == '\0';
    const uint32_t count = runs_zeros ? 1 : m->warm_up_count;
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; i < count && !code; i++) {
        struct ifd_arena arena;
        ifd_arena_init(&arena, self->alloc, ARENA_BYTES);
        code = runs_zeros ? run_zeros(self, runner, &arena, err)
                          : run_sample(self, runner, &m->warm_up[i], &arena, err);
        ifd_arena_finish(&arena);
    }
    return code;
}

bool ifd_warm_up_is_finite(const struct ifd_warm_up *self)
{
    return self->made_up_runs > 0 && self->odd_runs == 0;
}

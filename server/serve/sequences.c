/* Open sequences of a version, each with the tensors of its states. */
#include "server/serve/sequences.h"

#include <string.h>

#include "engine/base/str.h"

#define ID_BYTES 128 /* of a sequence's id, which clients choose */

struct ifd_sequence {
    struct ifd_sequence *next;
    char id[ID_BYTES];
    bool is_busy, is_ending;
    uint64_t used_ns;
    uint8_t *memory;
};

struct ifd_sequences {
    const struct ifd_alloc *alloc;
    const struct ifd_model_desc *desc;
    struct ifd_sequence *first;
    uint32_t count;
    size_t *offset; /* per state */
    size_t bytes;   /* of all states of a sequence */
};

/* ---- life ---- */

static bool state_bytes(const struct ifd_tensor_info *input, size_t *ret)
{
    *ret = ifd_dtype_bytes(input->dtype);
    for (uint32_t d = 0; d < input->shape.rank; d++) {
        if (!ifd_size_mul(*ret, (size_t)input->shape.dim[d], ret)) {
            return false;
        }
    }
    return true;
}

static bool lay_out(struct ifd_sequences *self)
{
    for (uint32_t i = 0; i < self->desc->state_count; i++) {
        size_t bytes = 0;
        self->offset[i] = self->bytes;
        if (!state_bytes(&self->desc->input[self->desc->state[i].input], &bytes) ||
            !ifd_size_add(self->bytes, bytes, &self->bytes) ||
            !ifd_size_add(self->bytes, IFD_TENSOR_PAD, &self->bytes) ||
            !ifd_size_align(self->bytes, IFD_TENSOR_ALIGN, &self->bytes)) {
            return false;
        }
    }
    return true;
}

enum ifd_code ifd_sequences_create(const struct ifd_model_desc *desc, const struct ifd_alloc *alloc,
                                   struct ifd_sequences **ret, struct ifd_err *err)
{
    *ret = NULL;
    if (!desc->has_sequences) {
        return IFD_OK;
    }
    struct ifd_sequences *self = ifd_acquire_zeroed(alloc, 1, sizeof(*self));
    size_t *offset = ifd_acquire_zeroed(alloc, desc->state_count + (size_t)1, sizeof(*offset));
    if (!self || !offset) {
        ifd_release(alloc, self, sizeof(*self));
        ifd_release(alloc, offset, (desc->state_count + (size_t)1) * sizeof(*offset));
        return ifd_fail(err, IFD_NOMEM, "no memory for sequences");
    }
    *self = (struct ifd_sequences){.alloc = alloc, .desc = desc, .offset = offset};
    if (!lay_out(self)) {
        ifd_sequences_destroy(self);
        return ifd_fail(err, IFD_TOO_LARGE, "states of more bytes than can be counted");
    }
    *ret = self;
    return IFD_OK;
}

/* Removes the sequence that link points to. */
static void forget(struct ifd_sequences *self, struct ifd_sequence **link)
{
    struct ifd_sequence *sequence = *link;
    *link = sequence->next;
    self->count--;
    ifd_release_tensor(self->alloc, sequence->memory, self->bytes);
    ifd_release(self->alloc, sequence, sizeof(*sequence));
}

void ifd_sequences_destroy(struct ifd_sequences *self)
{
    if (!self) {
        return;
    }
    while (self->first) {
        forget(self, &self->first);
    }
    ifd_release(self->alloc, self->offset,
                (self->desc->state_count + (size_t)1) * sizeof(*self->offset));
    ifd_release(self->alloc, self, sizeof(*self));
}

/* ---- requests ---- */

static void forget_idle(struct ifd_sequences *self, uint64_t now_ns)
{
    const uint64_t idle_ns = self->desc->max_sequence_idle_us > UINT64_MAX / 1000
                                 ? UINT64_MAX
                                 : self->desc->max_sequence_idle_us * 1000;
    struct ifd_sequence **link = &self->first;
    while (*link) {
        const struct ifd_sequence *sequence = *link;
        if (!sequence->is_busy && now_ns - sequence->used_ns > idle_ns) {
            forget(self, link);
        } else {
            link = &(*link)->next;
        }
    }
}

static struct ifd_sequence *find(const struct ifd_sequences *self, struct ifd_str id)
{
    struct ifd_sequence *sequence = self->first;
    while (sequence && !ifd_str_equal(id, sequence->id)) {
        sequence = sequence->next;
    }
    return sequence;
}

static enum ifd_code open_sequence(struct ifd_sequences *self, struct ifd_str id,
                                   struct ifd_sequence **ret, struct ifd_err *err)
{
    if (self->count >= self->desc->max_sequences) {
        return ifd_fail(err, IFD_BUSY, "%u sequences of model '%s' are open, the most there may be",
                        self->count, self->desc->name);
    }
    struct ifd_sequence *sequence = ifd_acquire_zeroed(self->alloc, 1, sizeof(*sequence));
    uint8_t *memory = ifd_acquire_tensor(self->alloc, self->bytes);
    if (!sequence || !memory) {
        ifd_release(self->alloc, sequence, sizeof(*sequence));
        ifd_release_tensor(self->alloc, memory, self->bytes);
        return ifd_fail(err, IFD_NOMEM, "no memory for a sequence");
    }
    memcpy(sequence->id, id.data, id.size);
    sequence->memory = memory;
    sequence->next = self->first;
    self->first = sequence;
    self->count++;
    *ret = sequence;
    return IFD_OK;
}

static enum ifd_code check_request(const struct ifd_sequences *self,
                                   const struct ifd_infer_request *request, struct ifd_err *err)
{
    const char *name = self->desc->name;
    if (request->sequence_id.size == 0) {
        return ifd_fail(err, IFD_INVALID,
                        "inference request to model '%s' must specify a non-zero or non-empty "
                        "correlation ID",
                        name);
    }
    if (request->sequence_id.size >= ID_BYTES) {
        return ifd_fail(err, IFD_INVALID, "a sequence's id of %zu bytes, at most %d",
                        request->sequence_id.size, ID_BYTES - 1);
    }
    if (request->batch != 1) {
        return ifd_fail(err, IFD_INVALID, "a batch of %lld in a sequence of model '%s', expected 1",
                        (long long)request->batch, name);
    }
    return IFD_OK;
}

static enum ifd_code find_or_open(struct ifd_sequences *self,
                                  const struct ifd_infer_request *request,
                                  struct ifd_sequence **ret, struct ifd_err *err)
{
    const struct ifd_str id = request->sequence_id;
    *ret = find(self, id);
    if (!*ret && !request->sequence_start) {
        return ifd_fail(err, IFD_INVALID,
                        "inference request for sequence %.*s to model '%s' must specify the START "
                        "flag on the first request of the sequence; a sequence is forgotten after "
                        "%llu us without a request and when its model is reloaded",
                        (int)id.size, id.data, self->desc->name,
                        (unsigned long long)self->desc->max_sequence_idle_us);
    }
    if (*ret && (*ret)->is_busy) {
        return ifd_fail(err, IFD_BUSY, "the last request of sequence %.*s still runs", (int)id.size,
                        id.data);
    }
    return *ret ? IFD_OK : open_sequence(self, id, ret, err);
}

static void give_states(const struct ifd_sequences *self, const struct ifd_sequence *sequence,
                        struct ifd_infer_request *request)
{
    const bool has_batch = self->desc->max_batch_size > 0;
    for (uint32_t i = 0; i < self->desc->state_count; i++) {
        const struct ifd_tensor_info *info = &self->desc->input[self->desc->state[i].input];
        const size_t end = i + 1 < self->desc->state_count ? self->offset[i + 1] : self->bytes;
        struct ifd_tensor tensor = {.dtype = info->dtype,
                                    .shape = {.rank = info->shape.rank + has_batch, .dim = {1}},
                                    .data = sequence->memory + self->offset[i],
                                    .capacity = end - self->offset[i]};
        for (uint32_t d = 0; d < info->shape.rank; d++) {
            tensor.shape.dim[d + has_batch] = info->shape.dim[d];
        }
        (void)state_bytes(info, &tensor.bytes); /* it was counted */
        request->input[self->desc->state[i].input] = tensor;
    }
}

/* Writes one of the numbers of a control: INT32, FP32 or BOOL. */
static void store(enum ifd_dtype dtype, double number, void *to)
{
    const float f32 = (float)number;
    if (dtype == IFD_F32) {
        memcpy(to, &f32, sizeof(f32));
    } else if (dtype == IFD_BOOL) {
        *(uint8_t *)to = number != 0;
    } else {
        const int32_t s32 = (int32_t)number;
        memcpy(to, &s32, sizeof(s32));
    }
}

/* The id as a number of this type. */
static bool id_as(struct ifd_str id, enum ifd_dtype dtype, int64_t *ret)
{
    uint64_t natural = 0;
    if (dtype == IFD_U64 || dtype == IFD_U32) {
        const bool fits = ifd_str_u64(id, &natural) && (dtype == IFD_U64 || natural <= UINT32_MAX);
        *ret = (int64_t)natural;
        return fits;
    }
    return ifd_str_s64(id, ret) && (dtype == IFD_S64 || (*ret >= INT32_MIN && *ret <= INT32_MAX));
}

static enum ifd_code give_control(const struct ifd_sequences *self,
                                  const struct ifd_control_info *control,
                                  struct ifd_infer_request *request, struct ifd_err *err)
{
    const struct ifd_tensor_info *info = &self->desc->input[control->input];
    const size_t bytes = ifd_dtype_bytes(info->dtype);
    const bool says_yes = control->kind == IFD_CONTROL_READY ||
                          (control->kind == IFD_CONTROL_START && request->sequence_start) ||
                          (control->kind == IFD_CONTROL_END && request->sequence_end);
    const bool has_batch = self->desc->max_batch_size > 0;
    int64_t id = 0;
    if (control->kind == IFD_CONTROL_ID && !id_as(request->sequence_id, info->dtype, &id)) {
        return ifd_fail(err, IFD_INVALID,
                        "sequence's id \"%.*s\" is no %s, which input \"%s\" of model '%s' takes",
                        (int)request->sequence_id.size, request->sequence_id.data,
                        ifd_dtype_wire_name(info->dtype), info->name, self->desc->name);
    }
    void *data = ifd_arena_take_tensor(request->arena, bytes);
    if (!data) {
        return ifd_arena_fail(request->arena, bytes, err);
    }
    if (control->kind == IFD_CONTROL_ID) {
        memcpy(data, &id, bytes); /* a shorter one is its low bytes */
    } else {
        store(info->dtype, control->value[says_yes], data);
    }
    struct ifd_tensor tensor = {.dtype = info->dtype,
                                .shape = {.rank = info->shape.rank + has_batch},
                                .data = data,
                                .bytes = bytes,
                                .capacity = bytes + IFD_TENSOR_PAD};
    for (uint32_t d = 0; d < tensor.shape.rank; d++) {
        tensor.shape.dim[d] = 1;
    }
    request->input[control->input] = tensor;
    return IFD_OK;
}

static void begin_states(const struct ifd_sequences *self, const struct ifd_sequence *sequence)
{
    memset(sequence->memory, 0, self->bytes);
    for (uint32_t i = 0; i < self->desc->state_count; i++) {
        const struct ifd_bytes *begin = &self->desc->state[i].begin;
        if (begin->size > 0) {
            memcpy(sequence->memory + self->offset[i], begin->data, begin->size);
        }
    }
}

enum ifd_code ifd_sequences_begin(struct ifd_sequences *self, struct ifd_infer_request *request,
                                  uint64_t now_ns, struct ifd_sequence **ret,
                                  const bool **ret_wanted, struct ifd_err *err)
{
    const uint32_t outputs = self->desc->output_count;
    struct ifd_sequence *sequence = NULL;
    forget_idle(self, now_ns);
    bool *wanted = ifd_arena_take_array(request->arena, outputs, sizeof(*wanted));
    enum ifd_code code =
        wanted ? check_request(self, request, err) : ifd_arena_fail(request->arena, outputs, err);
    for (uint32_t i = 0; !code && i < self->desc->control_count; i++) {
        code = give_control(self, &self->desc->control[i], request, err);
    }
    if (!code) {
        code = find_or_open(self, request, &sequence, err);
    }
    if (code) {
        return code;
    }
    if (request->sequence_start) {
        begin_states(self, sequence);
    }
    memcpy(wanted, request->wanted, outputs * sizeof(*wanted));
    for (uint32_t i = 0; i < self->desc->state_count; i++) {
        wanted[self->desc->state[i].output] = true;
    }
    give_states(self, sequence, request);
    sequence->is_busy = true;
    sequence->is_ending = request->sequence_end;
    *ret = sequence;
    *ret_wanted = wanted;
    return IFD_OK;
}

void ifd_sequence_settle(struct ifd_sequences *self, struct ifd_sequence *sequence,
                         const struct ifd_infer_request *request, bool has_run, uint64_t now_ns)
{
    for (uint32_t i = 0; i < self->desc->state_count && has_run; i++) {
        const struct ifd_state_info *state = &self->desc->state[i];
        const struct ifd_tensor *output = &request->output[state->output];
        size_t bytes = 0;
        if (state_bytes(&self->desc->input[state->input], &bytes) && output->bytes == bytes) {
            memcpy(sequence->memory + self->offset[i], output->data, bytes);
        } else { /* an output of open dimensions became another size: nothing can follow */
            sequence->is_ending = true;
        }
    }
    sequence->is_busy = false;
    sequence->used_ns = now_ns;
    struct ifd_sequence **link = &self->first;
    while (*link != sequence) {
        link = &(*link)->next;
    }
    if (sequence->is_ending) {
        forget(self, link);
    }
}

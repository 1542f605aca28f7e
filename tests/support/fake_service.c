/* Models in a few lines. */
#include "tests/support/fake_service.h"

#include "engine/base/str.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define ROW(...)                                                                                   \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ }         \
    }

static const char *const digit_labels[] = {"zero", "one",   "two",   "three", "four", "five",
                                           "six",  "seven", "eight", "nine",  "ten",  "eleven"};
static const char *const one_version[] = {"1"}, *const two_versions[] = {"1", "3"};

static const struct ifd_tensor_info simple_inputs[] = {
    {.name = "INPUT0", .dtype = IFD_S32, .shape = ROW(16)},
    {.name = "INPUT1", .dtype = IFD_S32, .shape = ROW(16)}};
static const struct ifd_tensor_info simple_outputs[] = {
    {.name = "OUTPUT0", .dtype = IFD_S32, .shape = ROW(16), .label_filename = ""},
    {.name = "OUTPUT1", .dtype = IFD_S32, .shape = ROW(16), .label_filename = ""}};
static const struct ifd_tensor_info classify_inputs[] = {
    {.name = "DATA", .dtype = IFD_F32, .shape = ROW(10)}};
static const struct ifd_tensor_info classify_outputs[] = {{.name = "PROB",
                                                           .dtype = IFD_F32,
                                                           .shape = ROW(10),
                                                           .labels = digit_labels,
                                                           .label_count = 10,
                                                           .label_filename = "labels.txt"}};
static const struct ifd_tensor_info strings_inputs[] = {
    {.name = "IN", .dtype = IFD_STR, .shape = ROW(IFD_DIM_ANY)},
    {.name = "FLAG", .dtype = IFD_BOOL, .shape = ROW(1), .optional = true}};
static const struct ifd_tensor_info strings_outputs[] = {
    {.name = "OUT", .dtype = IFD_STR, .shape = ROW(IFD_DIM_ANY)}};
static const struct ifd_tensor_info picture_inputs[] = {
    {.name = "IMAGE",
     .dtype = IFD_U8,
     .shape = ROW(2, 2, 3),
     .format = IFD_FORMAT_NHWC,
     .image = {.has_image = true, .height = 2, .width = 2, .channels = 3}}};
static const struct ifd_tensor_info picture_outputs[] = {{.name = "SCORES",
                                                          .dtype = IFD_U8,
                                                          .shape = ROW(12),
                                                          .labels = digit_labels,
                                                          .label_count = 12,
                                                          .label_filename = "labels.txt"}};
static const struct ifd_meaning picture_meaning = {.task = IFD_TASK_CLASSIFICATION,
                                                   .label = digit_labels,
                                                   .label_count = 12,
                                                   .options = {.top_k = 5}};
static const struct ifd_instance_group_info group = {.name = "group_0", .count = 1};
static const struct ifd_instance_group_info weighted = {
    .name = "group_0", .count = 2, .priority = 3};
static const struct ifd_parameter_info parameter = {.key = "threads", .value = "2"};
static const int32_t preferred[] = {4};

/* One table of infos for the identity models: id_FP32 … */
static struct ifd_tensor_info identity_info(enum ifd_dtype dtype, const char *name)
{
    return (struct ifd_tensor_info){.name = name, .dtype = dtype, .shape = ROW(IFD_DIM_ANY)};
}

static struct ifd_model_desc *add(struct ifd_service *fake, const char *name, int64_t version)
{
    REQUIRE(fake->model_count < FAKE_MODELS_MAX);
    struct ifd_model_ref *model = &fake->model[fake->model_count++];
    model->is_ready = true;
    model->desc = (struct ifd_model_desc){.name = name,
                                          .version = version,
                                          .version_text = version == 3 ? "3" : "1",
                                          .platform = "fake_inferd",
                                          .backend = "fake",
                                          .versions = one_version,
                                          .version_count = 1,
                                          .default_model_filename = "model.fake",
                                          .policy_latest_count = 1,
                                          .instance_group = &group,
                                          .instance_group_count = 1,
                                          .parameter = &parameter,
                                          .parameter_count = 1};
    return &model->desc;
}

static void set_io(struct ifd_model_desc *desc, int32_t batch, const struct ifd_tensor_info *input,
                   uint32_t input_count, const struct ifd_tensor_info *output,
                   uint32_t output_count)
{
    desc->max_batch_size = batch;
    desc->input = input;
    desc->input_count = input_count;
    desc->output = output;
    desc->output_count = output_count;
}

void fake_service_init(struct ifd_service *fake, const struct ifd_alloc *alloc)
{
    static const char *const names[] = {
#define NAME(id, text, bytes, wire) "id_" wire,
        IFD_DTYPES(NAME)
#undef NAME
    };
    /* filled once with constants: the same for every fake */
    static struct ifd_tensor_info in[IFD_DTYPE_COUNT], out[IFD_DTYPE_COUNT];
    *fake = (struct ifd_service){.alloc = alloc,
                                 .control_mode = "explicit",
                                 .log = {.info = true, .warning = true, .error = true}};
    for (int64_t version = 1; version <= 3; version += 2) {
        struct ifd_model_desc *simple = add(fake, "simple", version);
        set_io(simple, 8, simple_inputs, 2, simple_outputs, 2);
        simple->version_policy = IFD_POLICY_ALL;
        simple->versions = two_versions;
        simple->version_count = 2;
    }
    struct ifd_model_desc *classify = add(fake, "classify", 1);
    set_io(classify, 8, classify_inputs, 1, classify_outputs, 1);
    classify->dynamic_batching = true;
    classify->preferred_batch_size = preferred;
    classify->preferred_batch_size_count = 1;
    classify->max_queue_delay_us = 1000;
    classify->queue_policy.reject = true;
    classify->queue_policy.default_timeout_us = 200000;
    classify->queue_policy.max_queue_size = 2;
    set_io(add(fake, "strings", 1), 0, strings_inputs, 2, strings_outputs, 1);
    struct ifd_model_desc *picture = add(fake, "picture", 1);
    set_io(picture, 4, picture_inputs, 1, picture_outputs, 1);
    picture->meaning = &picture_meaning;
    picture->instance_group = &weighted;
    for (int i = 0; i < IFD_DTYPE_COUNT; i++) {
        in[i] = identity_info((enum ifd_dtype)i, "INPUT0");
        out[i] = identity_info((enum ifd_dtype)i, "OUTPUT0");
        set_io(add(fake, names[i], 1), 0, &in[i], 1, &out[i], 1);
    }
    set_io(add(fake, "identity", 1), 0, &in[IFD_F32], 1, &out[IFD_F32], 1);
}

void fake_service_finish(struct ifd_service *fake)
{
    EXPECT_INT(fake->held_refs, 0);
    EXPECT_INT(fake->held_outputs, 0);
    EXPECT_INT(fake->held_turns, 0);
    EXPECT_INT(fake->job_count, 0);
}

/* ---- the table ---- */

static const struct ifd_server_info *info(struct ifd_service *fake)
{
    static const char *const extensions[] = {"classification", "binary_tensor_data"};
    fake->info = (struct ifd_server_info){.name = "fake",
                                          .version = "1.2.3",
                                          .control_mode = fake->control_mode,
                                          .extensions = extensions,
                                          .extension_count = 2};
    return &fake->info;
}

static bool is_live(struct ifd_service *fake)
{
    (void)fake;
    return true;
}

static enum ifd_code is_ready(struct ifd_service *fake, struct ifd_err *why_not)
{
    return fake->is_not_ready ? ifd_fail(why_not, IFD_UNAVAILABLE, "Server exiting") : IFD_OK;
}

static enum ifd_code acquire(struct ifd_service *fake, struct ifd_str name, int64_t version,
                             struct ifd_model_ref **ret_ref, struct ifd_err *err)
{
    struct ifd_model_ref *found = NULL;
    bool is_known = false;
    for (uint32_t i = 0; i < fake->model_count; i++) {
        struct ifd_model_ref *model = &fake->model[i];
        if (!ifd_str_equal(name, model->desc.name)) {
            continue;
        }
        is_known = true;
        if (model->is_ready && (version == 0 || version == model->desc.version)) {
            found = model; /* the last one is the latest */
        }
    }
    if (found) {
        fake->held_refs++;
        *ret_ref = found;
        return IFD_OK;
    }
    int size = (int)name.size;
    if (!is_known) {
        return ifd_fail(err, IFD_NOT_FOUND, "Request for unknown model: '%.*s' is not found", size,
                        name.data);
    }
    if (version == 0) {
        return ifd_fail(err, IFD_NOT_FOUND,
                        "Request for unknown model: '%.*s' has no available versions", size,
                        name.data);
    }
    return ifd_fail(err, IFD_NOT_FOUND,
                    "Request for unknown model: '%.*s' version %lld is not found", size, name.data,
                    (long long)version);
}

static void release(struct ifd_service *fake, struct ifd_model_ref *ref)
{
    (void)ref;
    fake->held_refs--;
}

static const struct ifd_model_desc *describe(const struct ifd_model_ref *ref)
{
    return &ref->desc;
}

static void add_job(struct ifd_service *fake, struct fake_job job)
{
    REQUIRE(fake->job_count < FAKE_JOBS_MAX);
    fake->job[fake->job_count++] = job;
}

static bool lies_in(const struct ifd_service *fake, const void *data)
{
    const uint8_t *at = data;
    return fake->body && at >= fake->body && at < fake->body + fake->body_size;
}

static enum ifd_code submit(struct ifd_service *fake, struct ifd_infer_request *request,
                            struct ifd_err *err)
{
    if (fake->refuse_submit != IFD_OK) {
        return ifd_fail(err, fake->refuse_submit, "Exceeds maximum queue size");
    }
    (void)snprintf(fake->last_id, sizeof(fake->last_id), "%s", request->id);
    fake->last_priority = request->priority;
    fake->last_timeout_us = request->timeout_us;
    fake->last_in_place = lies_in(fake, request->input[0].data) &&
                          (uintptr_t)request->input[0].data % IFD_TENSOR_ALIGN == 0 &&
                          request->input[0].capacity >= request->input[0].bytes + IFD_TENSOR_PAD;
    add_job(fake, (struct fake_job){.request = request});
    return IFD_OK;
}

static bool cancel(struct ifd_service *fake, struct ifd_infer_request *request)
{
    if (fake->cancel_waits) {
        return false;
    }
    for (uint32_t i = 0; i < fake->job_count; i++) {
        if (fake->job[i].request == request) {
            fake->job[i] = fake->job[--fake->job_count];
        }
    }
    return true;
}

/* The turn comes as a job. */
static void line_up(struct ifd_service *fake, struct ifd_infer_request *request,
                    ifd_control_fn done, void *arg)
{
    (void)snprintf(fake->last_camera, sizeof(fake->last_camera), "%.*s", (int)request->source.size,
                   request->source.data);
    fake->held_turns++;
    add_job(fake, (struct fake_job){.done = done,
                                    .arg = arg,
                                    .code = fake->refuse_turn,
                                    .reason = "a newer frame came"});
}

static void leave_line(struct ifd_service *fake, struct ifd_infer_request *request)
{
    fake->held_turns--;
    for (uint32_t i = 0; i < fake->job_count; i++) {
        if (fake->job[i].arg == request->owner) {
            fake->job[i] = fake->job[--fake->job_count];
        }
    }
}

static bool make_output(struct ifd_service *fake, const struct ifd_tensor *like,
                        struct ifd_tensor *output)
{
    *output = *like;
    output->data = ifd_acquire_tensor(fake->alloc, like->bytes);
    if (!output->data) {
        return false;
    }
    if (like->bytes > 0) {
        memcpy(output->data, like->data, like->bytes);
    }
    fake->held_outputs++;
    return true;
}

static void release_outputs(struct ifd_service *fake, struct ifd_infer_request *request)
{
    for (uint32_t i = 0; i < request->model->desc.output_count; i++) {
        if (request->output[i].data) {
            ifd_release_tensor(fake->alloc, request->output[i].data, request->output[i].bytes);
            request->output[i].data = NULL;
            fake->held_outputs--;
        }
    }
}

static enum ifd_code compute(struct ifd_service *fake, struct ifd_infer_request *request,
                             struct ifd_err *err)
{
    const struct ifd_model_desc *desc = &request->model->desc;
    const bool is_simple = strcmp(desc->name, "simple") == 0;
    for (uint32_t i = 0; i < desc->output_count; i++) {
        if (!request->wanted[i]) {
            continue;
        }
        if (!make_output(fake, &request->input[0], &request->output[i])) {
            return ifd_fail(err, IFD_NOMEM, "no memory for output %u", i);
        }
        uint32_t *data = request->output[i].data; /* wraps, as the machine does */
        const uint32_t *other = is_simple ? request->input[1].data : NULL;
        for (size_t k = 0; other && k < request->output[i].bytes / sizeof(*data); k++) {
            data[k] = i == 0 ? data[k] + other[k] : data[k] - other[k];
        }
    }
    for (uint32_t i = 0; i < request->step_count; i++) {
        request->step_ns[i] = 100 * (i + 1);
    }
    if (strcmp(desc->name, "picture") == 0) {
        request->output[0].shape = (struct ifd_shape){.rank = 2, .dim = {request->batch, 12}};
    }
    return IFD_OK;
}

static void finish(struct ifd_service *fake, struct ifd_infer_request *request)
{
    struct ifd_err err = {0};
    enum ifd_code code = fake->fail_run;
    if (code != IFD_OK) {
        (void)ifd_fail(&err, code, "the run failed");
    } else {
        code = compute(fake, request, &err);
        if (code != IFD_OK) {
            release_outputs(fake, request);
        }
    }
    request->done(request, code, &err);
}

bool fake_service_step(struct ifd_service *fake)
{
    if (fake->job_count == 0) {
        return false;
    }
    struct fake_job job = fake->job[0];
    fake->job_count--;
    for (uint32_t i = 0; i < fake->job_count; i++) {
        fake->job[i] = fake->job[i + 1];
    }
    struct ifd_err err = {0};
    if (job.request) {
        finish(fake, job.request);
        return true;
    }
    if (job.work && job.code == IFD_OK) {
        job.work(job.arg);
    }
    if (job.code != IFD_OK) {
        (void)ifd_fail(&err, job.code, "%s", job.reason);
    }
    job.done(job.arg, job.code, &err);
    return true;
}

void fake_service_run(struct ifd_service *fake)
{
    while (fake_service_step(fake)) {
    }
}

static void list(struct ifd_service *fake, bool only_ready, ifd_index_fn fn, void *arg)
{
    if (!only_ready) {
        fn(arg, &(struct ifd_index_row){.name = "broken",
                                        .state = IFD_MODEL_UNAVAILABLE,
                                        .reason = "config.pbtxt:1: expected a number",
                                        .attempts = 1,
                                        .retry_secs = IFD_RETRY_NEVER});
        fn(arg, &(struct ifd_index_row){.name = "distant",
                                        .state = IFD_MODEL_UNAVAILABLE,
                                        .reason = "read: I/O error",
                                        .attempts = 3,
                                        .retry_secs = 8});
    }
    for (uint32_t i = 0; i < fake->model_count; i++) {
        const struct ifd_model_ref *model = &fake->model[i];
        if (model->is_ready || !only_ready) {
            fn(arg, &(struct ifd_index_row){.name = model->desc.name,
                                            .version = model->desc.version,
                                            .state = model->is_ready ? IFD_MODEL_READY
                                                                     : IFD_MODEL_UNAVAILABLE,
                                            .reason = model->is_ready ? "" : "unloaded"});
        }
    }
}

static struct ifd_model_ref *find(struct ifd_service *fake, struct ifd_str name)
{
    for (uint32_t i = 0; i < fake->model_count; i++) {
        if (ifd_str_equal(name, fake->model[i].desc.name)) {
            return &fake->model[i];
        }
    }
    return NULL;
}

static void load(struct ifd_service *fake, const struct ifd_load_request *request,
                 ifd_control_fn done, void *arg)
{
    struct ifd_model_ref *model = find(fake, request->model);
    (void)snprintf(fake->last_config, sizeof(fake->last_config), "%.*s", (int)request->config.size,
                   request->config.data ? request->config.data : "");
    fake->last_file_count = request->file_count;
    if (request->file_count > 0 && request->file[0].content.size <= sizeof(fake->last_file)) {
        memcpy(fake->last_file, request->file[0].content.data, request->file[0].content.size);
    }
    if (model) {
        model->is_ready = true;
    }
    add_job(fake, (struct fake_job){.done = done,
                                    .arg = arg,
                                    .code = model ? IFD_OK : IFD_INVALID,
                                    .reason = "failed to load: config.pbtxt:1: expected a number"});
}

static void unload(struct ifd_service *fake, struct ifd_str name, bool dependents,
                   ifd_control_fn done, void *arg)
{
    struct ifd_model_ref *model = find(fake, name);
    fake->last_dependents = dependents;
    if (model) {
        model->is_ready = false;
    }
    add_job(fake, (struct fake_job){.done = done,
                                    .arg = arg,
                                    .code = model ? IFD_OK : IFD_NOT_FOUND,
                                    .reason = "no such model to unload"});
}

static enum ifd_code stats(struct ifd_service *fake, struct ifd_str name, int64_t version,
                           ifd_stats_fn fn, void *arg, struct ifd_err *err)
{
    if (name.data && !find(fake, name)) {
        return ifd_fail(err, IFD_NOT_FOUND, "requested model '%.*s' is not available",
                        (int)name.size, name.data);
    }
    for (uint32_t i = 0; i < fake->model_count; i++) {
        const struct ifd_model_desc *desc = &fake->model[i].desc;
        if ((!name.data || ifd_str_equal(name, desc->name)) &&
            (version == 0 || version == desc->version)) {
            struct ifd_batch_stat batch[3] = {
                [0].compute_infer = {.count = 5, .ns = 99}, [2].compute_infer = {.count = 1}};
            fn(arg, &(struct ifd_model_stats){.name = desc->name,
                                              .version_text = desc->version_text,
                                              .inference_count = 7,
                                              .execution_count = 5,
                                              .success = {.count = 5, .ns = 12345},
                                              .batch = batch,
                                              .batch_count = 3});
        }
    }
    return IFD_OK;
}

static void decode_image(struct ifd_service *fake, const struct ifd_infer_request *request,
                         struct ifd_picture *picture, size_t count, ifd_control_fn done, void *arg)
{
    const struct ifd_bytes image = picture->source.bytes;
    struct ifd_err err = {0};
    (void)request;
    fake->decode_count++;
    for (size_t i = 0; i < count; i++) {
        fake->last_source[fake->source_count++ % FAKE_SOURCES_MAX] = picture[i].source;
    }
    if (image.size != 5 || memcmp(image.data + 2, "KE", 2) != 0) {
        (void)ifd_fail(&err, IFD_CORRUPT, "picture: neither JPEG nor PNG nor BMP");
        done(arg, IFD_CORRUPT, &err); /* at once, as for what needs no worker */
        return;
    }
    for (size_t i = 0; i < count; i++) {
        memset(picture[i].sample.data, image.data[4], picture[i].sample.bytes);
    }
    add_job(fake, (struct fake_job){.done = done, .arg = arg});
}

static enum ifd_code object_option(struct ifd_service *fake, const struct ifd_model_desc *desc,
                                   struct ifd_str name, struct ifd_str value,
                                   struct ifd_arena *arena, struct ifd_object_options *ret,
                                   struct ifd_err *err)
{
    uint64_t top = 0;
    (void)fake, (void)desc, (void)arena;
    if (ifd_str_equal(name, "threshold")) {
        double number = 0;
        const bool is_number = ifd_str_f64(value, &number);
        ret->threshold = (float)number;
        return is_number ? IFD_OK : ifd_fail(err, IFD_INVALID, "threshold: not a number");
    }
    if (!ifd_str_equal(name, "top_k")) {
        return IFD_NOT_FOUND;
    }
    if (!ifd_str_u64(value, &top)) {
        return ifd_fail(err, IFD_INVALID, "top_k: not a count");
    }
    ret->top_k = (uint32_t)top;
    return IFD_OK;
}

/* Class i has the score that is element i of the sample, in tenths; an object has a box, too. */
static enum ifd_code find_objects(struct ifd_service *fake, const struct ifd_model_desc *desc,
                                  const struct ifd_infer_request *request, size_t index,
                                  size_t count, const struct ifd_picture_view *view,
                                  const struct ifd_object_options *options, struct ifd_objects *ret,
                                  struct ifd_err *err)
{
    const uint8_t *score = (const uint8_t *)request->output[0].data + index * 12;
    struct ifd_object *object = ifd_arena_take_array(request->arena, 12, sizeof(*object));
    (void)count, (void)view;
    fake->last_threshold = options->threshold;
    if (!object) {
        return ifd_arena_fail(request->arena, 12 * sizeof(*object), err);
    }
    *ret = (struct ifd_objects){.object = object, .object_count = options->top_k};
    for (uint32_t i = 0; i < options->top_k; i++) {
        const float x = (float)i * 10;
        object[i] = (struct ifd_object){.index = i,
                                        .score = (float)score[i] / 10,
                                        .has_box = desc->meaning->task == IFD_TASK_DETECTION,
                                        .box = {x + 0.4F, 1.5F, x + 100.6F, 50}};
    }
    return IFD_OK;
}

static enum ifd_code encode_mask(struct ifd_service *fake, const struct ifd_infer_request *request,
                                 const struct ifd_objects *found, struct ifd_bytes *ret,
                                 struct ifd_err *err)
{
    (void)fake, (void)request, (void)err;
    *ret = (struct ifd_bytes){.data = found->mask, .size = found->mask_width};
    return IFD_OK;
}

/* "A picture" of the format, with the number of objects. */
static enum ifd_code draw_objects(struct ifd_service *fake, const struct ifd_model_desc *desc,
                                  struct ifd_infer_request *request,
                                  const struct ifd_picture_source *source,
                                  const struct ifd_objects *found, size_t count,
                                  enum ifd_drawing drawing, struct ifd_bytes *ret,
                                  struct ifd_err *err)
{
    char text[40];
    const int size = snprintf(text, sizeof(text), "%s with %u",
                              drawing == IFD_DRAWING_PNG ? "PNG" : "JPEG", found->object_count);
    (void)fake, (void)desc, (void)source, (void)count;
    const char *copy = ifd_arena_text(request->arena, text, (size_t)size);
    *ret = (struct ifd_bytes){.data = (const uint8_t *)copy, .size = (size_t)size};
    return copy ? IFD_OK : ifd_arena_fail(request->arena, (size_t)size, err);
}

static bool offload(struct ifd_service *fake, const struct ifd_infer_request *request,
                    bool has_deadline, void (*work)(void *arg), ifd_control_fn done, void *arg)
{
    if (fake->offloads) {
        fake->offload_timeout_us = has_deadline ? request->timeout_us : UINT64_MAX;
        fake->offload_count++;
        add_job(fake, (struct fake_job){.work = work, .done = done, .arg = arg});
    }
    return fake->offloads;
}

/* Nothing runs beside the loop here: the test ends its jobs as it likes. */
static void withdraw(struct ifd_service *fake)
{
    fake->withdrawals++;
}

/* Model simple has two steps. */
static enum ifd_code prepare_profile(struct ifd_service *fake, struct ifd_infer_request *request,
                                     struct ifd_err *err)
{
    const struct ifd_model_desc *desc = &request->model->desc;
    (void)fake;
    if (strcmp(desc->name, "simple") != 0) {
        return ifd_fail(err, IFD_UNSUPPORTED, "model '%s' has no steps", desc->name);
    }
    for (uint32_t i = 0; i < desc->input_count; i++) {
        void *data = ifd_arena_take_tensor(request->arena, 16 * sizeof(int32_t));
        if (!data) {
            return ifd_arena_fail(request->arena, 16 * sizeof(int32_t), err);
        }
        memset(data, 0, 16 * sizeof(int32_t));
        request->input[i] = (struct ifd_tensor){.dtype = IFD_S32,
                                                .shape = {.rank = 2, .dim = {1, 16}},
                                                .data = data,
                                                .bytes = 16 * sizeof(int32_t)};
    }
    request->step_count = 2;
    request->step_ns =
        ifd_arena_take_array(request->arena, request->step_count, sizeof(*request->step_ns));
    return request->step_ns ? IFD_OK : ifd_arena_fail(request->arena, 16, err);
}

static enum ifd_code write_plan(const struct ifd_model_ref *ref, ifd_sink_fn sink, void *context,
                                struct ifd_err *err)
{
    static const char text[] = "{\"steps\":[{},{}]}";
    (void)ref;
    (void)err;
    sink(context, text, 5);
    sink(context, text + 5, sizeof(text) - 1 - 5);
    return IFD_OK;
}

static void log_settings(struct ifd_service *fake, struct ifd_log_settings *ret)
{
    *ret = fake->log;
}

static void set_log(struct ifd_service *fake, const struct ifd_log_settings *settings)
{
    fake->log = *settings;
}

#define OPS(load_, unload_, stats_, profile_)                                                      \
    {                                                                                              \
        .info = info, .is_live = is_live, .is_ready = is_ready, .acquire = acquire,                \
        .release = release, .describe = describe, .line_up = line_up, .leave_line = leave_line,    \
        .submit = submit, .cancel = cancel, .release_outputs = release_outputs, .index = list,     \
        .log_settings = log_settings, .set_log = set_log, .load = load_, .unload = unload_,        \
        .stats = stats_, .decode_image = decode_image, .offload = offload, .withdraw = withdraw,   \
        .object_option = object_option, .find_objects = find_objects, .encode_mask = encode_mask,  \
        .draw_objects = draw_objects, .prepare_profile = profile_, .write_plan = write_plan,       \
    }
static const struct ifd_service_ops ops = OPS(load, unload, stats, prepare_profile);
static const struct ifd_service_ops ops_without_control = OPS(NULL, NULL, NULL, NULL);
#undef OPS

const struct ifd_service_ops *fake_service_ops(void)
{
    return &ops;
}

const struct ifd_service_ops *fake_service_ops_without_control(void)
{
    return &ops_without_control;
}

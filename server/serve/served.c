/* Makes a loaded version serve: instances and a lane. */
#include "server/serve/served.h"

#include "engine/base/clock.h"
#include "engine/base/str.h"
#include "server/model/parameters.h"
#include "server/model/reshape.h"
#include "server/repo/externals.h"
#include "server/sched/runners.h"
#include "server/serve/warm_up.h"

/* Most threads of an instance for which nobody asks: more hardly help networks of this size. */
#define DEFAULT_THREADS_MAX 8
/* Instances for which nobody asks leave so much of the memory budget to models that come later. */
#define DEFAULT_BUDGET_SHARE 8
/* Instance memory that limits the batch of a model without max_batch_size whose tensors leave
 * dimension 0 open. */
#define OPEN_BATCH_BYTES ((size_t)16 << 20)

static enum ifd_code number_parameter(const struct ifd_model_desc *m, const char *key,
                                      uint32_t most, uint32_t *value, struct ifd_err *err)
{
    const char *text = ifd_desc_parameter(m, key);
    uint64_t number = 0;
    if (!text) {
        return IFD_OK;
    }
    if (!ifd_str_u64(ifd_str(text), &number) || number > most) {
        return ifd_fail(err, IFD_INVALID,
                        "parameter \"%s\": \"%.40s\" is not a number between 0 and %u", key, text,
                        most);
    }
    *value = (uint32_t)number;
    return IFD_OK;
}

/* Samples of a run. Without max_batch_size dimension 0 belongs to the request, but the engine may
 * still treat it as a batch; a request of more samples is then run in several runs
 * (run_engine.c). */
static uint32_t instance_batch(const struct ifd_version *version)
{
    const struct ifd_model_info *info = ifd_model_info(version->engine);
    bool is_open = false;
    int64_t most = 1;
    if (info->has_open_dims && (version->desc.max_batch_size == 0 || !info->batch_is_free)) {
        return 1; /* the batch is a size like others */
    }
    if (version->desc.max_batch_size > 0) {
        return (uint32_t)version->desc.max_batch_size;
    }
    for (uint32_t i = 0; i < version->desc.input_count; i++) {
        const struct ifd_shape *dims = ifd_file_shape(&version->desc.input[i]);
        const bool is_asked = version->desc.input[i].line > 0; /* not in the file only */
        is_open = is_open || (is_asked && dims->rank > 0 && dims->dim[0] == IFD_DIM_ANY);
        most = info->input[i].batched && dims->dim[0] > most ? dims->dim[0] : most;
    }
    if (!is_open && most <= IFD_MAX_BATCH) {
        return (uint32_t)most;
    }
    size_t fits = OPEN_BATCH_BYTES / (info->arena_bytes > 0 ? info->arena_bytes : 1);
    return fits < 1 ? 1 : fits > IFD_MAX_BATCH ? IFD_MAX_BATCH : (uint32_t)fits;
}

static uint32_t instance_count(const struct ifd_model_desc *m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->instance_group_count; i++) {
        count += (uint32_t)m->instance_group[i].count;
    }
    return count > 0 ? count : 1;
}

/* A run may take every core while it is alone (ifd_instance_options.threads). */
static enum ifd_code choose_threads(const struct ifd_served_options *options,
                                    const struct ifd_version *version, uint32_t *ret_threads,
                                    struct ifd_err *err)
{
    uint32_t asked = 0;
    const enum ifd_code code =
        number_parameter(&version->desc, "threads", options->max_threads, &asked, err);
    if (code) {
        return code;
    }
    const uint32_t threads = asked > 0              ? asked
                             : options->threads > 0 ? options->threads
                                                    : DEFAULT_THREADS_MAX;
    const uint32_t most =
        options->cores < options->max_threads ? options->cores : options->max_threads;
    *ret_threads = threads < most ? threads : most;
    if (*ret_threads < asked) {
        ifd_log_warn(options->log, "threads are limited to the cores", "model=%s asked=%u given=%u",
                     version->name, asked, *ret_threads);
    }
    return IFD_OK;
}

/* One for each core: of many requests each run has a core. Only one where an instance is more than
 * memory that stays empty until it runs: plans of its own, or memory of a device. */
static uint32_t default_count(const struct ifd_served_options *options,
                              const struct ifd_version *version)
{
    const struct ifd_model_info *info = ifd_model_info(version->engine);
    size_t bytes = 0;
    if (info->has_open_dims || info->device_bytes > 0 ||
        !ifd_size_mul(info->arena_bytes, instance_batch(version), &bytes)) {
        return 1;
    }
    const uint64_t left =
        options->budget ? ifd_budget_left(options->budget) / DEFAULT_BUDGET_SHARE : UINT64_MAX;
    const uint64_t fits = bytes > 0 ? left / bytes : IFD_INSTANCES_MAX;
    const uint32_t most = options->cores < IFD_INSTANCES_MAX ? options->cores : IFD_INSTANCES_MAX;
    return fits < 1 ? 1 : fits < most ? (uint32_t)fits : most;
}

static enum ifd_code choose_count(const struct ifd_served_options *options,
                                  struct ifd_version *version, struct ifd_err *err)
{
    struct ifd_instance_group_info *group = ifd_arena_take(&version->arena, sizeof(*group));
    if (!group) {
        return ifd_arena_fail(&version->arena, sizeof(*group), err);
    }
    *group = (struct ifd_instance_group_info){.name = "",
                                              .count = (int32_t)default_count(options, version)};
    version->desc.instance_group = group;
    version->desc.instance_group_count = 1;
    return IFD_OK;
}

/* Chooses the threads of each instance, and the number of instances if the config does not. */
static enum ifd_code choose_instances(const struct ifd_served_options *options,
                                      struct ifd_version *version, uint32_t *ret_threads,
                                      bool *ret_is_asked, struct ifd_err *err)
{
    const struct ifd_model_desc *m = &version->desc;
    *ret_is_asked = m->instance_group_count > 0;
    if (ifd_desc_parameter(m, "performance_hint")) {
        ifd_log_warn(options->log, "parameter \"performance_hint\" has no effect any more",
                     "model=%s", version->name);
    }
    const enum ifd_code code = choose_threads(options, version, ret_threads, err);
    return code || *ret_is_asked || !version->engine ? code : choose_count(options, version, err);
}

/* The weight of the lane is that of the group which is served most. */
static uint32_t priority_of(const struct ifd_model_desc *m)
{
    uint32_t least = IFD_PRIORITY_MAX;
    for (uint32_t i = 0; i < m->instance_group_count; i++) {
        const uint32_t priority = m->instance_group[i].priority;
        least = priority < least ? priority : least;
    }
    return least > 0 && m->instance_group_count > 0 ? least : 1;
}

/* One label more or less may be the background's. */
static bool labels_fit(const struct ifd_tensor_info *output)
{
    bool fit = false;
    for (uint32_t d = 0; d < output->shape.rank; d++) {
        const int64_t dim = output->shape.dim[d], labels = output->label_count;
        fit = fit || dim == IFD_DIM_ANY || (dim >= labels - 1 && dim <= labels + 1);
    }
    return fit;
}

/* Labels of objects count classes, not elements of an output. */
static void warn_of_labels(const struct ifd_served_options *options,
                           const struct ifd_version *version)
{
    const struct ifd_model_desc *m = &version->desc;
    const bool counts_elements = !m->meaning || m->meaning->task == IFD_TASK_CLASSIFICATION ||
                                 m->meaning->task == IFD_TASK_SEGMENTATION;
    for (uint32_t i = 0; i < m->output_count && counts_elements; i++) {
        const struct ifd_tensor_info *output = &m->output[i];
        if (output->label_filename[0] != '\0' && !labels_fit(output)) {
            size_t elements = 1;
            for (uint32_t d = 0; d < output->shape.rank; d++) {
                elements *= (size_t)output->shape.dim[d];
            }
            ifd_log_warn(options->log, "labels do not fit the output",
                         "model=%s file=%s labels=%u output=%s elements=%zu", version->name,
                         output->label_filename, output->label_count, output->name, elements);
        }
    }
}

static enum ifd_code make_runner(const struct ifd_served_options *options,
                                 const struct ifd_version *version, uint32_t threads,
                                 struct ifd_runner **ret, struct ifd_err *err)
{
    uint32_t delay_ms = 0;
    const enum ifd_code code =
        number_parameter(&version->desc, "execute_delay_ms", 3600000, &delay_ms, err);
    if (code) {
        return code;
    }
    return version->engine ? ifd_runner_engine(version->engine, threads, instance_batch(version),
                                               options->request_alloc, ret, err)
                           : ifd_runner_identity(delay_ms, options->request_alloc, ret, err);
}

static struct ifd_lane_options lane_options(const struct ifd_served_options *options,
                                            const struct ifd_version *version)
{
    const struct ifd_model_desc *m = &version->desc;
    const uint32_t capacity = m->queue_policy.max_queue_size;
    /* If the graph does not treat samples independently, every request runs alone. */
    bool can_share = m->max_batch_size > 1 &&
                     (!version->engine || ifd_model_info(version->engine)->batch_is_free);
    return (struct ifd_lane_options){
        .alloc = options->alloc,
        .rules = {.is_dynamic = m->dynamic_batching && can_share,
                  .in_order = m->preserve_ordering,
                  .max_batch = m->max_batch_size,
                  .preferred = m->preferred_batch_size,
                  .preferred_count = m->preferred_batch_size_count,
                  .max_delay_ns = m->max_queue_delay_us > UINT64_MAX / 1000
                                      ? UINT64_MAX
                                      : m->max_queue_delay_us * 1000},
        .capacity = capacity > 0 ? capacity : options->max_queue_size,
        .priority = priority_of(m),
        .in_order = m->preserve_ordering,
    };
}

/* Bytes of the file that stay in memory: its weights are released once they are packed. */
static size_t file_bytes(const struct ifd_version *version)
{
    size_t released = version->engine ? ifd_model_info(version->engine)->released_bytes : 0;
    const uint64_t bytes = version->file.size + ifd_externals_bytes(version);
    return bytes > released ? (size_t)(bytes - released) : 0;
}

/* Reserves memory for the version: as predicted, or as measured. */
static enum ifd_code hold(const struct ifd_served_options *options, struct ifd_version *version,
                          size_t instance_bytes, struct ifd_err *err)
{
    size_t packed_bytes = version->engine ? ifd_model_info(version->engine)->packed_bytes : 0;
    enum ifd_code code =
        ifd_budget_hold(options->budget, &version->held_bytes,
                        (uint64_t)file_bytes(version) + packed_bytes + instance_bytes, err);
    if (code) {
        ifd_err_prefix(err, "file of %zu bytes, packed weights of %zu, %u instances of %zu in all",
                       file_bytes(version), packed_bytes, instance_count(&version->desc),
                       instance_bytes);
    }
    return code;
}

static enum ifd_code hold_predicted(const struct ifd_served_options *options,
                                    struct ifd_version *version, struct ifd_err *err)
{
    size_t bytes = 0;
    if (version->engine && (!ifd_size_mul(ifd_model_info(version->engine)->arena_bytes,
                                          instance_batch(version), &bytes) ||
                            !ifd_size_mul(bytes, instance_count(&version->desc), &bytes))) {
        return ifd_fail(err, IFD_TOO_LARGE, "instances need more memory than can be counted");
    }
    return hold(options, version, bytes, err);
}

/* Sets gauges that nothing else changes, so the load thread may do it. */
static void count_memory(const struct ifd_version *version, struct ifd_metric_set *metrics,
                         size_t instance_bytes, size_t instance_device_bytes)
{
    size_t device_bytes = version->engine ? ifd_model_info(version->engine)->device_bytes : 0;
    size_t packed_bytes = version->engine ? ifd_model_info(version->engine)->packed_bytes : 0;
    ifd_metric_put(metrics, IFD_METRIC_MEMORY, IFD_MEMORY_FILE, file_bytes(version));
    ifd_metric_put(metrics, IFD_METRIC_MEMORY, IFD_MEMORY_PACKED, packed_bytes);
    ifd_metric_put(metrics, IFD_METRIC_MEMORY, IFD_MEMORY_ARENA, instance_bytes);
    ifd_metric_put(metrics, IFD_METRIC_MEMORY, IFD_MEMORY_GPU,
                   device_bytes + instance_device_bytes);
}

static enum ifd_code make_lane(const struct ifd_served_options *options,
                               struct ifd_version *version, struct ifd_served *served,
                               uint32_t threads, bool is_asked, struct ifd_err *err)
{
    struct ifd_runner *runner[IFD_INSTANCES_MAX];
    uint32_t count = instance_count(&version->desc), made = 0;
    size_t bytes = 0, device_bytes = 0;
    struct ifd_warm_up warm_up = {.version = version,
                                  .alloc = options->request_alloc,
                                  .log = options->log,
                                  .clock = ifd_clock_system(),
                                  .most_ns = options->warm_up_ns,
                                  .is_stopping = options->is_stopping,
                                  .runs_zeros = options->warms_up};
    enum ifd_code code = hold_predicted(options, version, err);
    while (made < count && !code) {
        code = make_runner(options, version, threads, &runner[made], err);
        bytes += code ? 0 : runner[made]->bytes;
        device_bytes += code ? 0 : runner[made]->device_bytes;
        made += code ? 0 : 1;
        if (!code && (made == 1 || is_asked)) {
            code = ifd_warm_up(&warm_up, runner[made - 1], err);
        }
    }
    version->is_finite = ifd_warm_up_is_finite(&warm_up);
    if (!code) {
        code = hold(options, version, bytes, err);
    }
    if (code) {
        for (uint32_t i = 0; i < made; i++) {
            runner[i]->destroy(runner[i]);
        }
        return code;
    }
    count_memory(version, served->metrics, bytes, device_bytes);
    const struct ifd_lane_options lane = lane_options(options, version);
    /* Frames in full runs of all instances, and one more for each core that decodes. */
    const uint32_t run = lane.rules.is_dynamic ? (uint32_t)lane.rules.max_batch : 1;
    served->sources = (struct ifd_sources){.most_waiting = lane.capacity,
                                           .most_turns = count * run + options->cores};
    return ifd_lane_create(options->pool, &lane, runner, count, &served->lane, err);
}

static enum ifd_code init_stats(struct ifd_version *version, struct ifd_model_stats *stats,
                                struct ifd_err *err)
{
    const int32_t most = version->desc.max_batch_size;
    const uint32_t sizes = most < 1 ? 1 : most < IFD_MAX_BATCH ? (uint32_t)most : IFD_MAX_BATCH;
    *stats = (struct ifd_model_stats){
        .name = version->name, .version_text = version->number_text, .batch_count = sizes};
    stats->batch = ifd_arena_take_array(&version->arena, sizes, sizeof(*stats->batch));
    return stats->batch ? IFD_OK
                        : ifd_arena_fail(&version->arena, sizes * sizeof(*stats->batch), err);
}

enum ifd_code ifd_served_start(const struct ifd_served_options *options,
                               struct ifd_version *version, struct ifd_err *err)
{
    struct ifd_served *served = ifd_arena_take(&version->arena, sizeof(*served));
    if (!served) {
        return ifd_arena_fail(&version->arena, sizeof(*served), err);
    }
    const uint32_t count = version->desc.level_policy_count;
    served->bound = ifd_arena_take_array(&version->arena, count, sizeof(*served->bound));
    if (!served->bound) {
        return ifd_arena_fail(&version->arena, count * sizeof(*served->bound), err);
    }
    uint32_t threads = 0;
    bool is_asked = false; /* for this number of instances */
    enum ifd_code code = choose_instances(options, version, &threads, &is_asked, err);
    if (!code) {
        code = ifd_describe(version, err);
    }
    if (!code) {
        warn_of_labels(options, version);
    }
    if (!code) {
        code = init_stats(version, &served->stats, err);
    }
    if (!code) {
        code =
            ifd_sequences_create(&version->desc, options->request_alloc, &served->sequences, err);
    }
    if (!code) {
        code = ifd_metrics_take_model(options->metrics, version->name, version->number_text,
                                      &served->metrics, err);
    }
    if (code) {
        ifd_sequences_destroy(served->sequences);
        return code;
    }
    for (uint32_t i = 0; i < count; i++) {
        served->bound[i].capacity = version->desc.level_policy[i].policy.max_queue_size;
    }
    code = make_lane(options, version, served, threads, is_asked, err);
    if (code) {
        ifd_metrics_give_model(options->metrics, served->metrics);
        ifd_sequences_destroy(served->sequences);
        return code;
    }
    version->served = served;
    return IFD_OK;
}

void ifd_served_stop(const struct ifd_served_options *options, struct ifd_version *version)
{
    struct ifd_served *served = version->served;
    ifd_lane_destroy(served->lane);
    ifd_sequences_destroy(served->sequences);
    ifd_metrics_give_model(options->metrics, served->metrics);
}

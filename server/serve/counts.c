/* Statistics and metrics of requests. */
#include "server/serve/counts.h"

#include <time.h>

static void add(struct ifd_duration_stat *stat, uint64_t from_ns, uint64_t to_ns)
{
    stat->count++;
    stat->ns += to_ns > from_ns ? to_ns - from_ns : 0;
}

static uint64_t wall_ms(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void count_batch(struct ifd_model_stats *stats, const struct ifd_job *job)
{
    if (job->run_batch < 1 || job->run_batch > stats->batch_count) {
        return;
    }
    struct ifd_batch_stat *batch = &stats->batch[job->run_batch - 1];
    add(&batch->compute_input, job->started_ns, job->started_ns);
    add(&batch->compute_infer, job->started_ns, job->computed_ns);
    add(&batch->compute_output, job->computed_ns, job->finished_ns);
}

/* Time that a request waited: for its turn, and in the queue. */
static uint64_t queue_ns(const struct ifd_job *job, const struct ifd_infer_request *request)
{
    return request->turn.waited_ns + job->started_ns - job->queued_ns;
}

/* Counts the stages of a job that ran, successful or not. */
static void count_stages(struct ifd_metric_set *metrics, const struct ifd_job *job,
                         const struct ifd_infer_request *request)
{
    if (job->finished_ns == 0) {
        return;
    }
    ifd_metric_observe(metrics, IFD_METRIC_STAGE_SECONDS, IFD_STAGE_QUEUE, queue_ns(job, request));
    ifd_metric_observe(metrics, IFD_METRIC_STAGE_SECONDS, IFD_STAGE_COMPUTE,
                       job->finished_ns - job->started_ns);
    if (job->is_run_leader && job->code == IFD_OK) {
        ifd_metric_observe(metrics, IFD_METRIC_BATCH_SIZE, 0, (uint64_t)job->run_batch);
    }
}

/* Adds to metrics, whose series continue when a version of the same number replaces this one. */
static void count_success(struct ifd_metric_set *metrics, const struct ifd_job *job,
                          const struct ifd_infer_request *request)
{
    const uint64_t batch = (uint64_t)job->batch, runs = job->is_run_leader;
    ifd_metric_add(metrics, IFD_METRIC_INFERENCES, 0, batch);
    ifd_metric_add(metrics, IFD_METRIC_EXECUTIONS, 0, runs);
    ifd_metric_add(metrics, IFD_METRIC_NV_SUCCESS, 0, 1);
    ifd_metric_add(metrics, IFD_METRIC_NV_COUNT, 0, batch);
    ifd_metric_add(metrics, IFD_METRIC_NV_EXEC_COUNT, 0, runs);
    ifd_metric_add(metrics, IFD_METRIC_NV_REQUEST, 0, job->finished_ns - request->received_ns);
    ifd_metric_add(metrics, IFD_METRIC_NV_QUEUE, 0, queue_ns(job, request));
    ifd_metric_add(metrics, IFD_METRIC_NV_INFER, 0, job->computed_ns - job->started_ns);
    ifd_metric_add(metrics, IFD_METRIC_NV_OUTPUT, 0, job->finished_ns - job->computed_ns);
}

void ifd_count_failure(struct ifd_served *served, uint64_t received_ns, enum ifd_code code)
{
    bool is_refused =
        code == IFD_BUSY || code == IFD_DEADLINE || code == IFD_UNAVAILABLE || code == IFD_EXISTS;
    enum ifd_nv_reason reason = is_refused              ? IFD_NV_REJECTED
                                : code == IFD_CANCELLED ? IFD_NV_CANCELED
                                                        : IFD_NV_BACKEND;
    add(&served->stats.fail, received_ns, ifd_monotonic_ns());
    ifd_metric_add(served->metrics, IFD_METRIC_NV_FAILURE, (uint32_t)reason, 1);
}

void ifd_count_job(struct ifd_served *served, const struct ifd_job *job,
                   const struct ifd_infer_request *request)
{
    struct ifd_model_stats *stats = &served->stats;
    count_stages(served->metrics, job, request);
    if (job->code) {
        ifd_count_failure(served, request->received_ns, job->code);
        return;
    }
    count_success(served->metrics, job, request);
    stats->last_inference_ms = wall_ms();
    stats->inference_count += (uint64_t)job->batch;
    add(&stats->success, request->received_ns, job->finished_ns);
    add(&stats->queue, 0, queue_ns(job, request));
    add(&stats->compute_input, job->started_ns, job->started_ns);
    add(&stats->compute_infer, job->started_ns, job->computed_ns);
    add(&stats->compute_output, job->computed_ns, job->finished_ns);
    if (job->is_run_leader) {
        stats->execution_count++;
        count_batch(stats, job);
    }
}

void ifd_count_begun(struct ifd_served *served)
{
    ifd_metric_add(served->metrics, IFD_METRIC_ACCEPTED, 0, 1);
    ifd_metric_add(served->metrics, IFD_METRIC_INFLIGHT, 0, 1);
}

static void count_frame(struct ifd_served *served, const struct ifd_request_end *end)
{
    const enum ifd_frame_result result = end->is_replaced                      ? IFD_FRAME_SKIPPED
                                         : end->outcome == IFD_OUTCOME_OK      ? IFD_FRAME_ANSWERED
                                         : end->outcome == IFD_OUTCOME_TIMEOUT ? IFD_FRAME_STALE
                                                                               : IFD_FRAME_FAILED;
    ifd_metric_add(served->metrics, IFD_METRIC_FRAMES, (uint32_t)result, 1);
    if (result == IFD_FRAME_ANSWERED) {
        ifd_metric_observe(served->metrics, IFD_METRIC_FRAME_SECONDS, 0,
                           end->ended_ns - end->received_ns);
    } else if (result == IFD_FRAME_SKIPPED) {
        ifd_count_failure(served, end->received_ns, IFD_EXISTS);
    }
}

void ifd_count_ended(struct ifd_served *served, const struct ifd_request_end *end)
{
    struct ifd_metric_set *metrics = served->metrics;
    ifd_metric_add(metrics, IFD_METRIC_INFLIGHT, 0, (uint64_t)-1);
    ifd_metric_add(metrics, IFD_METRIC_REQUESTS, (uint32_t)end->outcome, 1);
    ifd_metric_observe(metrics, IFD_METRIC_REQUEST_SECONDS, 0, end->ended_ns - end->received_ns);
    if (end->is_frame) {
        count_frame(served, end);
    }
    if (end->decoded_ns > 0) {
        ifd_metric_observe(metrics, IFD_METRIC_STAGE_SECONDS, IFD_STAGE_DECODE,
                           end->decoded_ns - end->handled_ns - end->waited_ns);
    }
    if (end->encoded_ns > 0) {
        ifd_metric_observe(metrics, IFD_METRIC_STAGE_SECONDS, IFD_STAGE_ENCODE,
                           end->encoded_ns - end->done_ns);
    }
}

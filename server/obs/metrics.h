/** Counters, gauges and histograms behind /metrics: cells for the rows of metric_list.inc, and
 *  their text.
 *
 *  There is one set of cells for the server and one for each model version. The loop thread counts
 *  requests and connections and writes the text: every scrape is a consistent snapshot in which
 *  sums hold exactly, and counting needs neither lock nor read-modify-write. Other threads count
 *  with ifd_metric_add_shared. A NULL set counts nothing. */
#ifndef INFERD_SERVER_OBS_METRICS_H
#define INFERD_SERVER_OBS_METRICS_H

#include "api/core/outcome.h"
#include "engine/base/buf.h"

struct ifd_metrics;
struct ifd_metric_set;

enum ifd_metric {
#define METRIC(id, ...)       IFD_METRIC_##id,
#define MODEL_METRIC(id, ...) IFD_METRIC_##id,
#include "server/obs/metric_list.inc"
#undef METRIC
#undef MODEL_METRIC
    IFD_METRIC_COUNT
};

/* ---- values of labels; a metric without labels has the label 0 ---- */

/* OUTCOME: enum ifd_outcome; DENIAL: enum ifd_verdict less IFD_VERDICT_GRANTED
 * (api/core/outcome.h). STATE of versions: enum ifd_model_state (server/model/desc.h). */
const char *ifd_metric_outcome(enum ifd_outcome outcome); /* "ok" …; static */

/** LIMIT: X(id, name of the setting). */
#define IFD_LIMITS(X)                                                                              \
    X(BODY, "http-max-input-size")                                                                 \
    X(CONNECTIONS, "http-max-connections")                                                         \
    X(ADDRESS, "http-max-connections-per-address")                                                 \
    X(HEADER, "http-max-header-size")                                                              \
    X(HEADER_TIME, "http-header-timeout-secs")                                                     \
    X(RECEIVE, "http-receive-timeout-secs")                                                        \
    X(RECEIVE_RATE, "http-min-receive-rate")                                                       \
    X(SEND, "http-send-timeout-secs")                                                              \
    X(SEND_RATE, "http-min-send-rate")                                                             \
    X(IDLE, "http-idle-timeout-secs")                                                              \
    X(QUEUE, "default-max-queue-size")                                                             \
    X(QUEUE_TIME, "default-timeout-ms")                                                            \
    X(IMAGE, "image-max-pixels")                                                                   \
    X(MEMORY, "memory-budget")                                                                     \
    X(REQUEST_MEMORY, "request-memory")                                                            \
    X(SWAPS, "repository-swaps-per-hour")

enum ifd_limit {
#define X(id, name) IFD_LIMIT_##id,
    IFD_LIMITS(X)
#undef X
};

/** STAGE: parsing and pictures; waiting; running with its copies; writing the answer. */
#define IFD_STAGES(X)                                                                              \
    X(DECODE, "decode") X(QUEUE, "queue") X(COMPUTE, "compute") X(ENCODE, "encode")

enum ifd_stage {
#define X(id, label) IFD_STAGE_##id,
    IFD_STAGES(X)
#undef X
};

/** FRAME of a source: answered; a newer one came while it waited; its time ran out; any other
 *  end. */
#define IFD_FRAME_RESULTS(X)                                                                       \
    X(ANSWERED, "answered") X(SKIPPED, "skipped") X(STALE, "stale") X(FAILED, "failed")

enum ifd_frame_result {
#define X(id, label) IFD_FRAME_##id,
    IFD_FRAME_RESULTS(X)
#undef X
};

/** REFUSAL of a connection: too many of its address, or of all; no descriptor, no memory for it. */
#define IFD_REFUSALS(X)                                                                            \
    X(ADDRESS, "address")                                                                          \
    X(CONNECTIONS, "connections")                                                                  \
    X(DESCRIPTORS, "descriptors")                                                                  \
    X(MEMORY, "memory")

enum ifd_refusal {
#define X(id, label) IFD_REFUSAL_##id,
    IFD_REFUSALS(X)
#undef X
};

/** MEMORY: the model's file; weights packed for kernels, beside the file; what its instances work
 *  in; memory of devices for weights and instances. */
#define IFD_MEMORY_KINDS(X) X(FILE, "file") X(PACKED, "packed") X(ARENA, "arena") X(GPU, "gpu")

enum ifd_memory_kind {
#define X(id, label) IFD_MEMORY_##id,
    IFD_MEMORY_KINDS(X)
#undef X
};

/** NV_REASON */
#define IFD_NV_REASONS(X)                                                                          \
    X(REJECTED, "REJECTED") X(CANCELED, "CANCELED") X(BACKEND, "BACKEND") X(OTHER, "OTHER")

enum ifd_nv_reason {
#define X(id, label) IFD_NV_##id,
    IFD_NV_REASONS(X)
#undef X
};

/** STATUS: the label of an HTTP status; statuses that this server never sends share one. */
uint32_t ifd_metric_status(int status);
/* RESULT: enum ifd_code. */

/* ---- counting ---- */

/** A counter or gauge; a negative n (as unsigned) lowers a gauge. Thread: loop. */
void ifd_metric_add(struct ifd_metric_set *set, enum ifd_metric metric, uint32_t label, uint64_t n);
/** The same for cells that only this function changes. Thread: any. */
void ifd_metric_add_shared(struct ifd_metric_set *set, enum ifd_metric metric, uint32_t label,
                           uint64_t n);
/** Sets a gauge, or a counter that is counted elsewhere. Thread: loop. */
void ifd_metric_put(struct ifd_metric_set *set, enum ifd_metric metric, uint32_t label,
                    uint64_t value);
/** A histogram: value in nanoseconds, or the size. Thread: loop. */
void ifd_metric_observe(struct ifd_metric_set *set, enum ifd_metric metric, uint32_t label,
                        uint64_t value);
/** A counter or gauge. Thread: any. */
uint64_t ifd_metric_get(const struct ifd_metric_set *set, enum ifd_metric metric, uint32_t label);

/* ---- sets ---- */

struct ifd_metrics_options {
    const struct ifd_alloc *alloc;
    const char *version; /* of the program; stays */
    bool triton_names;
};

IFD_NODISCARD enum ifd_code ifd_metrics_create(const struct ifd_metrics_options *options,
                                               struct ifd_metrics **ret_metrics,
                                               struct ifd_err *err);
/** All model sets must have been given back. NULL is fine. */
void ifd_metrics_destroy(struct ifd_metrics *metrics);

/** The server's own set. NULL for NULL. */
struct ifd_metric_set *ifd_metrics_server(struct ifd_metrics *metrics);

/** The set of a model version. If a set of that name and version is held already, it is shared: a
 *  version that replaces another of the same number continues its counts. Otherwise every cell is
 *  0. Texts are copied. NULL metrics give NULL. Errors: NOMEM. Thread: any. */
IFD_NODISCARD enum ifd_code ifd_metrics_take_model(struct ifd_metrics *metrics, const char *name,
                                                   const char *version,
                                                   struct ifd_metric_set **ret_set,
                                                   struct ifd_err *err);
/** Gives a set back. Its series end with the last holder. Thread: any. */
void ifd_metrics_give_model(struct ifd_metrics *metrics, struct ifd_metric_set *set);

/** Appends everything in Prometheus's text format 0.0.4. Thread: loop. */
void ifd_metrics_write(struct ifd_metrics *metrics, struct ifd_buf *buf);

/** Content type of that text. */
#define IFD_METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

#endif

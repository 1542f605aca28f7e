/** Counters, gauges and histograms behind /metrics: the rows of metric_list.inc as cells, and the cells as text.
 *
 *  There is one set of cells for the server and one for each model version. Everything that happens to requests and
 *  connections is counted on the loop thread, and the text is written there too: every scrape is a consistent cut, in which
 *  sums hold exactly, and counting needs neither lock nor read-modify-write. What other threads count goes through
 *  ifd_metric_add_shared. A NULL set is fine everywhere and counts nothing. */
#ifndef INFERD_SERVER_OBS_METRICS_H
#define INFERD_SERVER_OBS_METRICS_H

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

/** OUTCOME: as enum ifd_outcome of api/http/http.h, in its order. */
#define IFD_METRIC_OUTCOMES 6
const char *ifd_metric_outcome(uint32_t outcome); /* "ok" …; static */

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
enum ifd_stage { IFD_STAGE_DECODE, IFD_STAGE_QUEUE, IFD_STAGE_COMPUTE, IFD_STAGE_ENCODE };

/** REFUSAL of a connection: too many of its address, or of all; no descriptor, no memory for it. */
enum ifd_refusal {
    IFD_REFUSAL_ADDRESS,
    IFD_REFUSAL_CONNECTIONS,
    IFD_REFUSAL_DESCRIPTORS,
    IFD_REFUSAL_MEMORY
};

/** DENIAL: as enum ifd_verdict of api/core/guard.h, from its second on. */
#define IFD_METRIC_DENIALS 4

/** MEMORY: the model's file; weights packed for kernels, beside the file; what its instances work in. */
enum ifd_memory_kind { IFD_MEMORY_FILE, IFD_MEMORY_PACKED, IFD_MEMORY_ARENA };

/** STATE of versions: as enum ifd_version_state of server/repo/model.h. */
#define IFD_METRIC_STATES 4

/** NV_REASON */
enum ifd_nv_reason { IFD_NV_REJECTED, IFD_NV_CANCELED, IFD_NV_BACKEND, IFD_NV_OTHER };

/** STATUS: the label of an HTTP status; those that this server never gives share one. */
uint32_t ifd_metric_status(int status);
/* RESULT: enum ifd_code. */

/* ---- counting ---- */

/** A counter or gauge; a negative n (as unsigned) lowers a gauge. Thread: loop. */
void ifd_metric_add(struct ifd_metric_set *set, enum ifd_metric metric, uint32_t label, uint64_t n);
/** The same, for cells that only this function changes. Thread: any. */
void ifd_metric_add_shared(struct ifd_metric_set *set, enum ifd_metric metric, uint32_t label,
                           uint64_t n);
/** A gauge, or a counter that something else counts. Thread: loop. */
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
/** All model sets were given back. NULL is fine. */
void ifd_metrics_destroy(struct ifd_metrics *metrics);

/** The server's own set. NULL for NULL. */
struct ifd_metric_set *ifd_metrics_server(struct ifd_metrics *metrics);

/** The set of a model version, with every cell 0 if nobody holds one of that name and version: a version that replaces
 *  another of the same number goes on counting where that one is. Texts are copied. NULL metrics give NULL.
 *  Errors: NOMEM. Thread: any. */
IFD_NODISCARD enum ifd_code ifd_metrics_take_model(struct ifd_metrics *metrics, const char *name,
                                                   const char *version,
                                                   struct ifd_metric_set **ret_set,
                                                   struct ifd_err *err);
/** The series end when the last holder gives the set back. Thread: any. */
void ifd_metrics_give_model(struct ifd_metrics *metrics, struct ifd_metric_set *set);

/** Appends everything in Prometheus's text format 0.0.4. Thread: loop. */
void ifd_metrics_write(struct ifd_metrics *metrics, struct ifd_buf *buf);

/** Of that text. */
#define IFD_METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

#endif

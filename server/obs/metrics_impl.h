/** Internals of the metrics: metrics_rows.c makes a table of metric_list.inc, metrics.c has sets of
 *  cells and counting, metrics_text.c writes the page. */
#ifndef INFERD_SERVER_OBS_METRICS_IMPL_H
#define INFERD_SERVER_OBS_METRICS_IMPL_H

#include <stdatomic.h>

#include "engine/base/thread.h"
#include "server/obs/metrics.h"

enum ifd_metric_type {
    IFD_TYPE_COUNTER,
    IFD_TYPE_GAUGE,
    IFD_TYPE_SECONDS_HISTOGRAM,
    IFD_TYPE_SIZE_HISTOGRAM
};
enum ifd_metric_unit { IFD_UNIT_COUNT, IFD_UNIT_NS, IFD_UNIT_US };

/** Upper bound of a histogram bucket: its printed text and its value. */
struct ifd_metric_bound {
    const char *text;
    uint64_t value;
};

struct ifd_metric_row {
    const char *name, *help;
    const char *const *labels;
    const struct ifd_metric_bound *bounds; /* NULL: no histogram */
    enum ifd_metric_type type;
    enum ifd_metric_unit unit;
    /* cells: of one label; a histogram has its buckets (the last without a bound) and its sum.
     * at: index of the first cell in the set. */
    uint32_t label_count, bound_count, cells, at;
    bool is_model;
};

extern const struct ifd_metric_row ifd_metric_rows[IFD_METRIC_COUNT];
/** Number of cells of the server's set and of a model version's. */
extern const uint32_t ifd_metric_server_cells, ifd_metric_model_cells;

struct ifd_metric_set {
    struct ifd_metric_set *next; /* sorted by text */
    char *text;                  /* model="NAME",version="N", escaped; "" for the server */
    size_t text_bytes;           /* allocated */
    uint32_t holders;
    uint32_t cell_count;
    _Atomic uint64_t cell[];
};

/** The mutex guards the list of model sets; cells belong to the loop thread. */
struct ifd_metrics {
    struct ifd_metrics_options options;
    struct ifd_mutex mutex;
    struct ifd_metric_set *server, *models;
};

/** The first cell of a label; NULL: the set has no such row or label. */
_Atomic uint64_t *ifd_metric_cell(struct ifd_metric_set *set, const struct ifd_metric_row *row,
                                  uint32_t label);

static inline uint64_t ifd_metric_read(const _Atomic uint64_t *cell)
{
    return atomic_load_explicit(cell, memory_order_relaxed);
}

/** Adds text as the value of a label, with Prometheus's escapes for quote, backslash and line
 *  feed. */
void ifd_metric_add_escaped(struct ifd_buf *buf, const char *text);

#endif

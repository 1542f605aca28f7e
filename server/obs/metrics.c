/* Sets of cells and counting. */
#include "server/obs/metrics_impl.h"

#include <string.h>

/* ---- cells ---- */

_Atomic uint64_t *ifd_metric_cell(struct ifd_metric_set *set, const struct ifd_metric_row *row,
                                  uint32_t label)
{
    const uint32_t at = row->at + label * row->cells;
    bool is_there = label < row->label_count && row->is_model == (set->text[0] != '\0');
    return is_there && at < set->cell_count ? &set->cell[at] : NULL;
}

/* There is one writer, so no read-modify-write is needed. */
static void raise_cell(_Atomic uint64_t *cell, uint64_t n)
{
    atomic_store_explicit(cell, ifd_metric_read(cell) + n, memory_order_relaxed);
}

void ifd_metric_add(struct ifd_metric_set *set, enum ifd_metric metric, uint32_t label, uint64_t n)
{
    _Atomic uint64_t *cell = set ? ifd_metric_cell(set, &ifd_metric_rows[metric], label) : NULL;
    if (cell) {
        raise_cell(cell, n);
    }
}

void ifd_metric_add_shared(struct ifd_metric_set *set, enum ifd_metric metric, uint32_t label,
                           uint64_t n)
{
    _Atomic uint64_t *cell = set ? ifd_metric_cell(set, &ifd_metric_rows[metric], label) : NULL;
    if (cell) {
        (void)atomic_fetch_add_explicit(cell, n, memory_order_relaxed);
    }
}

void ifd_metric_put(struct ifd_metric_set *set, enum ifd_metric metric, uint32_t label,
                    uint64_t value)
{
    _Atomic uint64_t *cell = set ? ifd_metric_cell(set, &ifd_metric_rows[metric], label) : NULL;
    if (cell) {
        atomic_store_explicit(cell, value, memory_order_relaxed);
    }
}

uint64_t ifd_metric_get(const struct ifd_metric_set *set, enum ifd_metric metric, uint32_t label)
{
    /* ifd_metric_cell does not write */
    const _Atomic uint64_t *cell = set ? ifd_metric_cell((struct ifd_metric_set *)(uintptr_t)set,
                                                         &ifd_metric_rows[metric], label)
                                       : NULL;
    return cell ? ifd_metric_read(cell) : 0;
}

void ifd_metric_observe(struct ifd_metric_set *set, enum ifd_metric metric, uint32_t label,
                        uint64_t value)
{
    const struct ifd_metric_row *row = &ifd_metric_rows[metric];
    uint32_t i = 0;
    _Atomic uint64_t *cell = set ? ifd_metric_cell(set, row, label) : NULL;
    if (!cell) {
        return;
    }
    while (i < row->bound_count && value > row->bounds[i].value) {
        i++;
    }
    raise_cell(&cell[i], 1);
    raise_cell(&cell[row->bound_count + 1], value);
}

/* ---- sets ---- */

static struct ifd_metric_set *new_set(const struct ifd_alloc *alloc, uint32_t cells, char *text,
                                      size_t text_bytes)
{
    struct ifd_metric_set *set =
        ifd_acquire_zeroed(alloc, 1, sizeof(*set) + cells * sizeof(set->cell[0]));
    if (set) {
        set->text = text;
        set->text_bytes = text_bytes;
        set->cell_count = cells;
    }
    return set;
}

static void free_set(const struct ifd_alloc *alloc, struct ifd_metric_set *set)
{
    if (set) {
        ifd_release(alloc, set->text, set->text_bytes);
        ifd_release(alloc, set, sizeof(*set) + set->cell_count * sizeof(set->cell[0]));
    }
}

enum ifd_code ifd_metrics_create(const struct ifd_metrics_options *options,
                                 struct ifd_metrics **ret_metrics, struct ifd_err *err)
{
    struct ifd_metrics *metrics = ifd_acquire_zeroed(options->alloc, 1, sizeof(*metrics));
    char *text = ifd_acquire_zeroed(options->alloc, 1, 1);
    struct ifd_metric_set *server = new_set(options->alloc, ifd_metric_server_cells, text, 1);
    if (!metrics || !text || !server) {
        ifd_release(options->alloc, server,
                    sizeof(*server) + ifd_metric_server_cells * sizeof(server->cell[0]));
        ifd_release(options->alloc, text, 1);
        ifd_release(options->alloc, metrics, sizeof(*metrics));
        return ifd_fail(err, IFD_NOMEM, "no memory for metrics");
    }
    metrics->options = *options;
    metrics->server = server;
    ifd_mutex_init(&metrics->mutex);
    ifd_metric_put(server, IFD_METRIC_BUILD_INFO, 0, 1);
    *ret_metrics = metrics;
    return IFD_OK;
}

void ifd_metrics_destroy(struct ifd_metrics *metrics)
{
    if (metrics) {
        const struct ifd_alloc *alloc = metrics->options.alloc;
        free_set(alloc, metrics->server);
        ifd_mutex_finish(&metrics->mutex);
        ifd_release(alloc, metrics, sizeof(*metrics));
    }
}

struct ifd_metric_set *ifd_metrics_server(struct ifd_metrics *metrics)
{
    return metrics ? metrics->server : NULL;
}

void ifd_metric_add_escaped(struct ifd_buf *buf, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            ifd_buf_add(buf, "\\n", 2);
            continue;
        }
        if (*text == '\\' || *text == '"') {
            ifd_buf_add(buf, "\\", 1);
        }
        ifd_buf_add(buf, text, 1);
    }
}

/* The labels of a model version, allocated; NULL: no memory. */
static char *model_text(const struct ifd_alloc *alloc, const char *name, const char *version,
                        size_t *ret_bytes)
{
    struct ifd_buf buf;
    ifd_buf_init(&buf, alloc, 2 * (strlen(name) + strlen(version)) + 64);
    ifd_buf_add_text(&buf, "model=\"");
    ifd_metric_add_escaped(&buf, name);
    ifd_buf_add_text(&buf, "\",version=\"");
    ifd_metric_add_escaped(&buf, version);
    ifd_buf_add(&buf, "\"", 2); /* with the NUL */
    char *text = buf.failed ? NULL : ifd_acquire(alloc, buf.size);
    if (text) {
        memcpy(text, buf.data, buf.size);
        *ret_bytes = buf.size;
    }
    ifd_buf_finish(&buf);
    return text;
}

enum ifd_code ifd_metrics_take_model(struct ifd_metrics *metrics, const char *name,
                                     const char *version, struct ifd_metric_set **ret_set,
                                     struct ifd_err *err)
{
    size_t bytes = 0;
    if (!metrics) {
        *ret_set = NULL;
        return IFD_OK;
    }
    const struct ifd_alloc *alloc = metrics->options.alloc;
    char *text = model_text(alloc, name, version, &bytes);
    if (!text) {
        return ifd_fail(err, IFD_NOMEM, "no memory for metrics of a model");
    }
    ifd_mutex_lock(&metrics->mutex);
    struct ifd_metric_set **at = &metrics->models;
    while (*at && strcmp((*at)->text, text) < 0) {
        at = &(*at)->next;
    }
    struct ifd_metric_set *set = *at && strcmp((*at)->text, text) == 0 ? *at : NULL;
    if (set) {
        ifd_release(alloc, text, bytes);
    } else {
        set = new_set(alloc, ifd_metric_model_cells, text, bytes);
        if (set) {
            set->next = *at;
            *at = set;
        } else {
            ifd_release(alloc, text, bytes);
        }
    }
    if (set) {
        set->holders++;
    }
    ifd_mutex_unlock(&metrics->mutex);
    if (!set) {
        return ifd_fail(err, IFD_NOMEM, "no memory for metrics of a model");
    }
    *ret_set = set;
    return IFD_OK;
}

void ifd_metrics_give_model(struct ifd_metrics *metrics, struct ifd_metric_set *set)
{
    if (!metrics || !set) {
        return;
    }
    ifd_mutex_lock(&metrics->mutex);
    if (--set->holders == 0) {
        struct ifd_metric_set **at = &metrics->models;
        while (*at != set) {
            at = &(*at)->next;
        }
        *at = set->next;
        free_set(metrics->options.alloc, set);
    }
    ifd_mutex_unlock(&metrics->mutex);
}

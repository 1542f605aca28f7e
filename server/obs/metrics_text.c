/* The page of cells in Prometheus's text format. */
#include "server/obs/metrics_impl.h"

#include <string.h>

static void put_u64(struct ifd_buf *buf, uint64_t value)
{
    char text[20];
    size_t at = sizeof(text);
    do {
        text[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    ifd_buf_add(buf, text + at, sizeof(text) - at);
}

/* Nanoseconds as seconds, exactly. */
static void put_seconds(struct ifd_buf *buf, uint64_t ns)
{
    char text[10] = ".000000000";
    size_t size = sizeof(text);
    uint64_t rest = ns % 1000000000;
    put_u64(buf, ns / 1000000000);
    for (size_t i = sizeof(text) - 1; i > 0; i--) {
        text[i] = (char)('0' + rest % 10);
        rest /= 10;
    }
    while (text[size - 1] == '0') {
        size--;
    }
    if (size > 1) {
        ifd_buf_add(buf, text, size);
    }
}

static void put_value(struct ifd_buf *buf, const struct ifd_metric_row *row, uint64_t value)
{
    if (row->unit == IFD_UNIT_NS) {
        put_seconds(buf, value);
    } else {
        put_u64(buf, row->unit == IFD_UNIT_US ? value / 1000 : value);
    }
    ifd_buf_add(buf, "\n", 1);
}

/* Name and labels of a line without the closing bracket. True: there are labels. */
static bool put_head(const struct ifd_metrics *metrics, const struct ifd_metric_set *set,
                     const struct ifd_metric_row *row, const char *suffix, uint32_t label,
                     struct ifd_buf *buf)
{
    const char *own = row->labels[label];
    ifd_buf_add_text(buf, row->name);
    ifd_buf_add_text(buf, suffix);
    if (set->text[0] == '\0' && own[0] == '\0') {
        return false;
    }
    ifd_buf_add(buf, "{", 1);
    ifd_buf_add_text(buf, set->text);
    ifd_buf_add_text(buf, set->text[0] != '\0' && own[0] != '\0' ? "," : "");
    ifd_buf_add_text(buf, own);
    if (row == &ifd_metric_rows[IFD_METRIC_BUILD_INFO]) {
        ifd_buf_add_text(buf, "=\"");
        ifd_metric_add_escaped(buf, metrics->options.version);
        ifd_buf_add(buf, "\"", 1);
    }
    return true;
}

static void put_name(const struct ifd_metrics *metrics, const struct ifd_metric_set *set,
                     const struct ifd_metric_row *row, const char *suffix, uint32_t label,
                     struct ifd_buf *buf)
{
    bool has_labels = put_head(metrics, set, row, suffix, label, buf);
    ifd_buf_add_text(buf, has_labels ? "} " : " ");
}

/* Appends a copy of the size bytes at at. */
static void put_again(struct ifd_buf *buf, size_t at, size_t size)
{
    uint8_t *place = ifd_buf_grow(buf, size);
    if (place) {
        memcpy(place, buf->data + at, size);
    }
}

/* Buckets are most of a page, so what the lines of one histogram share is formatted once. */
static void put_histogram(const struct ifd_metrics *metrics, const struct ifd_metric_set *set,
                          const struct ifd_metric_row *row, uint32_t label,
                          const _Atomic uint64_t *cell, struct ifd_buf *buf)
{
    const uint32_t count = row->bound_count;
    uint64_t total = 0;
    size_t at = buf->size;
    bool has_labels = put_head(metrics, set, row, "_bucket", label, buf);
    ifd_buf_add_text(buf, has_labels ? ",le=\"" : "{le=\"");
    size_t head = buf->size - at;
    for (uint32_t i = 0; i <= count; i++) {
        if (i > 0) {
            put_again(buf, at, head);
        }
        total += ifd_metric_read(&cell[i]);
        ifd_buf_add_text(buf, i < count ? row->bounds[i].text : "+Inf");
        ifd_buf_add(buf, "\"} ", 3);
        put_u64(buf, total);
        ifd_buf_add(buf, "\n", 1);
    }
    put_name(metrics, set, row, "_sum", label, buf);
    put_value(buf, row, ifd_metric_read(&cell[count + 1]));
    put_name(metrics, set, row, "_count", label, buf);
    put_u64(buf, total);
    ifd_buf_add(buf, "\n", 1);
}

static void put_set(const struct ifd_metrics *metrics, const struct ifd_metric_set *set,
                    const struct ifd_metric_row *row, struct ifd_buf *buf)
{
    for (uint32_t label = 0; label < row->label_count; label++) {
        const _Atomic uint64_t *cell =
            ifd_metric_cell((struct ifd_metric_set *)(uintptr_t)set, row, label);
        if (row->bounds) {
            put_histogram(metrics, set, row, label, cell, buf);
        } else {
            put_name(metrics, set, row, "", label, buf);
            put_value(buf, row, ifd_metric_read(cell));
        }
    }
}

static void put_row(const struct ifd_metrics *metrics, const struct ifd_metric_row *row,
                    struct ifd_buf *buf)
{
    static const char *const types[] = {"counter", "gauge", "histogram", "histogram"};
    const char *const line[] = {"# HELP ", row->name, " ", row->help,        "\n",
                                "# TYPE ", row->name, " ", types[row->type], "\n"};
    for (size_t i = 0; i < sizeof(line) / sizeof(line[0]); i++) {
        ifd_buf_add_text(buf, line[i]);
    }
    const struct ifd_metric_set *set = row->is_model ? metrics->models : metrics->server;
    for (; set; set = set->next) {
        put_set(metrics, set, row, buf);
    }
}

void ifd_metrics_write(struct ifd_metrics *metrics, struct ifd_buf *buf)
{
    ifd_mutex_lock(&metrics->mutex);
    for (size_t i = 0; i < IFD_METRIC_COUNT; i++) {
        bool is_triton = strncmp(ifd_metric_rows[i].name, "nv_", 3) == 0;
        bool has_sets = !ifd_metric_rows[i].is_model || metrics->models;
        if (has_sets && (metrics->options.triton_names || !is_triton)) {
            put_row(metrics, &ifd_metric_rows[i], buf);
        }
    }
    ifd_mutex_unlock(&metrics->mutex);
}

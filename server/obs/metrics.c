/* Cells of metrics, and their text. */
#include "server/obs/metrics.h"

#include <stdatomic.h>
#include <string.h>

#include "engine/base/thread.h"

/* ---- histograms ---- */

/* Upper bounds, printed and in nanoseconds: three steps a decade, from what a fast answer takes to what a client waits. */
#define SECONDS_BOUNDS(X)                                                                          \
    X("1e-05", 10000)                                                                              \
    X("2.5e-05", 25000)                                                                            \
    X("5e-05", 50000)                                                                              \
    X("0.0001", 100000)                                                                            \
    X("0.00025", 250000)                                                                           \
    X("0.0005", 500000)                                                                            \
    X("0.001", 1000000)                                                                            \
    X("0.0025", 2500000)                                                                           \
    X("0.005", 5000000)                                                                            \
    X("0.01", 10000000)                                                                            \
    X("0.025", 25000000)                                                                           \
    X("0.05", 50000000)                                                                            \
    X("0.1", 100000000)                                                                            \
    X("0.25", 250000000)                                                                           \
    X("0.5", 500000000)                                                                            \
    X("1", 1000000000)                                                                             \
    X("2.5", 2500000000)                                                                           \
    X("5", 5000000000)                                                                             \
    X("10", 10000000000)
#define SIZE_BOUNDS(X)                                                                             \
    X("1", 1)                                                                                      \
    X("2", 2)                                                                                      \
    X("4", 4)                                                                                      \
    X("8", 8)                                                                                      \
    X("16", 16)                                                                                    \
    X("32", 32)                                                                                    \
    X("64", 64)                                                                                    \
    X("128", 128)                                                                                  \
    X("256", 256)

struct bound {
    const char *text;
    uint64_t value;
};
#define X(text_, value_) {.text = text_, .value = UINT64_C(value_)},
static const struct bound seconds_bounds[] = {SECONDS_BOUNDS(X)};
static const struct bound size_bounds[] = {SIZE_BOUNDS(X)};
#undef X

/* ---- labels ---- */

static const char *const labels_NONE[] = {""};
static const char *const labels_VERSION[] = {"version"}; /* the value is the program's */
#define OUTCOMES(X) X("ok") X("client_error") X("shed") X("timeout") X("failed") X("aborted")
static const char *const labels_OUTCOME[] = {
#define X(name) "outcome=\"" name "\"",
    OUTCOMES(X)
#undef X
};
static const char *const labels_LIMIT[] = {
#define X(id, name) "limit=\"" name "\"",
    IFD_LIMITS(X)
#undef X
};
static const char *const labels_STAGE[] = {"stage=\"decode\"", "stage=\"queue\"",
                                           "stage=\"compute\"", "stage=\"encode\""};
static const char *const labels_REFUSAL[] = {"reason=\"address\"", "reason=\"connections\"",
                                             "reason=\"descriptors\"", "reason=\"memory\""};
static const char *const labels_DENIAL[] = {"reason=\"no_token\"", "reason=\"unknown_token\"",
                                            "reason=\"class\"", "reason=\"model\""};
static const char *const labels_MEMORY[] = {"kind=\"file\"", "kind=\"packed\"", "kind=\"arena\""};
static const char *const labels_STATE[] = {"state=\"loading\"", "state=\"ready\"",
                                           "state=\"unavailable\"", "state=\"unloading\""};
static const char *const labels_NV_REASON[] = {"reason=\"REJECTED\"", "reason=\"CANCELED\"",
                                               "reason=\"BACKEND\"", "reason=\"OTHER\""};
static const char *const labels_RESULT[] = {
#define X(id, name, meaning) "result=\"" name "\"",
    IFD_CODES(X)
#undef X
};

#define STATUSES(X)                                                                                \
    X(200)                                                                                         \
    X(400)                                                                                         \
    X(401)                                                                                         \
    X(403)                                                                                         \
    X(404) X(405) X(408) X(409) X(413) X(414) X(415) X(417) X(431) X(500) X(501) X(503) X(505)
static const int statuses[] = {
#define X(status) status,
    STATUSES(X)
#undef X
};
static const char *const labels_STATUS[] = {
#define X(status) "code=\"" #status "\"",
    STATUSES(X)
#undef X
        "code=\"other\""};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
_Static_assert(COUNT_OF(labels_OUTCOME) == IFD_METRIC_OUTCOMES, "every outcome has a label");
_Static_assert(COUNT_OF(labels_DENIAL) == IFD_METRIC_DENIALS, "every denial has a label");
_Static_assert(COUNT_OF(labels_STATE) == IFD_METRIC_STATES, "every state has a label");

/* ---- rows ---- */

enum type { COUNTER, GAUGE, SECONDS_HISTOGRAM, SIZE_HISTOGRAM };
enum unit { COUNT, NS, US };

/* Cells of one label: a histogram has its buckets, the last without bound, and its sum. */
enum {
    CELLS_COUNTER = 1,
    CELLS_GAUGE = 1,
    CELLS_SECONDS_HISTOGRAM = (int)COUNT_OF(seconds_bounds) + 2,
    CELLS_SIZE_HISTOGRAM = (int)COUNT_OF(size_bounds) + 2
};

/* Where the cells of a row are in its set: each begins behind the last cell of the row before. */
#define PLACE(id_, type_, list_)                                                                   \
    AT_##id_, LAST_##id_ = AT_##id_ + CELLS_##type_ * (int)COUNT_OF(labels_##list_) - 1
enum server_place {
#define METRIC(id, name, type, unit, labels, help) PLACE(id, type, labels),
#define MODEL_METRIC(...)
#include "server/obs/metric_list.inc"
#undef METRIC
#undef MODEL_METRIC
    SERVER_CELLS
};
enum model_place {
#define METRIC(...)
#define MODEL_METRIC(id, name, type, unit, labels, help) PLACE(id, type, labels),
#include "server/obs/metric_list.inc"
#undef METRIC
#undef MODEL_METRIC
    MODEL_CELLS
};

struct row {
    const char *name, *help;
    const char *const *labels;
    enum type type;
    enum unit unit;
    uint32_t label_count, at;
    bool is_model;
};

#define ROW(id_, name_, type_, unit_, list_, help_, model_)                                        \
    [IFD_METRIC_##id_] = {.name = name_,                                                           \
                          .help = help_,                                                           \
                          .labels = labels_##list_,                                                \
                          .type = type_,                                                           \
                          .unit = unit_,                                                           \
                          .label_count = COUNT_OF(labels_##list_),                                 \
                          .at = AT_##id_,                                                          \
                          .is_model = model_},
static const struct row rows[IFD_METRIC_COUNT] = {
#define METRIC(id, name, type, unit, labels, help) ROW(id, name, type, unit, labels, help, false)
#define MODEL_METRIC(id, name, type, unit, labels, help)                                           \
    ROW(id, name, type, unit, labels, help, true)
#include "server/obs/metric_list.inc"
#undef METRIC
#undef MODEL_METRIC
};

/* ---- cells ---- */

struct ifd_metric_set {
    struct ifd_metric_set *next; /* sorted by text */
    char *text;                  /* model="NAME",version="N", escaped; "" of the server's */
    size_t text_bytes;           /* of its memory */
    uint32_t holders;
    uint32_t cell_count;
    _Atomic uint64_t cell[];
};

/* The mutex guards the list of model sets: cells belong to the loop thread. */
struct ifd_metrics {
    struct ifd_metrics_options options;
    struct ifd_mutex mutex;
    struct ifd_metric_set *server, *models;
};

static _Atomic uint64_t *cell_of(struct ifd_metric_set *set, const struct row *row, uint32_t label)
{
    uint32_t cells = row->type == SECONDS_HISTOGRAM ? (uint32_t)CELLS_SECONDS_HISTOGRAM
                     : row->type == SIZE_HISTOGRAM  ? (uint32_t)CELLS_SIZE_HISTOGRAM
                                                    : 1;
    uint32_t at = row->at + label * cells;
    bool is_there = label < row->label_count && row->is_model == (set->text[0] != '\0');
    return is_there && at < set->cell_count ? &set->cell[at] : NULL;
}

static uint64_t read_cell(const _Atomic uint64_t *cell)
{
    return atomic_load_explicit(cell, memory_order_relaxed);
}

/* One writer: no read-modify-write is needed. */
static void raise_cell(_Atomic uint64_t *cell, uint64_t n)
{
    atomic_store_explicit(cell, read_cell(cell) + n, memory_order_relaxed);
}

void ifd_metric_add(struct ifd_metric_set *set, enum ifd_metric metric, uint32_t label, uint64_t n)
{
    _Atomic uint64_t *cell = set ? cell_of(set, &rows[metric], label) : NULL;
    if (cell) {
        raise_cell(cell, n);
    }
}

void ifd_metric_add_shared(struct ifd_metric_set *set, enum ifd_metric metric, uint32_t label,
                           uint64_t n)
{
    _Atomic uint64_t *cell = set ? cell_of(set, &rows[metric], label) : NULL;
    if (cell) {
        (void)atomic_fetch_add_explicit(cell, n, memory_order_relaxed);
    }
}

void ifd_metric_put(struct ifd_metric_set *set, enum ifd_metric metric, uint32_t label,
                    uint64_t value)
{
    _Atomic uint64_t *cell = set ? cell_of(set, &rows[metric], label) : NULL;
    if (cell) {
        atomic_store_explicit(cell, value, memory_order_relaxed);
    }
}

uint64_t ifd_metric_get(const struct ifd_metric_set *set, enum ifd_metric metric, uint32_t label)
{
    /* cell_of only finds the place */
    const _Atomic uint64_t *cell =
        set ? cell_of((struct ifd_metric_set *)(uintptr_t)set, &rows[metric], label) : NULL;
    return cell ? read_cell(cell) : 0;
}

static const struct bound *bounds_of(enum type type, uint32_t *ret_count)
{
    bool is_size = type == SIZE_HISTOGRAM;
    *ret_count = is_size ? COUNT_OF(size_bounds) : COUNT_OF(seconds_bounds);
    return is_size ? size_bounds : seconds_bounds;
}

void ifd_metric_observe(struct ifd_metric_set *set, enum ifd_metric metric, uint32_t label,
                        uint64_t value)
{
    const struct row *row = &rows[metric];
    uint32_t count = 0, i = 0;
    const struct bound *bounds = bounds_of(row->type, &count);
    _Atomic uint64_t *cell = set ? cell_of(set, row, label) : NULL;
    if (!cell) {
        return;
    }
    while (i < count && value > bounds[i].value) {
        i++;
    }
    raise_cell(&cell[i], 1);
    raise_cell(&cell[count + 1], value);
}

const char *ifd_metric_outcome(uint32_t outcome)
{
    static const char *const names[] = {
#define X(name) name,
        OUTCOMES(X)
#undef X
    };
    return outcome < COUNT_OF(names) ? names[outcome] : "?";
}

uint32_t ifd_metric_status(int status)
{
    uint32_t i = 0;
    while (i < COUNT_OF(statuses) && statuses[i] != status) {
        i++;
    }
    return i;
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
    struct ifd_metric_set *server = new_set(options->alloc, SERVER_CELLS, text, 1);
    if (!metrics || !text || !server) {
        ifd_release(options->alloc, server,
                    sizeof(*server) + SERVER_CELLS * sizeof(server->cell[0]));
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

/* Adds text as the value of a label: the format escapes three characters. */
static void add_escaped(struct ifd_buf *buf, const char *text)
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

/* The labels of a model version as a text of its own; NULL if there is no memory. */
static char *model_text(const struct ifd_alloc *alloc, const char *name, const char *version,
                        size_t *ret_bytes)
{
    struct ifd_buf buf;
    ifd_buf_init(&buf, alloc, 2 * (strlen(name) + strlen(version)) + 64);
    ifd_buf_add_text(&buf, "model=\"");
    add_escaped(&buf, name);
    ifd_buf_add_text(&buf, "\",version=\"");
    add_escaped(&buf, version);
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
        set = new_set(alloc, MODEL_CELLS, text, bytes);
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

/* ---- text ---- */

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

static void put_value(struct ifd_buf *buf, const struct row *row, uint64_t value)
{
    if (row->unit == NS) {
        put_seconds(buf, value);
    } else {
        put_u64(buf, row->unit == US ? value / 1000 : value);
    }
    ifd_buf_add(buf, "\n", 1);
}

/* Name and labels of a line, without the bracket that ends them. True: there are labels. */
static bool put_head(const struct ifd_metrics *metrics, const struct ifd_metric_set *set,
                     const struct row *row, const char *suffix, uint32_t label, struct ifd_buf *buf)
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
    if (row->labels == labels_VERSION) {
        ifd_buf_add_text(buf, "=\"");
        add_escaped(buf, metrics->options.version);
        ifd_buf_add(buf, "\"", 1);
    }
    return true;
}

static void put_name(const struct ifd_metrics *metrics, const struct ifd_metric_set *set,
                     const struct row *row, const char *suffix, uint32_t label, struct ifd_buf *buf)
{
    bool has_labels = put_head(metrics, set, row, suffix, label, buf);
    ifd_buf_add_text(buf, has_labels ? "} " : " ");
}

/* What stands at at once more. */
static void put_again(struct ifd_buf *buf, size_t at, size_t size)
{
    uint8_t *place = ifd_buf_grow(buf, size);
    if (place) {
        memcpy(place, buf->data + at, size);
    }
}

/* Buckets are most of a page, so the part that all lines of one have in common is made once. */
static void put_histogram(const struct ifd_metrics *metrics, const struct ifd_metric_set *set,
                          const struct row *row, uint32_t label, const _Atomic uint64_t *cell,
                          struct ifd_buf *buf)
{
    uint32_t count = 0;
    uint64_t total = 0;
    const struct bound *bounds = bounds_of(row->type, &count);
    size_t at = buf->size;
    bool has_labels = put_head(metrics, set, row, "_bucket", label, buf);
    ifd_buf_add_text(buf, has_labels ? ",le=\"" : "{le=\"");
    size_t head = buf->size - at;
    for (uint32_t i = 0; i <= count; i++) {
        if (i > 0) {
            put_again(buf, at, head);
        }
        total += read_cell(&cell[i]);
        ifd_buf_add_text(buf, i < count ? bounds[i].text : "+Inf");
        ifd_buf_add(buf, "\"} ", 3);
        put_u64(buf, total);
        ifd_buf_add(buf, "\n", 1);
    }
    put_name(metrics, set, row, "_sum", label, buf);
    put_value(buf, row, read_cell(&cell[count + 1]));
    put_name(metrics, set, row, "_count", label, buf);
    put_u64(buf, total);
    ifd_buf_add(buf, "\n", 1);
}

static void put_set(const struct ifd_metrics *metrics, const struct ifd_metric_set *set,
                    const struct row *row, struct ifd_buf *buf)
{
    for (uint32_t label = 0; label < row->label_count; label++) {
        const _Atomic uint64_t *cell = cell_of((struct ifd_metric_set *)(uintptr_t)set, row, label);
        if (row->type == SECONDS_HISTOGRAM || row->type == SIZE_HISTOGRAM) {
            put_histogram(metrics, set, row, label, cell, buf);
        } else {
            put_name(metrics, set, row, "", label, buf);
            put_value(buf, row, read_cell(cell));
        }
    }
}

static void put_row(const struct ifd_metrics *metrics, const struct row *row, struct ifd_buf *buf)
{
    static const char *const types[] = {"counter", "gauge", "histogram", "histogram"};
    const char *const line[] = {"# HELP ", row->name, " ", row->help,        "\n",
                                "# TYPE ", row->name, " ", types[row->type], "\n"};
    for (size_t i = 0; i < COUNT_OF(line); i++) {
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
        bool is_triton = strncmp(rows[i].name, "nv_", 3) == 0;
        bool has_sets = !rows[i].is_model || metrics->models;
        if (has_sets && (metrics->options.triton_names || !is_triton)) {
            put_row(metrics, &rows[i], buf);
        }
    }
    ifd_mutex_unlock(&metrics->mutex);
}

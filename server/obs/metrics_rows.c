/* metric_list.inc as a table: names, labels, histogram bounds, and the place of a row's cells in
 * its set. */
#include "server/model/desc.h"
#include "server/obs/metrics_impl.h"

/* ---- histograms ---- */

/* Upper bounds, printed and in nanoseconds: three steps per decade, from a fast answer to a
 * client's patience; more from 10 to 250 ms, where most objectives lie. */
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
    X("0.015", 15000000)                                                                           \
    X("0.02", 20000000)                                                                            \
    X("0.025", 25000000)                                                                           \
    X("0.035", 35000000)                                                                           \
    X("0.05", 50000000)                                                                            \
    X("0.075", 75000000)                                                                           \
    X("0.1", 100000000)                                                                            \
    X("0.15", 150000000)                                                                           \
    X("0.2", 200000000)                                                                            \
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

#define X(text_, value_) {.text = text_, .value = UINT64_C(value_)},
static const struct ifd_metric_bound seconds_bounds[] = {SECONDS_BOUNDS(X)};
static const struct ifd_metric_bound size_bounds[] = {SIZE_BOUNDS(X)};
#undef X

/* ---- labels ---- */

static const char *const labels_NONE[] = {""};
static const char *const labels_VERSION[] = {"version"}; /* the value is the program's */
#define X(id, label) "outcome=\"" label "\"",
static const char *const labels_OUTCOME[] = {IFD_OUTCOMES(X)};
#undef X
#define X(id, name) "limit=\"" name "\"",
static const char *const labels_LIMIT[] = {IFD_LIMITS(X)};
#undef X
#define X(id, label) "stage=\"" label "\"",
static const char *const labels_STAGE[] = {IFD_STAGES(X)};
#undef X
#define X(id, label) "result=\"" label "\"",
static const char *const labels_FRAME[] = {IFD_FRAME_RESULTS(X)};
#undef X
#define X(id, label) "reason=\"" label "\"",
static const char *const labels_REFUSAL[] = {IFD_REFUSALS(X)};
static const char *const labels_DENIAL[] = {IFD_DENIALS(X)};
static const char *const labels_NV_REASON[] = {IFD_NV_REASONS(X)};
#undef X
#define X(id, label) "kind=\"" label "\"",
static const char *const labels_MEMORY[] = {IFD_MEMORY_KINDS(X)};
#undef X
#define X(id, label, text) "state=\"" label "\"",
static const char *const labels_STATE[] = {IFD_MODEL_STATES(X)};
#undef X
#define X(id, name, meaning) "result=\"" name "\"",
static const char *const labels_RESULT[] = {IFD_CODES(X)};
#undef X

#define STATUSES(X)                                                                                \
    X(200)                                                                                         \
    X(204)                                                                                         \
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

/* ---- rows ---- */

/* Cells of one label. */
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

#define BOUNDS_COUNTER           NULL, .bound_count = 0
#define BOUNDS_GAUGE             NULL, .bound_count = 0
#define BOUNDS_SECONDS_HISTOGRAM seconds_bounds, .bound_count = COUNT_OF(seconds_bounds)
#define BOUNDS_SIZE_HISTOGRAM    size_bounds, .bound_count = COUNT_OF(size_bounds)
#define ROW(id_, name_, type_, unit_, list_, help_, model_)                                        \
    [IFD_METRIC_##id_] = {.name = name_,                                                           \
                          .help = help_,                                                           \
                          .labels = labels_##list_,                                                \
                          .bounds = BOUNDS_##type_,                                                \
                          .type = IFD_TYPE_##type_,                                                \
                          .unit = IFD_UNIT_##unit_,                                                \
                          .label_count = COUNT_OF(labels_##list_),                                 \
                          .cells = CELLS_##type_,                                                  \
                          .at = AT_##id_,                                                          \
                          .is_model = model_},
const struct ifd_metric_row ifd_metric_rows[IFD_METRIC_COUNT] = {
#define METRIC(id, name, type, unit, labels, help) ROW(id, name, type, unit, labels, help, false)
#define MODEL_METRIC(id, name, type, unit, labels, help)                                           \
    ROW(id, name, type, unit, labels, help, true)
#include "server/obs/metric_list.inc"
#undef METRIC
#undef MODEL_METRIC
};

const uint32_t ifd_metric_server_cells = SERVER_CELLS, ifd_metric_model_cells = MODEL_CELLS;

/* ---- labels by value ---- */

const char *ifd_metric_outcome(enum ifd_outcome outcome)
{
    static const char *const names[] = {
#define X(id, label) label,
        IFD_OUTCOMES(X)
#undef X
    };
    return names[outcome];
}

uint32_t ifd_metric_status(int status)
{
    uint32_t i = 0;
    while (i < COUNT_OF(statuses) && statuses[i] != status) {
        i++;
    }
    return i;
}

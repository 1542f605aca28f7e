/* Inputs and outputs of the model: names from tensors; descriptions, normalization and labels
 * from metadata. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/str.h"
#include "engine/parse/tflite/archive.h"
#include "engine/parse/tflite/tflite_impl.h"

#define METADATA_NAME     "TFLITE_METADATA"
#define LABEL_FILE_BYTES  ((size_t)4 << 20)  /* one file */
#define LABEL_TOTAL_BYTES ((size_t)16 << 20) /* all files of a model */
#define LABEL_COUNT       100000u            /* one file */

struct ports {
    const struct ifd_tflite_model *model;
    struct ifd_bytes file;
    const struct ifd_graph *graph;
    size_t label_bytes_left;
    struct ifd_err *err;
};

/* A tensor without a name gets one: clients address ports by name. */
static enum ifd_code name_port(const struct ports *p, int32_t tensor, const char *kind,
                               uint32_t index, struct ifd_port *port)
{
    struct ifd_arena *arena = p->graph->arena;
    const char *name = p->model->subgraph[0].tensor[tensor].name;
    char text[32];
    if (name[0] == '\0') {
        (void)snprintf(text, sizeof(text), "%s_%u", kind, index);
        name = text;
    }
    port->name = ifd_arena_text(arena, name, strlen(name));
    return port->name ? IFD_OK : ifd_arena_fail(arena, strlen(name), p->err);
}

static enum ifd_code name_ports(const struct ports *p, const struct ifd_tflite_ints *tensors,
                                const char *kind, struct ifd_port **ret)
{
    const uint32_t count = tensors->count;
    struct ifd_arena *arena = p->graph->arena;
    struct ifd_port *port = ifd_arena_take_array(arena, count, sizeof(*port));
    if (!port) {
        return ifd_arena_fail(arena, (size_t)count * sizeof(*port), p->err);
    }
    for (uint32_t i = 0; i < count; i++) {
        enum ifd_code code = name_port(p, tensors->value[i], kind, i, &port[i]);
        if (code != IFD_OK) {
            return code;
        }
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(port[k].name, port[i].name) == 0) {
                return ifd_fail(p->err, IFD_UNSUPPORTED,
                                "%ss %u and %u of the model share the name " NAME_FORMAT, kind, k,
                                i, port[i].name);
            }
        }
    }
    *ret = port;
    return IFD_OK;
}

/* ---- metadata ---- */

static enum ifd_code read_normalization(const struct ports *p,
                                        const struct ifd_tflite_port_info *info,
                                        struct ifd_port *port)
{
    const uint32_t max_count = sizeof(port->mean) / sizeof(port->mean[0]);
    if (info->mean_count == 0 && info->std_count == 0) {
        return IFD_OK;
    }
    if (info->mean_count != info->std_count || info->mean_count > max_count) {
        return ifd_fail(p->err, IFD_CORRUPT,
                        "%u means and %u deviations, expected up to %u of each", info->mean_count,
                        info->std_count, max_count);
    }
    for (uint32_t i = 0; i < info->mean_count; i++) {
        if (!isfinite(info->mean[i]) || !isfinite(info->std[i]) || info->std[i] == 0) {
            return ifd_fail(p->err, IFD_CORRUPT, "mean %g, deviation %g", (double)info->mean[i],
                            (double)info->std[i]);
        }
        port->mean[i] = info->mean[i];
        port->std[i] = info->std[i];
    }
    port->has_normalization = true;
    port->normalization_count = info->mean_count;
    return IFD_OK;
}

/* Reads a description, which may have several lines. Leaves *ret if there is none. */
static enum ifd_code read_text(const struct ports *p, const char *text, const char **ret)
{
    if (text[0] == '\0') {
        return IFD_OK;
    }
    if (!ifd_str_is_utf8(ifd_str(text))) {
        return ifd_fail(p->err, IFD_CORRUPT, "a description is not UTF-8");
    }
    *ret = text;
    return IFD_OK;
}

/* Splits a copy of text into lines: every line break becomes a NUL. The last line may lack its
 * line break. */
static enum ifd_code split_lines(const struct ports *p, struct ifd_bytes text,
                                 struct ifd_port *port)
{
    struct ifd_arena *arena = p->graph->arena;
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++) {
        count += text.data[i] == '\n' || i + 1 == text.size;
    }
    if (count > LABEL_COUNT) {
        return ifd_fail(p->err, IFD_TOO_LARGE, "%zu labels, limit %u", count, LABEL_COUNT);
    }
    const char **label = ifd_arena_take_array(arena, count, sizeof(*label));
    char *copy = ifd_arena_text(arena, (const char *)text.data, text.size);
    if (!label || !copy) {
        return ifd_arena_fail(arena, text.size + count * sizeof(*label), p->err);
    }
    char *line = copy;
    for (size_t i = 0; i < count; i++) {
        char *end = memchr(line, '\n', (size_t)(copy + text.size - line));
        char *next = end ? end + 1 : copy + text.size;
        end = end ? end : next;
        if (end > line && end[-1] == '\r') {
            end--;
        }
        *end = '\0';
        label[i] = line;
        line = next;
    }
    port->labels = label;
    port->label_count = (uint32_t)count;
    return IFD_OK;
}

/* Without an archive there are no labels; a damaged archive is an error. */
static enum ifd_code read_labels(struct ports *p, const struct ifd_tflite_port_info *info,
                                 struct ifd_port *port)
{
    struct ifd_bytes text = {0};
    if (info->label_file[0] == '\0') {
        return IFD_OK;
    }
    if (!ifd_tflite_is_plain(info->label_file)) {
        return ifd_fail(p->err, IFD_CORRUPT, "the label file's name is not plain text");
    }
    size_t limit = LABEL_FILE_BYTES < p->label_bytes_left ? LABEL_FILE_BYTES : p->label_bytes_left;
    enum ifd_code code =
        ifd_archive_read(p->file, info->label_file, limit, p->graph->arena, &text, p->err);
    if (code != IFD_OK || text.size == 0) {
        return code;
    }
    p->label_bytes_left -= text.size;
    if (!ifd_str_is_utf8((struct ifd_str){.data = (const char *)text.data, .size = text.size}) ||
        memchr(text.data, '\0', text.size)) {
        return ifd_fail(p->err, IFD_CORRUPT, "label file " NAME_FORMAT " is not text in UTF-8",
                        info->label_file);
    }
    return split_lines(p, text, port);
}

static enum ifd_code describe(struct ports *p, const struct ifd_tflite_port_info *info,
                              uint32_t info_count, struct ifd_port *port, uint32_t count,
                              bool is_input)
{
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < count && i < info_count; i++) {
        code = read_text(p, info[i].description, &port[i].description);
        if (code == IFD_OK) {
            code = is_input ? read_normalization(p, &info[i], &port[i])
                            : read_labels(p, &info[i], &port[i]);
        }
        if (code != IFD_OK) {
            ifd_err_prefix(p->err, "metadata of " NAME_FORMAT, port[i].name);
        }
    }
    return code;
}

static enum ifd_code read_metadata(struct ports *p, const struct ifd_tflite_buffer *buffer,
                                   struct ifd_parsed *parsed)
{
    struct ifd_bytes content = {0};
    struct ifd_tflite_info info = {0};
    if (!ifd_tflite_content(buffer, p->file, &content)) {
        return ifd_fail(p->err, IFD_CORRUPT, "metadata lies outside the file");
    }
    enum ifd_code code = ifd_tflite_read_info(content, p->graph->arena, &info, p->err);
    if (code != IFD_OK) {
        return code;
    }
    code = read_text(p, info.description, &parsed->description);
    if (code != IFD_OK) {
        return code;
    }
    code = describe(p, info.input, info.input_count, parsed->input, p->graph->input_count, true);
    if (code == IFD_OK) {
        code = describe(p, info.output, info.output_count, parsed->output, p->graph->output_count,
                        false);
    }
    return code;
}

enum ifd_code ifd_tflite_ports(const struct ifd_tflite_model *model, struct ifd_bytes file,
                               const struct ifd_graph *graph, struct ifd_parsed *ret,
                               struct ifd_err *err)
{
    struct ports p = {.model = model,
                      .file = file,
                      .graph = graph,
                      .label_bytes_left = LABEL_TOTAL_BYTES,
                      .err = err};
    struct ifd_parsed parsed = {
        .format = "tflite", .format_version = model->version, .description = ""};
    enum ifd_code code = read_text(&p, model->description, &parsed.description);
    if (code == IFD_OK) {
        code = name_ports(&p, &model->subgraph[0].input, "input", &parsed.input);
    }
    if (code == IFD_OK) {
        code = name_ports(&p, &model->subgraph[0].output, "output", &parsed.output);
    }
    for (uint32_t i = 0; code == IFD_OK && i < model->metadata_count; i++) {
        if (strcmp(model->metadata[i].name, METADATA_NAME) == 0) {
            code = read_metadata(&p, &model->buffer[model->metadata[i].buffer], &parsed);
            break;
        }
    }
    if (code == IFD_OK) {
        parsed.opens_first = ret->opens_first;
        parsed.opens_others = ret->opens_others;
        parsed.is_bound = ret->is_bound;
        *ret = parsed;
    }
    return code;
}

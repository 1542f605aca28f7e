/* Inputs and outputs of the model: names from tensors; descriptions, normalization and labels
 * from metadata. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/str.h"
#include "engine/parse/tflite/archive.h"
#include "engine/parse/tflite/tflite_build.h"

#define METADATA_NAME     "TFLITE_METADATA"
#define LABEL_FILE_BYTES  ((size_t)4 << 20)  /* one file */
#define LABEL_TOTAL_BYTES ((size_t)16 << 20) /* all files of a model */
#define LABEL_COUNT       100000u            /* one file */

struct ports {
    struct ifd_tflite_build *b;
    const struct ifd_graph *graph;
    size_t label_bytes_left;
    struct ifd_err *err;
};

/* A tensor without a name gets one: clients address ports by name. */
static enum ifd_code name_port(const struct ports *p, const char *name, const char *kind,
                               uint32_t index, struct ifd_port *port)
{
    struct ifd_arena *arena = p->graph->arena;
    char text[32];
    if (name[0] == '\0') {
        (void)snprintf(text, sizeof(text), "%s_%u", kind, index);
        name = text;
    }
    port->name = ifd_arena_text(arena, name, strlen(name));
    return port->name ? IFD_OK : ifd_arena_fail(arena, strlen(name), p->err);
}

static bool is_taken(const struct ifd_port *port, uint32_t count, const char *name, uint32_t *ret)
{
    for (*ret = 0; *ret < count; (*ret)++) {
        if (strcmp(port[*ret].name, name) == 0) {
            return true;
        }
    }
    return false;
}

void ifd_tflite_list_signatures(const struct ifd_tflite_model *model, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < model->signature_count && used < size; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s" NAME_FORMAT, i > 0 ? ", " : "",
                                 model->signature[i].key);
    }
}

static enum ifd_code copy_signatures(const struct ports *p, const char **ret)
{
    char text[IFD_ERR_TEXT_BYTES / 2] = "";
    if (p->b->model->signature_count > 1) {
        ifd_tflite_list_signatures(p->b->model, text, sizeof(text));
    }
    *ret = ifd_arena_text(p->graph->arena, text, strlen(text));
    return *ret ? IFD_OK : ifd_arena_fail(p->graph->arena, strlen(text), p->err);
}

/* A tensor that is listed twice has two names, perhaps. */
const char *ifd_tflite_signature_name(const struct ifd_tflite_build *b,
                                      const struct ifd_tflite_ints *tensors, bool is_output,
                                      uint32_t index)
{
    const struct ifd_tflite_signature *s = b->signature;
    const struct ifd_tflite_map *map = !s ? NULL : is_output ? s->output : s->input;
    const uint32_t count = !s ? 0 : is_output ? s->output_count : s->input_count;
    uint32_t before = 0;
    for (uint32_t i = 0; i < index; i++) {
        before += tensors->value[i] == tensors->value[index];
    }
    for (uint32_t i = 0; i < count; i++) {
        if (map[i].tensor == (uint32_t)tensors->value[index] && before-- == 0) {
            return map[i].name;
        }
    }
    return NULL;
}

static enum ifd_code name_by_signature(const struct ports *p, const struct ifd_tflite_ints *tensors,
                                       bool is_output, uint32_t index, struct ifd_port *port)
{
    const char *name = ifd_tflite_signature_name(p->b, tensors, is_output, index);
    if (!name) {
        return IFD_OK;
    }
    port->signature_name = ifd_arena_text(p->graph->arena, name, strlen(name));
    return port->signature_name ? IFD_OK : ifd_arena_fail(p->graph->arena, strlen(name), p->err);
}

/* The file's tensors, then the states, whose names give way, as that of an output that comes again
 * does. */
static enum ifd_code name_ports(const struct ports *p, const struct ifd_tflite_ints *tensors,
                                const char *kind, struct ifd_port **ret)
{
    const uint32_t states = ifd_tflite_state_count(p->b);
    const uint32_t count = tensors->count + states;
    struct ifd_arena *arena = p->graph->arena;
    struct ifd_port *port = ifd_arena_take_array(arena, count, sizeof(*port));
    if (!port) {
        return ifd_arena_fail(arena, (size_t)count * sizeof(*port), p->err);
    }
    enum ifd_code code = IFD_OK;
    uint32_t twin = 0;
    for (uint32_t i = 0; code == IFD_OK && i < count; i++) {
        const bool is_state = i >= tensors->count;
        const char *name = is_state ? p->b->state[i - tensors->count].name
                                    : p->b->g->tensor[tensors->value[i]].name;
        const bool may_give_way = is_state || tensors == &p->b->g->output;
        const bool gives_way = may_give_way && is_taken(port, i, name, &twin);
        code = name_port(p, gives_way ? "" : name, is_state ? "state" : kind,
                         is_state ? i - tensors->count : i, &port[i]);
        if (code == IFD_OK && !is_state) {
            code = name_by_signature(p, tensors, tensors == &p->b->g->output, i, &port[i]);
        }
        if (code == IFD_OK && is_taken(port, i, port[i].name, &twin)) {
            return ifd_fail(p->err, IFD_UNSUPPORTED,
                            "%ss %u and %u of the model share the name " NAME_FORMAT, kind, twin, i,
                            port[i].name);
        }
    }
    *ret = port;
    return code;
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
        ifd_archive_read(p->b->file, info->label_file, limit, p->graph->arena, &text, p->err);
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

/* Metadata are those of the file's inputs or outputs, in their order. */
static enum ifd_code describe(struct ports *p, const struct ifd_tflite_port_info *info,
                              uint32_t info_count, struct ifd_port *port, bool is_input)
{
    const struct ifd_tflite_ints *tensors = is_input ? &p->b->g->input : &p->b->g->output;
    struct ifd_bytes content = {0};
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < tensors->count && i < info_count; i++) {
        if (is_input && ifd_tflite_has_content(p->b, (uint32_t)tensors->value[i], &content)) {
            continue; /* no port */
        }
        code = read_text(p, info[i].description, &port->description);
        if (code == IFD_OK) {
            code =
                is_input ? read_normalization(p, &info[i], port) : read_labels(p, &info[i], port);
        }
        if (code != IFD_OK) {
            ifd_err_prefix(p->err, "metadata of " NAME_FORMAT, port->name);
        }
        port++;
    }
    return code;
}

static enum ifd_code read_metadata(struct ports *p, const struct ifd_tflite_buffer *buffer,
                                   struct ifd_parsed *parsed)
{
    struct ifd_bytes content = {0};
    struct ifd_tflite_info info = {0};
    if (!ifd_tflite_content(buffer, p->b->file, &content)) {
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
    code = describe(p, info.input, info.input_count, parsed->input, true);
    if (code == IFD_OK) {
        code = describe(p, info.output, info.output_count, parsed->result, false);
    }
    return code;
}

static enum ifd_code find_metadata(struct ports *p, struct ifd_parsed *parsed)
{
    const struct ifd_tflite_model *model = p->b->model;
    if (p->b->g != &model->subgraph[0] || p->b->options->resume) {
        return IFD_OK; /* it describes the first */
    }
    for (uint32_t i = 0; i < model->metadata_count; i++) {
        if (strcmp(model->metadata[i].name, METADATA_NAME) == 0) {
            return read_metadata(p, &model->buffer[model->metadata[i].buffer], parsed);
        }
    }
    return IFD_OK;
}

static enum ifd_code take_unnamed(const struct ports *p, uint32_t count, struct ifd_port **ret)
{
    struct ifd_arena *arena = p->graph->arena;
    *ret = ifd_arena_take_array(arena, count, sizeof(**ret));
    for (uint32_t i = 0; *ret && i < count; i++) {
        (*ret)[i].name = "";
    }
    return *ret ? IFD_OK : ifd_arena_fail(arena, count * sizeof(**ret), p->err);
}

/* What only a run finds, the file says: type and number of dimensions of a result, and which of
 * these are open; without a signature all of them. */
static enum ifd_code describe_results(const struct ports *p, struct ifd_port *port)
{
    const struct ifd_tflite_ints *tensors = &p->b->g->output;
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < tensors->count; i++) {
        const struct ifd_tflite_tensor *t = &p->b->g->tensor[tensors->value[i]];
        code = ifd_tflite_describe(p->b, t, &port[i].desc);
        for (uint32_t d = 0; t->signature.count == 0 && d < port[i].desc.shape.rank; d++) {
            port[i].desc.shape.dim[d] = IFD_DIM_ANY;
        }
        port[i].desc.shape = ifd_tflite_declared(t, &port[i].desc.shape);
    }
    for (uint32_t i = 0; i < ifd_tflite_state_count(p->b); i++) {
        port[tensors->count + i].desc = p->b->state[i].like;
    }
    return code;
}

enum ifd_code ifd_tflite_ports(struct ifd_tflite_build *b, struct ifd_parsed *ret)
{
    const struct ifd_tflite_model *model = b->model;
    const uint32_t states = ifd_tflite_state_count(b);
    struct ports p = {
        .b = b, .graph = b->main, .label_bytes_left = LABEL_TOTAL_BYTES, .err = b->err};
    struct ifd_parsed parsed = *ret;
    parsed.format = "tflite";
    parsed.format_version = model->version;
    parsed.description = "";
    parsed.state_count = states;
    enum ifd_code code = copy_signatures(&p, &parsed.signatures);
    if (code == IFD_OK) {
        code = read_text(&p, model->description, &parsed.description);
    }
    if (code == IFD_OK) {
        code = b->options->resume ? take_unnamed(&p, p.graph->input_count, &parsed.input)
                                  : name_ports(&p, &b->input, "input", &parsed.input);
    }
    if (code == IFD_OK) {
        code = name_ports(&p, &b->g->output, "output", &parsed.output);
    }
    parsed.result = parsed.output;
    parsed.result_count = b->g->output.count + states;
    if (code == IFD_OK && parsed.cut.is_cut) {
        code = describe_results(&p, parsed.result);
        code = code == IFD_OK ? take_unnamed(&p, p.graph->output_count, &parsed.output) : code;
    }
    for (uint32_t i = 0; code == IFD_OK && i < states && !b->options->resume; i++) {
        parsed.input[b->input.count + i].begin = b->state[i].begin;
    }
    if (code == IFD_OK) {
        code = find_metadata(&p, &parsed);
    }
    if (code == IFD_OK) {
        *ret = parsed;
    }
    return code;
}

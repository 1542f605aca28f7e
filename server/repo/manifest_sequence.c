/* sequence_batching of a model config: states and control inputs. */
#include "server/repo/manifest_impl.h"

#include <stddef.h>
#include <string.h>

#include "engine/base/str.h"

/* ---- states ---- */

/* zero_data is how every state begins. */
static const struct ifd_field_row initial_rows[] = {
    {"name", NULL, 0},
    {"data_type", NULL, 0},
    {"dims", NULL, 0},
    {"zero_data", NULL, 0},
    {"data_file", ifd_field_refuse, 0},
};

static enum ifd_code read_initial(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    const struct ifd_fields quiet = {.file = c->file, .arena = c->arena, .err = c->err};
    struct ifd_fields own = quiet;
    return IFD_READ_MESSAGE(&own, f, initial_rows, at);
}

static const struct ifd_field_row state_rows[] = {
    {"input_name", ifd_field_text, offsetof(struct ifd_state_info, tensor.name)},
    {"output_name", ifd_field_text, offsetof(struct ifd_state_info, output_name)},
    {"data_type", ifd_manifest_read_dtype, 0},
    {"dims", ifd_manifest_read_dim, IFD_FIELD_EACH},
    {"initial_state", read_initial, IFD_FIELD_EACH},
    {"use_same_buffer_for_input_output", NULL, 0},
    {"use_growable_memory", NULL, 0},
};

static enum ifd_code read_state(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_model_desc *m = at;
    if (m->state_count == IFD_MANIFEST_TENSORS_MAX) {
        return ifd_fail(c->err, IFD_TOO_LARGE, "%s:%u: more than %d states", c->file, f->line,
                        IFD_MANIFEST_TENSORS_MAX);
    }
    struct ifd_state_info *grown = ifd_field_append(c, m->state, &m->state_count, sizeof(*grown));
    if (!grown) {
        return ifd_arena_fail(c->arena, sizeof(*grown), c->err);
    }
    m->state = grown;
    struct ifd_state_info *state = &grown[m->state_count - 1];
    *state = (struct ifd_state_info){.tensor = {.name = "", .label_filename = "", .line = f->line},
                                     .output_name = ""};
    return IFD_READ_MESSAGE(c, f, state_rows, state);
}

/* ---- control inputs ---- */

static enum ifd_code read_kind(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    static const char *const names[] = {
        [IFD_CONTROL_START] = "CONTROL_SEQUENCE_START",
        [IFD_CONTROL_END] = "CONTROL_SEQUENCE_END",
        [IFD_CONTROL_READY] = "CONTROL_SEQUENCE_READY",
        [IFD_CONTROL_ID] = "CONTROL_SEQUENCE_CORRID",
    };
    for (int i = 0; i <= IFD_CONTROL_ID; i++) {
        if (strcmp(f->text, names[i]) == 0) {
            *(enum ifd_control_kind *)at = (enum ifd_control_kind)i;
            return IFD_OK;
        }
    }
    return ifd_field_fail(c, f, "CONTROL_SEQUENCE_START, _END, _READY or _CORRID");
}

/* One of two numbers, false's and true's. */
static enum ifd_code read_value(struct ifd_fields *c, const struct ifd_text_field *f, void *at,
                                enum ifd_dtype dtype)
{
    struct ifd_control_info *control = at;
    double value = 0;
    const bool is_bool =
        dtype == IFD_BOOL && (strcmp(f->text, "true") == 0 || strcmp(f->text, "false") == 0);
    if (control->value_count == 2 ||
        (control->tensor.has_dtype && control->tensor.dtype != dtype)) {
        return ifd_field_fail(c, f, "two numbers of one type");
    }
    if (is_bool) {
        value = f->text[0] == 't';
    } else if (!ifd_str_f64(ifd_str(f->text), &value) ||
               (dtype == IFD_S32 &&
                (value < INT32_MIN || value > INT32_MAX || value != (double)(int32_t)value))) {
        return ifd_field_fail(c, f, "a number of its type");
    }
    control->tensor.dtype = dtype;
    control->tensor.has_dtype = true;
    control->value[control->value_count++] = value;
    return IFD_OK;
}

static enum ifd_code read_int32(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    return read_value(c, f, at, IFD_S32);
}

static enum ifd_code read_fp32(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    return read_value(c, f, at, IFD_F32);
}

static enum ifd_code read_bool(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    return read_value(c, f, at, IFD_BOOL);
}

static enum ifd_code read_id_type(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_control_info *control = at;
    return ifd_manifest_read_dtype(c, f, &control->tensor);
}

static const struct ifd_field_row control_rows[] = {
    {"kind", read_kind, offsetof(struct ifd_control_info, kind)},
    {"int32_false_true", read_int32, IFD_FIELD_EACH},
    {"fp32_false_true", read_fp32, IFD_FIELD_EACH},
    {"bool_false_true", read_bool, IFD_FIELD_EACH},
    {"data_type", read_id_type, IFD_FIELD_EACH},
};

static enum ifd_code read_control(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    struct ifd_control_info *control = at;
    if (control->is_read) {
        return ifd_fail(c->err, IFD_UNSUPPORTED, "%s:%u: two controls of one input", c->file,
                        f->line);
    }
    control->is_read = true;
    return IFD_READ_MESSAGE(c, f, control_rows, control);
}

static const struct ifd_field_row control_input_rows[] = {
    {"name", ifd_field_text, offsetof(struct ifd_control_info, tensor.name)},
    {"control", read_control, IFD_FIELD_EACH},
};

/* What a control says is complete and of a type that the server can make. */
static enum ifd_code check_control(struct ifd_fields *c, const struct ifd_text_field *f,
                                   const struct ifd_control_info *control)
{
    const uint32_t numbers =
        IFD_BIT(IFD_U64) | IFD_BIT(IFD_S64) | IFD_BIT(IFD_U32) | IFD_BIT(IFD_S32);
    const bool is_id = control->kind == IFD_CONTROL_ID;
    if (control->tensor.name[0] == '\0' || !control->is_read || !control->tensor.has_dtype ||
        control->value_count != (is_id ? 0 : 2)) {
        return ifd_fail(c->err, IFD_INVALID,
                        "%s:%u: control_input needs a name and a control of a kind with %s",
                        c->file, f->line, is_id ? "data_type" : "two values");
    }
    if (is_id && !(numbers & IFD_BIT(control->tensor.dtype))) {
        return ifd_fail(c->err, IFD_UNSUPPORTED,
                        "%s:%u: CONTROL_SEQUENCE_CORRID of type %s, expected a whole number of 32 "
                        "or 64 bits",
                        c->file, f->line, ifd_dtype_wire_name(control->tensor.dtype));
    }
    return IFD_OK;
}

static enum ifd_code read_control_input(struct ifd_fields *c, const struct ifd_text_field *f,
                                        void *at)
{
    struct ifd_model_desc *m = at;
    if (m->control_count == IFD_MANIFEST_TENSORS_MAX) {
        return ifd_fail(c->err, IFD_TOO_LARGE, "%s:%u: more than %d control inputs", c->file,
                        f->line, IFD_MANIFEST_TENSORS_MAX);
    }
    struct ifd_control_info *grown =
        ifd_field_append(c, m->control, &m->control_count, sizeof(*grown));
    if (!grown) {
        return ifd_arena_fail(c->arena, sizeof(*grown), c->err);
    }
    m->control = grown;
    struct ifd_control_info *control = &grown[m->control_count - 1];
    *control =
        (struct ifd_control_info){.tensor = {.name = "", .label_filename = "", .line = f->line}};
    const enum ifd_code code = IFD_READ_MESSAGE(c, f, control_input_rows, control);
    return code ? code : check_control(c, f, control);
}

/* ---- the message ---- */

static const struct ifd_field_row oldest_rows[] = {
    {"max_candidate_sequences", ifd_field_u32, offsetof(struct ifd_model_desc, max_sequences)},
    {"preferred_batch_size", NULL, 0},
    {"max_queue_delay_microseconds", NULL, 0},
    {"preserve_ordering", NULL, 0},
};

static enum ifd_code read_oldest(struct ifd_fields *c, const struct ifd_text_field *f, void *at)
{
    return IFD_READ_MESSAGE(c, f, oldest_rows, at);
}

static const struct ifd_field_row sequence_rows[] = {
    {"max_sequence_idle_microseconds", ifd_field_u64,
     offsetof(struct ifd_model_desc, max_sequence_idle_us)},
    {"state", read_state, IFD_FIELD_EACH},
    {"control_input", read_control_input, IFD_FIELD_EACH},
    {"direct", NULL, 0},
    {"oldest", read_oldest, IFD_FIELD_EACH},
    {"iterative_sequence", ifd_field_refuse_true, 0},
    {"generative_sequence", ifd_field_refuse_true, 0},
};

enum ifd_code ifd_manifest_read_sequences(struct ifd_fields *c, const struct ifd_text_field *f,
                                          void *at)
{
    struct ifd_model_desc *m = at;
    m->has_sequences = true;
    return IFD_READ_MESSAGE(c, f, sequence_rows, at);
}

/* Finds pairs of an input and an output that look like a state, by their names or by their shapes,
 * and proposes them in a config. */
#include "server/init_state.h"

#include <ctype.h>
#include <string.h>

#define STATES_MAX 64
#define STEM_BYTES 96

/* ---- names ---- */

/* What sets the names of a state before and behind a run apart. */
static const char *const before[] = {"in",   "input", "inputs", "i",        "init", "initial",
                                     "past", "prev",  "old",    "previous", "last"};
static const char *const behind[] = {"out", "output",  "outputs", "o",       "new",  "next",
                                     "n",   "present", "current", "updated", "curr", "final"};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool is_marker(const char *word, size_t size, bool is_output)
{
    const char *const *list = is_output ? behind : before;
    const size_t count = is_output ? COUNT(behind) : COUNT(before);
    for (size_t i = 0; i < count; i++) {
        if (strlen(list[i]) == size && memcmp(word, list[i], size) == 0) {
            return true;
        }
    }
    return false;
}

/* Kinds of characters, at whose changes words end: small letters behind a capital are its word. */
enum kind { OTHER, DIGIT, CAPITAL, SMALL };

static enum kind kind_of(char c)
{
    return isdigit((unsigned char)c)   ? DIGIT
           : isupper((unsigned char)c) ? CAPITAL
           : isalpha((unsigned char)c) ? SMALL
                                       : OTHER;
}

/* The next word of a name in small letters; 0 at its end. */
static size_t next_word(const char **at, char ret[STEM_BYTES])
{
    size_t size = 0;
    while (**at != '\0' && kind_of(**at) == OTHER) {
        (*at)++;
    }
    for (enum kind last = kind_of(**at); **at != '\0' && size + 1 < STEM_BYTES; (*at)++) {
        const enum kind kind = kind_of(**at);
        if (kind != last && !(last == CAPITAL && kind == SMALL)) {
            break;
        }
        ret[size++] = (char)tolower((unsigned char)**at);
        last = kind;
    }
    ret[size] = '\0';
    return size;
}

/* The words of a name without those that set it apart, each behind a space. False: no letter is
 * left, or the name is too long. ret_is_marked: there were some. */
static bool take_stem(const char *name, bool is_output, char ret[STEM_BYTES], bool *ret_is_marked)
{
    char word[STEM_BYTES];
    bool has_letter = false;
    *ret_is_marked = false;
    size_t used = 0, size;
    while ((size = next_word(&name, word)) > 0) {
        if (is_marker(word, size, is_output)) {
            *ret_is_marked = true;
            continue;
        }
        if (used + size + 2 > STEM_BYTES) {
            return false;
        }
        ret[used++] = ' ';
        memcpy(ret + used, word, size);
        used += size;
        has_letter = has_letter || isalpha((unsigned char)word[0]);
    }
    ret[used] = '\0';
    return has_letter;
}

/* Such as x_in and x_out, past_x and present_x, and unless both are to be marked state and stateN,
 * h0 and hn. */
static bool names_pair(const char *input, const char *output, bool are_marked)
{
    char in[STEM_BYTES], out[STEM_BYTES];
    bool in_is_marked, out_is_marked;
    if (!take_stem(input, false, in, &in_is_marked) ||
        !take_stem(output, true, out, &out_is_marked) ||
        (are_marked && (!in_is_marked || !out_is_marked))) {
        return false;
    }
    const size_t in_size = strlen(in), out_size = strlen(out);
    if (strcmp(in, out) == 0) {
        return true;
    }
    const bool is_first = in_size > 2 && strcmp(in + in_size - 2, " 0") == 0;
    const size_t stem = is_first ? in_size - 2 : in_size;
    return strncmp(in, out, stem) == 0 &&
           (out_size == stem || (out_size == stem + 1 && out[stem] == 'n'));
}

/* ---- pairs ---- */

struct pair {
    const struct ifd_tensor_info *input, *output;
};

struct pairs {
    struct pair pair[STATES_MAX];
    uint32_t count;
    bool are_of_shape; /* one of them at least was not found by its names */
};

static bool is_taken(const struct pairs *p, const struct ifd_tensor_info *tensor)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->pair[i].input == tensor || p->pair[i].output == tensor) {
            return true;
        }
    }
    return false;
}

/* Could it be written between comments? */
static bool is_plain(const char *name)
{
    for (; *name != '\0'; name++) {
        if ((unsigned char)*name < ' ' || *name == '"' || *name == '\\' || *name == '\x7f') {
            return false;
        }
    }
    return true;
}

static bool is_candidate(const struct pairs *p, const struct ifd_tensor_info *tensor)
{
    return !tensor->is_hidden && tensor->dtype != IFD_STR && !is_taken(p, tensor) &&
           is_plain(tensor->name);
}

/* The size of a state, whose one open dimension may be that of a batch of 1: the first, or the one
 * behind the layers. What grows from run to run, as caches of keys do, is none. */
static bool take_size(const struct ifd_shape *shape, struct ifd_shape *ret)
{
    uint32_t open = 0;
    *ret = *shape;
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (shape->dim[d] == IFD_DIM_ANY) {
            ret->dim[d] = 1;
            open += d < 2 ? 1 : 2;
        }
    }
    return open <= 1;
}

/* may_be_open: the output's size may be unknown, else both are known and the same. */
static bool sizes_pair(const struct ifd_tensor_info *input, const struct ifd_tensor_info *output,
                       bool may_be_open)
{
    struct ifd_shape size;
    bool is_same = input->dtype == output->dtype && input->shape.rank == output->shape.rank &&
                   take_size(&input->shape, &size);
    for (uint32_t d = 0; is_same && d < size.rank; d++) {
        is_same =
            may_be_open
                ? output->shape.dim[d] == IFD_DIM_ANY || output->shape.dim[d] == size.dim[d]
                : input->shape.dim[d] != IFD_DIM_ANY && output->shape.dim[d] == input->shape.dim[d];
    }
    return is_same;
}

static void add_pair(struct pairs *p, const struct ifd_tensor_info *input,
                     const struct ifd_tensor_info *output)
{
    if (p->count < STATES_MAX) {
        p->pair[p->count++] = (struct pair){input, output};
    }
}

/* The first input and output are what the model is asked and answers. */
static void pair_by_names(const struct ifd_model_desc *desc, bool are_marked, struct pairs *p)
{
    for (uint32_t i = 0; i < desc->input_count; i++) {
        const struct ifd_tensor_info *input = &desc->input[i];
        for (uint32_t k = 0; k < desc->output_count; k++) {
            const struct ifd_tensor_info *output = &desc->output[k];
            if (i + k > 0 && is_candidate(p, input) && is_candidate(p, output) &&
                sizes_pair(input, output, true) &&
                names_pair(input->name, output->name, are_marked)) {
                add_pair(p, input, output);
            }
        }
    }
}

/* The only tensor that has this type and shape; NULL: none or several. */
static const struct ifd_tensor_info *only_one(const struct ifd_tensor_info *tensor, uint32_t count,
                                              const struct ifd_tensor_info *like)
{
    const struct ifd_tensor_info *found = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (sizes_pair(like, &tensor[i], false)) {
            if (found) {
                return NULL;
            }
            found = &tensor[i];
        }
    }
    return found;
}

/* Behind the first input and output. */
static void pair_by_shapes(const struct ifd_model_desc *desc, struct pairs *p)
{
    for (uint32_t i = 1; i < desc->input_count; i++) {
        const struct ifd_tensor_info *input = &desc->input[i];
        const struct ifd_tensor_info *output = only_one(desc->output, desc->output_count, input);
        if (input->shape.rank > 1 && output && output != &desc->output[0] &&
            is_candidate(p, input) && is_candidate(p, output) &&
            only_one(desc->input, desc->input_count, input)) {
            add_pair(p, input, output);
            p->are_of_shape = true;
        }
    }
}

/* ---- the config ---- */

/* A state has one size, which the config says where the file leaves it open. */
static void add_size(struct ifd_buf *out, const struct ifd_tensor_info *input)
{
    struct ifd_shape size;
    bool is_open = false;
    for (uint32_t d = 0; d < input->shape.rank; d++) {
        is_open = is_open || input->shape.dim[d] == IFD_DIM_ANY;
    }
    if (!is_open || !take_size(&input->shape, &size)) {
        return;
    }
    ifd_buf_addf(out, "# input [ { name: \"%s\" data_type: TYPE_%s dims: [ ", input->name,
                 ifd_dtype_wire_name(input->dtype));
    for (uint32_t d = 0; d < size.rank; d++) {
        ifd_buf_addf(out, "%s%lld", d > 0 ? ", " : "", (long long)size.dim[d]);
    }
    ifd_buf_add_text(out, " ] } ]\n");
}

static void add_pairs(struct ifd_buf *out, const struct pairs *p)
{
    ifd_buf_addf(out,
                 "# By their %s these look like a state: what a request leaves in the output is\n"
                 "# the next one's input. With these lines the server keeps it for each "
                 "sequence_id, from\n# zeros on, and clients do not see these tensors:\n",
                 p->are_of_shape ? "shapes" : "names");
    for (uint32_t i = 0; i < p->count; i++) {
        add_size(out, p->pair[i].input);
    }
    ifd_buf_add_text(out, "# sequence_batching {\n");
    for (uint32_t i = 0; i < p->count; i++) {
        ifd_buf_addf(out, "#   state [ { input_name: \"%s\" output_name: \"%s\" } ]\n",
                     p->pair[i].input->name, p->pair[i].output->name);
    }
    ifd_buf_add_text(out, "# }\n\n");
}

void ifd_init_add_states(struct ifd_buf *out, const struct ifd_model_desc *desc)
{
    struct pairs pairs = {.count = 0};
    ifd_buf_add_text(out, "\n");
    pair_by_names(desc, true, &pairs);
    pair_by_names(desc, false, &pairs);
    pair_by_shapes(desc, &pairs);
    /* something is asked and answered beside the states */
    if (pairs.count > 0 && pairs.count < desc->input_count && pairs.count < desc->output_count) {
        add_pairs(out, &pairs);
    }
}

/* Reads "outputs" of a request: which ones, and in what form. */
#include "api/http/infer_json.h"

#include "engine/base/str.h"

struct choice {
    struct ifd_output_form form;
    uint64_t top;
};

static bool read_output_parameters(struct ifd_json_in *in, struct choice *choice)
{
    struct ifd_str key, region;
    bool has_top = false;
    if (!ifd_json_open(in, '{')) {
        return false;
    }
    while (ifd_json_member(in, &key)) {
        if (ifd_str_equal(key, "binary_data")) {
            ifd_json_once(in, &choice->form.has_binary, "binary_data");
            ifd_json_bool(in, &choice->form.binary);
        } else if (ifd_str_equal(key, "classification")) {
            ifd_json_once(in, &has_top, "classification");
            ifd_json_u64(in, &choice->top);
        } else if (ifd_str_equal(key, "shared_memory_region")) {
            return ifd_json_text(in, &region) && ifd_infer_fail_region(in, region);
        } else {
            ifd_json_skip(in);
        }
    }
    return !in->failed;
}

static bool choose_output(struct ifd_infer_parser *parser, struct ifd_str name,
                          const struct choice *choice)
{
    const struct ifd_model_desc *desc = parser->desc;
    for (uint32_t i = 0; i < desc->output_count; i++) {
        if (desc->output[i].is_hidden || !ifd_str_equal(name, desc->output[i].name)) {
            continue;
        }
        if (parser->infer->core.wanted[i]) {
            return ifd_json_fail(&parser->in, IFD_INVALID, "output '%s' is requested twice",
                                 desc->output[i].name);
        }
        parser->infer->core.wanted[i] = true;
        parser->infer->core.top[i] = choice->top;
        parser->infer->form[i] = choice->form;
        return true;
    }
    char names[100];
    ifd_infer_list_names(desc->output, desc->output_count, names, sizeof(names));
    return ifd_json_fail(
        &parser->in, IFD_INVALID,
        "unexpected inference output '%.*s' for model '%s', whose output(s) are [%s]",
        ifd_json_shown(name), name.data, desc->name, names);
}

bool ifd_infer_read_output(struct ifd_infer_parser *parser)
{
    struct ifd_json_in *in = &parser->in;
    struct choice choice = {0};
    struct ifd_str key, name = {0};
    bool has_name = false, has_parameters = false;
    if (!ifd_json_open(in, '{')) {
        return false;
    }
    while (ifd_json_given(in, &key)) {
        if (ifd_str_equal(key, "name")) {
            if (!ifd_json_once(in, &has_name, "name") || !ifd_json_text(in, &name)) {
                return false;
            }
        } else if (ifd_str_equal(key, "parameters")) {
            if (!ifd_json_once(in, &has_parameters, "parameters") ||
                !read_output_parameters(in, &choice)) {
                return false;
            }
        } else if (!ifd_json_skip(in)) {
            return false;
        }
    }
    if (in->failed) {
        return false;
    }
    if (!has_name) {
        return ifd_json_fail(in, IFD_INVALID, "Unable to parse 'name': output has no such member");
    }
    return choose_output(parser, name, &choice);
}

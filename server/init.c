/* Writes a model's folder with a commented config. A preset is tried as the server would use it, so
 * that the config works. */
#include "server/init.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/buf.h"
#include "engine/base/escape.h"
#include "engine/base/file.h"
#include "engine/base/str.h"
#include "engine/tools/externals.h"
#include "server/init_state.h"
#include "server/model/parameters.h"
#include "server/repo/complete.h"
#include "server/repo/layout.h"
#include "server/serve/served.h"

#define PATH_BYTES       4096
#define CONFIG_BYTES_MAX ((size_t)1 << 20)

static const char usage[] =
    "usage: inferd init [--preset NAME] DIR MODEL\n\n"
    "Copies MODEL (.tflite or .onnx) to DIR/NAME/1 and writes DIR/NAME/config.pbtxt, which says\n"
    "how pictures or sounds become its input and what its outputs mean, as far as that can be\n"
    "found out.\n";

struct init {
    const char *folder, *path, *preset; /* preset NULL: to be chosen */
    char name[160];
    const char *file; /* in the model's folder */
    struct ifd_file content;
    struct ifd_externals externals;
    struct ifd_engine *engine;
    struct ifd_model *model;
    struct ifd_arena arena;
    const struct ifd_parameter_info *more; /* beside the preset; NULL: nothing */
    const struct ifd_model_desc *desc;     /* as the server would describe it with all of this */
    bool is_guess, is_usual;               /* of the preset: by the file's name; by nothing */
};

/* ---- what the file is ---- */

/* Most of what is said beside a preset. */
#define MORE_MAX 3

/* Words in names of files, without case and signs between letters, and the preset that such
 * networks mostly have, with what they have otherwise; the first that fits and works. */
static const struct hint {
    const char *word, *preset;
    struct ifd_parameter_info more[MORE_MAX];
} hints[] = {
    {.word = "yolox", .preset = "yolox"},
    {.word = "yolov3", .preset = "yolo_v3"},
    {.word = "yolov4", .preset = "yolo_v3"},
    {.word = "yolov5", .preset = "yolo_v5"},
    {.word = "yolo", .preset = "yolo_v8"},
    {.word = "nanodet", .preset = "nanodet"},
    {.word = "ultraface", .preset = "ultraface"},
    {.word = "facedetection", .preset = "mediapipe_face"},
    {.word = "blazeface", .preset = "mediapipe_face"},
    {.word = "handlandmark", .preset = "mediapipe_hand"},
    {.word = "poselandmark", .preset = "mediapipe_pose"},
    {.word = "movenet", .preset = "movenet"},
    {.word = "deeplab", .preset = "deeplab"},
    {.word = "selfiesegmentation",
     .preset = "deeplab",
     .more = {{"image_mean", "0"}, {"image_std", "255"}, {"labels", "background, person"}}},
    {.word = "yamnet", .preset = "yamnet"},
    {.word = "ssd", .preset = "ssd"}};

static enum ifd_code open_model(const struct ifd_tool_host *host, struct init *init,
                                struct ifd_err *err)
{
    const struct ifd_engine_options options = {.alloc = ifd_alloc_system(),
                                               .backends = host->backends,
                                               .backend_count = host->backend_count};
    struct ifd_str name;
    enum ifd_code code = ifd_layout_name(init->path, &name, &init->file, err);
    if (!code) {
        (void)snprintf(init->name, sizeof(init->name), "%.*s", (int)name.size, name.data);
        code = ifd_file_open(init->path, SIZE_MAX, ifd_alloc_system(), &init->content, err);
    }
    if (!code) {
        code = ifd_engine_create(&options, &init->engine, err);
    }
    if (!code) {
        code = ifd_externals_open(init->path, init->content.content, SIZE_MAX, ifd_alloc_system(),
                                  &init->externals, err);
    }
    if (!code) {
        const struct ifd_model_options load = {.external = init->externals.file,
                                               .external_count = init->externals.count};
        code = ifd_model_load(init->engine, init->content.content, &load, &init->model, err);
    }
    if (code && init->engine) {
        ifd_err_prefix(err, "%.150s", init->path);
    }
    return code;
}

static uint32_t count_more(const struct ifd_parameter_info *more)
{
    uint32_t count = 0;
    while (more && count < MORE_MAX && more[count].key) {
        count++;
    }
    return count;
}

/* Describes the model as the server does with this preset and what is said beside it (NULL:
 * none). */
static enum ifd_code describe(struct init *init, const char *preset,
                              const struct ifd_parameter_info *more,
                              const struct ifd_model_desc **ret, struct ifd_err *err)
{
    struct ifd_parameter_info *parameter =
        ifd_arena_take_array(&init->arena, 1 + MORE_MAX, sizeof(*parameter));
    struct ifd_version *version = ifd_arena_take(&init->arena, sizeof(*version));
    if (!parameter || !version) {
        return ifd_arena_fail(&init->arena, sizeof(*version), err);
    }
    *version = (struct ifd_version){
        .name = init->name, .number = 1, .arena = init->arena, .engine = init->model};
    ifd_manifest_init(&version->desc);
    parameter[0] = (struct ifd_parameter_info){.key = "preset", .value = preset};
    for (uint32_t i = 0; i < count_more(more); i++) {
        parameter[1 + i] = more[i];
    }
    version->desc.parameter = parameter;
    version->desc.parameter_count = preset ? 1 + count_more(more) : 0;
    enum ifd_code code =
        ifd_manifest_complete(&version->desc, ifd_model_info(init->model), &version->arena, err);
    if (!code) {
        code = ifd_describe(version, err);
    }
    init->arena = version->arena;
    *ret = &version->desc;
    return code;
}

static bool takes_pictures(const struct ifd_model_desc *desc)
{
    bool has_picture = false;
    for (uint32_t i = 0; i < desc->input_count; i++) {
        has_picture = has_picture || desc->input[i].image.has_image;
    }
    return has_picture;
}

static bool takes_sounds(const struct ifd_model_desc *desc)
{
    return desc->input_count == 1 && desc->input[0].sound.has_sound;
}

/* Whether the server would take pictures or sounds and say what is in them. */
static bool is_complete(const struct ifd_model_desc *desc)
{
    return (takes_pictures(desc) || takes_sounds(desc)) && desc->meaning;
}

static bool works(struct init *init, const char *preset, const struct ifd_parameter_info *more)
{
    const struct ifd_model_desc *desc = NULL;
    if (describe(init, preset, more, &desc, NULL) || !is_complete(desc)) {
        return false;
    }
    init->preset = preset;
    init->more = more;
    init->desc = desc;
    init->is_guess = true;
    return true;
}

static bool has_word(const char *path, const char *word)
{
    char name[200];
    size_t size = 0;
    const char *slash = strrchr(path, '/');
    for (const char *at = slash ? slash + 1 : path; *at && size + 1 < sizeof(name); at++) {
        if (isalnum((unsigned char)*at)) {
            name[size++] = (char)tolower((unsigned char)*at);
        }
    }
    name[size] = '\0';
    return strstr(name, word);
}

/* Whether the only output is a map of the input picture, not much smaller than it. */
static bool is_map(const struct ifd_model_desc *desc)
{
    if (desc->input_count != 1 || desc->output_count != 1) {
        return false;
    }
    const struct ifd_image_rule *image = &desc->input[0].image;
    const struct ifd_shape *shape = &desc->output[0].shape;
    const uint32_t lead = image->channels_first ? 2 : 1;
    return shape->rank == 4 && shape->dim[lead] * 4 >= image->height &&
           shape->dim[lead + 1] * 4 >= image->width;
}

/* Whether an output is a number for each class. */
static bool is_list(const struct ifd_shape *shape)
{
    uint32_t longer = 0;
    for (uint32_t i = 0; i < shape->rank; i++) {
        longer += shape->dim[i] > 1;
    }
    return longer <= 1;
}

/* What networks that look at pictures are mostly trained with. */
static bool guess_usual(struct init *init)
{
    const struct ifd_model_desc *desc = NULL;
    const bool is_onnx = strcmp(ifd_model_info(init->model)->format, "onnx") == 0;
    if (describe(init, "imagenet", NULL, &desc, NULL) || !takes_pictures(desc) ||
        desc->output_count == 0) {
        return false;
    }
    if (!is_list(&desc->output[0].shape)) {
        return is_map(desc) && works(init, "deeplab", NULL);
    }
    const bool is_torch = is_onnx || desc->input[0].image.channels_first;
    return (is_torch && works(init, "imagenet_torch", NULL)) || works(init, "imagenet", NULL);
}

static void guess(struct init *init)
{
    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        if (has_word(init->path, hints[i].word) && works(init, hints[i].preset, hints[i].more)) {
            return;
        }
    }
    init->is_usual = guess_usual(init);
}

static enum ifd_code choose_preset(struct init *init, struct ifd_err *err)
{
    if (init->preset) {
        return describe(init, init->preset, NULL, &init->desc, err);
    }
    enum ifd_code code = describe(init, NULL, NULL, &init->desc, err);
    if (!code && !is_complete(init->desc)) {
        guess(init);
    }
    return code;
}

/* ---- the config ---- */

static void add_parameter(struct ifd_buf *out, const char *mark, const char *key, const char *value)
{
    ifd_buf_addf(out, "%sparameters { key: \"%s\" value { string_value: \"%s\" } }\n", mark, key,
                 value);
}

static void add_tensors(struct ifd_buf *out, const char *word, const struct ifd_tensor_info *tensor,
                        uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ifd_buf_addf(out, "# %s [ { name: \"%s\" data_type: TYPE_%s dims: [ ", word, tensor[i].name,
                     tensor[i].dtype == IFD_STR ? "STRING" : ifd_dtype_wire_name(tensor[i].dtype));
        for (uint32_t d = 0; d < tensor[i].shape.rank; d++) {
            ifd_buf_addf(out, "%s%lld", d > 0 ? ", " : "", (long long)tensor[i].shape.dim[d]);
        }
        ifd_buf_add_text(out, " ] } ]\n");
    }
}

static void add_presets(struct ifd_buf *out)
{
    ifd_buf_add_text(out, "# Presets:");
    for (size_t i = 0; ifd_preset_name(i); i++) {
        ifd_buf_addf(out, "%s %s", i == 8 ? "\n#   " : "", ifd_preset_name(i));
    }
    ifd_buf_add_text(out, "\n");
}

static void add_meaning(struct ifd_buf *out, const struct init *init)
{
    static const char *const shown[] = {"image_mean", "image_std",  "image_color", "image_resize",
                                        "image_fill", "audio_rate", "audio_hop"};
    const char *what = takes_sounds(init->desc) ? "sound" : "picture";
    if (!init->preset && is_complete(init->desc)) {
        ifd_buf_addf(out,
                     "# The file itself says how %ss become its input and what its outputs mean.\n",
                     what);
    } else if (!init->preset) {
        ifd_buf_addf(out,
                     "# Nothing says how pictures or sounds become its input, or what its "
                     "outputs mean. A preset\n# does, or the parameters of docs/objects.md.\n");
    } else if (init->is_usual) {
        ifd_buf_addf(out,
                     "# Nothing says how %ss become its input. The preset is what most networks of "
                     "this form\n# were trained with: check it with a %s that you know.\n",
                     what, what);
    } else {
        ifd_buf_addf(out, "# How %ss become its input, and what its outputs mean.%s", what,
                     init->is_guess ? " The preset was chosen by the\n# name of the file: check it "
                                      "with one that you know.\n"
                                    : "\n");
    }
    add_presets(out);
    add_parameter(out, init->preset ? "" : "# ", "preset",
                  init->preset ? init->preset : "imagenet");
    for (uint32_t i = 0; i < count_more(init->more); i++) {
        add_parameter(out, "", init->more[i].key, init->more[i].value);
    }
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        const char *value = ifd_meaning_parameter(init->desc, shown[i]);
        if (value && !ifd_desc_parameter(init->desc, shown[i])) {
            add_parameter(out, "# ", shown[i], value);
        }
    }
}

/* What a request may say, too, with the values that hold if nobody does. */
static void add_options(struct ifd_buf *out, const struct ifd_meaning *meaning)
{
    const enum ifd_model_task task = meaning->task;
    char number[16];
    ifd_buf_add_text(out, "\n# What a request may say, too, and then wins:\n");
    if (task == IFD_TASK_SEGMENTATION) {
        add_parameter(out, "# ", "mask", "png");
        return;
    }
    (void)snprintf(number, sizeof(number), "%g", (double)meaning->options.threshold);
    add_parameter(out, "# ", "threshold", number);
    (void)snprintf(number, sizeof(number), "%g", (double)meaning->options.iou);
    if (task == IFD_TASK_DETECTION) {
        add_parameter(out, "# ", "iou", number);
    }
    (void)snprintf(number, sizeof(number), "%u", meaning->options.top_k);
    if (task != IFD_TASK_TEXT) {
        add_parameter(out, "# ", "top_k", number);
    }
}

static enum ifd_code write_config(const struct init *init, const char *path, struct ifd_err *err)
{
    struct ifd_buf out;
    ifd_buf_init(&out, ifd_alloc_system(), CONFIG_BYTES_MAX);
    ifd_buf_addf(&out,
                 "# How inferd serves %s; docs/operate.md explains the fields. Lines with # in\n"
                 "# front say what holds without them, or are examples.\n\n",
                 init->name);
    add_tensors(&out, "input", init->desc->input, init->desc->input_count);
    add_tensors(&out, "output", init->desc->output, init->desc->output_count);
    ifd_init_add_states(&out, init->desc);
    add_meaning(&out, init);
    if (init->desc->meaning) {
        add_options(&out, init->desc->meaning);
    }
    ifd_buf_add_text(&out, "\n# Samples of a request, such as several regions of a picture:\n"
                           "# max_batch_size: 4\n"
                           "# Most runs at a time; without this line, one for each core:\n"
                           "# instance_group [ { count: 1 } ]\n");
    enum ifd_code code = ifd_buf_check(&out, err);
    if (!code) {
        code = ifd_file_write(path, (struct ifd_bytes){out.data, out.size}, err);
    }
    ifd_buf_finish(&out);
    return code;
}

/* ---- the folder ---- */

/* The commands that come next. */
static void say_next(const struct init *init)
{
    const char *body = takes_sounds(init->desc)     ? "--data-binary @SOUND.wav "
                       : takes_pictures(init->desc) ? "--data-binary @PICTURE "
                                                    : "";
    (void)printf("inferd serve %s\n"
                 "curl %shttp://127.0.0.1:8000/v2/models/%s%s\n",
                 init->folder, body, init->name, body[0] != '\0' ? "/infer" : "");
}

static enum ifd_code make_folder(const char *path, bool may_exist, struct ifd_err *err)
{
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && may_exist)) {
        return IFD_OK;
    }
    return ifd_fail(
        err, errno == EEXIST ? IFD_EXISTS : IFD_IO, "cannot make folder \"%.150s\": %s", path,
        errno == EEXIST ? "it exists; a newer version of the model goes into its folder 2"
                        : strerror(errno));
}

/* The files beside the model's: in the folder of the version, and in folders within it. */
static enum ifd_code write_externals(const struct init *init, const char *version,
                                     struct ifd_err *err)
{
    char path[2 * PATH_BYTES];
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; i < init->externals.count && !code; i++) {
        const char *name = init->externals.file[i].name;
        for (const char *slash = strchr(name, '/'); slash && !code;
             slash = strchr(slash + 1, '/')) {
            if (ifd_str_format(path, sizeof(path), "%s/%.*s", version, (int)(slash - name), name)) {
                code = make_folder(path, true, err);
            }
        }
        if (!code && !ifd_str_format(path, sizeof(path), "%s/%s", version, name)) {
            code = ifd_fail(err, IFD_TOO_LARGE, "the path \"%.100s…\" is too long", name);
        }
        if (!code) {
            code = ifd_file_write(path, init->externals.file[i].content, err);
        }
    }
    return code;
}

static enum ifd_code write_folder(const struct init *init, struct ifd_err *err)
{
    char model[PATH_BYTES], version[PATH_BYTES + 8], file[PATH_BYTES + 32], config[PATH_BYTES + 32];
    if (!ifd_str_format(model, sizeof(model), "%s/%s", init->folder, init->name)) {
        return ifd_fail(err, IFD_TOO_LARGE, "the path \"%.100s…\" is too long", init->folder);
    }
    (void)snprintf(version, sizeof(version), "%s/1", model);
    (void)snprintf(file, sizeof(file), "%s/%s", model, init->file);
    (void)snprintf(config, sizeof(config), "%s/config.pbtxt", model);
    enum ifd_code code = make_folder(init->folder, true, err);
    if (!code) {
        code = make_folder(model, false, err);
    }
    if (!code) {
        code = make_folder(version, false, err);
    }
    if (!code) {
        code = ifd_file_write(file, init->content.content, err);
    }
    if (!code) {
        code = write_externals(init, version, err);
    }
    if (!code) {
        code = write_config(init, config, err);
    }
    if (!code) {
        (void)printf("%s\n%s\n\n", file, config);
        say_next(init);
    }
    return code;
}

/* ---- the command ---- */

/* False: wrong usage. */
static bool read_arguments(int argc, char **argv, struct init *init)
{
    int given = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--preset") == 0 && i + 1 < argc) {
            init->preset = argv[++i];
        } else if (strncmp(argv[i], "--preset=", 9) == 0) {
            init->preset = argv[i] + 9;
        } else if (argv[i][0] == '-' || given == 2) {
            return false;
        } else {
            *(given++ == 0 ? &init->folder : &init->path) = argv[i];
        }
    }
    return given == 2;
}

int ifd_init(const struct ifd_tool_host *host, int argc, char **argv)
{
    struct init init = {.folder = NULL};
    struct ifd_err err = {0};
    char line[2 * IFD_ERR_TEXT_BYTES];
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        (void)fputs(usage, stdout);
        return 0;
    }
    if (!read_arguments(argc, argv, &init)) {
        (void)fputs(usage, stderr);
        return 2;
    }
    ifd_arena_init(&init.arena, ifd_alloc_system(), 0);
    enum ifd_code code = open_model(host, &init, &err);
    if (!code) {
        code = choose_preset(&init, &err);
    }
    if (!code) {
        code = write_folder(&init, &err);
    }
    if (code) {
        (void)fprintf(stderr, "inferd init: %s\n", ifd_escape_line(err.text, line, sizeof(line)));
    }
    ifd_arena_finish(&init.arena);
    ifd_model_destroy(init.model);
    ifd_engine_destroy(init.engine);
    ifd_externals_close(&init.externals);
    ifd_file_close(&init.content);
    return code ? 1 : 0;
}

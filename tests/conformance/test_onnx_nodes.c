/* The test cases of the ONNX project (Debian's libonnx-testdata, or the newest ones that
 * newest_nodes.py writes) through the product's own loader, on the backend named on the command
 * line: every case computes what the case says, or is in the table of exceptions with its reason.
 * The last argument runs the cases whose name begins so and says why each fails. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/builtin.h"
#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/file.h"
#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_reader.h"
#include "engine/parse/onnx/wire.h"
#include "engine/tensor/half.h"
#include "inferd/engine.h"
#include "tests/conformance/onnx_lists.h"
#include "tests/support/test.h"

#define DEBIAN     "/usr/share/libonnx-testdata/data/"
#define PORTS_MAX  ONNX_LISTS_MAX
#define RELATIVE   1e-3 /* of ONNX's own runner */
#define ABSOLUTE   1e-6
#define FILE_BYTES ((size_t)64 << 20)

static const struct ifd_limits limits = {.nodes = 1000, .values = 4000, .node_inputs = 100};

/* ---- files ---- */

struct proto {
    const char *name;
    struct ifd_tensor tensor; /* data NULL: the message is no tensor that is understood */
};

static bool read_file(const char *folder, const char *name, const char *part, struct ifd_bytes *ret)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s/%s", folder, name, part);
    return ifd_file_read(path, FILE_BYTES, ifd_alloc_system(), ret, NULL) == IFD_OK;
}

static void free_bytes(struct ifd_bytes bytes)
{
    ifd_release_tensor(ifd_alloc_system(), (void *)(uintptr_t)bytes.data, bytes.size);
}

static const enum ifd_dtype native[] = {
    [IFD_ONNX_FLOAT] = IFD_F32,   [IFD_ONNX_UINT8] = IFD_U8,     [IFD_ONNX_INT8] = IFD_S8,
    [IFD_ONNX_UINT16] = IFD_U16,  [IFD_ONNX_INT16] = IFD_S16,    [IFD_ONNX_INT32] = IFD_S32,
    [IFD_ONNX_INT64] = IFD_S64,   [IFD_ONNX_STRING] = IFD_STR,   [IFD_ONNX_BOOL] = IFD_BOOL,
    [IFD_ONNX_FLOAT16] = IFD_F16, [IFD_ONNX_DOUBLE] = IFD_F64,   [IFD_ONNX_UINT32] = IFD_U32,
    [IFD_ONNX_UINT64] = IFD_U64,  [IFD_ONNX_BFLOAT16] = IFD_BF16};

/* Elements that the file holds. Sequences and optional values, read as tensors, have others than
 * their shape says. */
static size_t held(const struct ifd_onnx_tensor *t)
{
    const enum ifd_dtype dtype = native[t->type];
    return t->has_raw         ? t->raw.size / ifd_dtype_bytes(dtype)
           : dtype == IFD_F32 ? t->f32_count
           : dtype == IFD_F64 ? t->f64_count
           : dtype == IFD_STR ? t->text_count
                              : t->integer_count;
}

static void take_content(const struct ifd_onnx_tensor *from, struct ifd_tensor *to)
{
    const size_t element = ifd_dtype_bytes(to->dtype);
    for (size_t i = 0; i < to->bytes / element; i++) {
        if (to->dtype == IFD_STR) { /* the message goes */
            const struct ifd_str text = {.data = strndup(from->text[i].data, from->text[i].size),
                                         .size = from->text[i].size};
            REQUIRE(text.data);
            memcpy((uint8_t *)to->data + i * element, &text, element);
            continue;
        }
        const void *number = from->has_raw          ? (const void *)(from->raw.data + i * element)
                             : to->dtype == IFD_F32 ? (const void *)&from->f32[i]
                             : to->dtype == IFD_F64 ? (const void *)&from->f64[i]
                                                    : (const void *)&from->integer[i];
        memcpy((uint8_t *)to->data + i * element, number, element);
    }
}

static bool describe(const struct ifd_onnx_tensor *t, struct ifd_tensor *ret)
{
    size_t count = 0;
    *ret = (struct ifd_tensor){0};
    if (t->type < 1 || t->type > 16 || t->dim_count > IFD_MAX_RANK) {
        return false;
    }
    ret->dtype = native[t->type];
    ret->shape.rank = t->dim_count;
    for (uint32_t d = 0; d < t->dim_count; d++) {
        ret->shape.dim[d] = t->dim[d];
    }
    const bool is_whole = ifd_shape_elements(&ret->shape, &count) && held(t) == count;
    ret->bytes = is_whole ? count * ifd_dtype_bytes(ret->dtype) : 0;
    ret->capacity = ret->bytes + IFD_TENSOR_PAD;
    return is_whole;
}

static struct ifd_bytes content_of(const struct ifd_buf *buf)
{
    REQUIRE(ifd_buf_check(buf, NULL) == IFD_OK);
    return (struct ifd_bytes){.data = buf->data, .size = buf->size};
}

/* A tensor's message is read as the only constant of a model. */
static void read_tensor(const struct onnx_lists_tensor *from, struct proto *proto)
{
    struct ifd_buf graph, model;
    struct ifd_arena arena;
    struct ifd_onnx_model read;
    ifd_buf_init(&graph, ifd_alloc_system(), FILE_BYTES);
    ifd_buf_init(&model, ifd_alloc_system(), FILE_BYTES);
    ifd_arena_init(&arena, ifd_alloc_system(), FILE_BYTES);
    onnx_put_field(&graph, 5, from->message.data, from->message.size);
    onnx_put_field(&model, 7, graph.data, graph.size);
    const bool is_read = ifd_onnx_read(content_of(&model), NULL, &limits, &arena, &read,
                                       &(struct ifd_err){0}) == IFD_OK;
    const struct ifd_onnx_tensor *t = read.graph.initializer;
    *proto = (struct proto){.name = from->name};
    if (is_read && read.graph.initializer_count == 1 && describe(t, &proto->tensor)) {
        proto->tensor.data = ifd_acquire_tensor(ifd_alloc_system(), proto->tensor.bytes);
        REQUIRE(proto->tensor.data);
        take_content(t, &proto->tensor);
    }
    ifd_arena_finish(&arena);
    ifd_buf_finish(&graph);
    ifd_buf_finish(&model);
}

static void free_proto(struct proto *proto)
{
    const struct ifd_str *text = proto->tensor.dtype == IFD_STR ? proto->tensor.data : NULL;
    for (size_t i = 0; text && i < proto->tensor.bytes / sizeof(*text); i++) {
        free((void *)(uintptr_t)text[i].data);
    }
    if (proto->tensor.data) {
        ifd_release_tensor(ifd_alloc_system(), proto->tensor.data, proto->tensor.bytes);
    }
}

/* ---- a case ---- */

struct node_case {
    const char *name;
    struct ifd_buf file;
    struct onnx_lists_side given, wanted;
    struct proto input[PORTS_MAX], output[PORTS_MAX];
    uint32_t input_count, output_count;
};

static uint32_t read_files(const char *folder, const char *name, const char *kind,
                           struct ifd_bytes *ret)
{
    uint32_t count = 0;
    for (; count < PORTS_MAX; count++) {
        char part[64];
        (void)snprintf(part, sizeof(part), "test_data_set_0/%s_%u.pb", kind, count);
        if (!read_file(folder, name, part, &ret[count])) {
            break;
        }
    }
    return count;
}

static void read_case(const char *folder, const char *name, struct node_case *ret)
{
    struct ifd_bytes model, input[PORTS_MAX], output[PORTS_MAX];
    REQUIRE(read_file(folder, name, "model.onnx", &model));
    const uint32_t inputs = read_files(folder, name, "input", input);
    const uint32_t outputs = read_files(folder, name, "output", output);
    *ret = (struct node_case){.name = name};
    onnx_lists_rewrite(model, input, inputs, output, outputs, &ret->file, &ret->given,
                       &ret->wanted);
    ret->input_count = ret->given.count;
    ret->output_count = ret->wanted.count;
    for (uint32_t i = 0; i < ret->input_count; i++) {
        read_tensor(&ret->given.tensor[i], &ret->input[i]);
    }
    for (uint32_t i = 0; i < ret->output_count; i++) {
        read_tensor(&ret->wanted.tensor[i], &ret->output[i]);
    }
    for (uint32_t i = 0; i < inputs; i++) {
        free_bytes(input[i]);
    }
    for (uint32_t i = 0; i < outputs; i++) {
        free_bytes(output[i]);
    }
    free_bytes(model);
}

static void free_case(struct node_case *c)
{
    for (uint32_t i = 0; i < c->input_count; i++) {
        free_proto(&c->input[i]);
    }
    for (uint32_t i = 0; i < c->output_count; i++) {
        free_proto(&c->output[i]);
    }
    onnx_lists_finish(&c->given);
    onnx_lists_finish(&c->wanted);
    ifd_buf_finish(&c->file);
}

static double number_at(const struct ifd_tensor *t, size_t i)
{
    const void *at = (const uint8_t *)t->data + i * ifd_dtype_bytes(t->dtype);
    switch ((int)t->dtype) {
    case IFD_F32:
        return (double)*(const float *)at;
    case IFD_F64:
        return *(const double *)at;
    case IFD_F16:
        return (double)ifd_f32_from_f16(*(const uint16_t *)at);
    case IFD_BF16:
        return (double)ifd_f32_from_bf16(*(const uint16_t *)at);
    default:
        return NAN;
    }
}

static bool is_close(double got, double want, double relative)
{
    return (isnan(got) && isnan(want)) || got == want ||
           fabs(got - want) <= ABSOLUTE + relative * fabs(want);
}

/* Texts are places and sizes of what is the same. */
static bool is_same(const struct ifd_tensor *got, const struct ifd_tensor *want, size_t i)
{
    const size_t element = ifd_dtype_bytes(want->dtype);
    const void *a = (const uint8_t *)got->data + i * element;
    const void *b = (const uint8_t *)want->data + i * element;
    if (want->dtype != IFD_STR) {
        return memcmp(a, b, element) == 0;
    }
    const struct ifd_str *x = a, *y = b;
    return x->size == y->size && (x->size == 0 || memcmp(x->data, y->data, x->size) == 0);
}

static bool is_float(enum ifd_dtype dtype)
{
    return dtype == IFD_F32 || dtype == IFD_F64 || dtype == IFD_F16 || dtype == IFD_BF16;
}

/* The first difference as text; false if there is none. */
static bool differs(const struct ifd_tensor *got, const struct proto *proto, struct ifd_err *err)
{
    struct ifd_tensor want = proto->tensor;
    const bool is_bf16 = got->dtype == IFD_BF16 && want.dtype == IFD_U16; /* stored as its bits */
    want.dtype = is_bf16 ? IFD_BF16 : want.dtype;
    if (!want.data || got->dtype != want.dtype || !ifd_shape_equal(&got->shape, &want.shape)) {
        (void)ifd_fail(err, IFD_INVALID, "%s %s, expected %s %s", ifd_dtype_name(got->dtype),
                       ifd_shape_text(&got->shape).s,
                       want.data ? ifd_dtype_name(want.dtype) : "no tensor",
                       ifd_shape_text(&want.shape).s);
        return true;
    }
    for (size_t i = 0; i < want.bytes / ifd_dtype_bytes(want.dtype); i++) {
        const double relative = is_bf16 ? 0x1p-7 : RELATIVE; /* the case's maker truncates */
        if (!is_same(got, &want, i) &&
            !(is_float(want.dtype) && is_close(number_at(got, i), number_at(&want, i), relative))) {
            (void)ifd_fail(err, IFD_INVALID, "element %zu is %g, expected %g", i, number_at(got, i),
                           number_at(&want, i));
            return true;
        }
    }
    return false;
}

static const struct proto *input_named(const struct node_case *c, const char *name)
{
    for (uint32_t i = 0; i < c->input_count; i++) {
        if (strcmp(c->input[i].name, name) == 0) {
            return c->input[i].tensor.data ? &c->input[i] : NULL;
        }
    }
    return NULL;
}

static enum ifd_code run(const struct node_case *c, const struct ifd_model *model,
                         struct ifd_err *err)
{
    const struct ifd_model_info *info = ifd_model_info(model);
    struct ifd_tensor in[PORTS_MAX], got[PORTS_MAX] = {{0}};
    struct ifd_io io = {.input = in, .output = got, .batch = 1};
    struct ifd_instance *instance = NULL;
    if (info->output_count != c->output_count) {
        return ifd_fail(err, IFD_INVALID, "%u outputs, expected %u", info->output_count,
                        c->output_count);
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        const struct proto *proto = input_named(c, info->input[i].name);
        if (!proto) {
            return ifd_fail(err, IFD_INVALID, "there is no tensor for input %s",
                            info->input[i].name);
        }
        in[i] = proto->tensor;
        const int64_t first = in[i].shape.dim[0];
        io.batch = info->input[i].batched && first > io.batch ? first : io.batch;
        if (info->input[i].desc.dtype == IFD_BF16 && in[i].dtype == IFD_U16) {
            in[i].dtype = IFD_BF16; /* which the cases store as its bits */
        }
    }
    const struct ifd_instance_options options = {.threads = 1, .max_batch = (uint32_t)io.batch};
    enum ifd_code code =
        ifd_instance_create((struct ifd_model *)(uintptr_t)model, &options, &instance, err);
    if (code == IFD_OK) {
        code = ifd_instance_run(instance, &io, 1, err);
    }
    for (uint32_t i = 0; code == IFD_OK && i < c->output_count; i++) {
        code = differs(&got[i], &c->output[i], err) ? IFD_INVALID : IFD_OK;
    }
    ifd_instance_destroy(instance);
    return code;
}

static enum ifd_code load_and_run(struct ifd_engine *engine, const char *backend,
                                  const struct node_case *c, struct ifd_err *err)
{
    const char *backends[] = {backend, "CpuRef"};
    const struct ifd_model_options options = {.backends = backends, .backend_count = 2};
    struct ifd_model *model = NULL;
    enum ifd_code code = ifd_model_load(engine, content_of(&c->file), &options, &model, err);
    if (code == IFD_OK) {
        code = run(c, model, err);
    }
    ifd_model_destroy(model);
    return code;
}

/* ---- tables ---- */

struct exception {
    const char *prefix, *reason;
};

#define EXCEPTION(prefix, reason) {prefix, reason},
static const struct exception node_exceptions[] = {
#include "tests/conformance/onnx_nodes.inc"
};
static const struct exception newest_exceptions[] = {
#include "tests/conformance/newest_nodes.inc"
};
static const struct exception model_exceptions[] = {
#include "tests/conformance/onnx_models.inc"
};
#undef EXCEPTION
#define COUNT(rows)    (sizeof(rows) / sizeof((rows)[0]))
#define EXCEPTIONS_MAX 512

static bool begins(const char *name, const char *prefix)
{
    const size_t size = strcspn(prefix, "$"); /* the end of a whole name */
    return strncmp(name, prefix, size) == 0 && (prefix[size] == '\0' || name[size] == '\0');
}

/* ---- all cases ---- */

struct tally {
    struct ifd_engine *engine;
    const char *backend, *prefix; /* prefix NULL: all cases */
    const struct exception *exception;
    size_t exception_count;
    bool is_used[EXCEPTIONS_MAX];
    uint32_t cases, passed, excepted;
};

static void begin(struct tally *tally, const struct exception *exception, size_t count,
                  const char *prefix)
{
    struct ifd_engine_options options = {0};
    REQUIRE(test_arg(0) && count <= EXCEPTIONS_MAX);
    *tally = (struct tally){
        .backend = test_arg(0), .prefix = prefix, .exception = exception, .exception_count = count};
    options.backends = ifd_backends_builtin(&options.backend_count);
    REQUIRE(ifd_engine_create(&options, &tally->engine, NULL) == IFD_OK);
}

/* Exceptions name cases that fail, and nothing else. */
static void judge(struct tally *tally, const struct node_case *c, enum ifd_code code,
                  const struct ifd_err *err)
{
    for (size_t i = 0; i < tally->exception_count; i++) {
        if (begins(c->name + strlen("test_"), tally->exception[i].prefix)) {
            tally->is_used[i] = true;
            tally->excepted++;
            if (code == IFD_OK) {
                printf("%s passes, but is an exception: %s\n", c->name, tally->exception[i].reason);
            } else if (tally->prefix) {
                printf("%s (exception): %s\n", c->name, err->text);
            }
            EXPECT(code != IFD_OK);
            return;
        }
    }
    if (code != IFD_OK) {
        printf("%s: %s\n", c->name, err->text);
    }
    EXPECT(code == IFD_OK);
    tally->passed += code == IFD_OK;
}

static void take_case(struct tally *tally, const char *folder, const char *name)
{
    struct node_case c;
    struct ifd_err err = {0};
    read_case(folder, name, &c);
    const enum ifd_code code = load_and_run(tally->engine, tally->backend, &c, &err);
    judge(tally, &c, code, &err);
    free_case(&c);
}

/* False: there is no such folder. */
static bool take_folder(struct tally *tally, const char *folder)
{
    struct dirent **entry = NULL;
    const int count = scandir(folder, &entry, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        const char *name = entry[i]->d_name;
        if (begins(name, "test_") && (!tally->prefix || begins(name, tally->prefix))) {
            take_case(tally, folder, name);
            tally->cases++;
        }
        free(entry[i]);
    }
    free(entry);
    return count >= 0;
}

static void end(struct tally *tally)
{
    ifd_engine_destroy(tally->engine);
    printf("%s: %u of %u cases pass; %u are exceptions\n", tally->backend, tally->passed,
           tally->cases, tally->excepted);
    EXPECT(tally->cases > 0);
    for (size_t i = 0; !tally->prefix && i < tally->exception_count; i++) {
        if (!tally->is_used[i]) {
            printf("no case is named %s\n", tally->exception[i].prefix);
        }
        EXPECT(tally->is_used[i]);
    }
}

static void node_tests_pass_or_are_excepted(void)
{
    struct tally tally;
    begin(&tally, node_exceptions, COUNT(node_exceptions), test_arg(1));
    if (!take_folder(&tally, DEBIAN "node")) {
        test_skip("libonnx-testdata is not installed");
    }
    end(&tally);
}

static void models_pass_or_are_excepted(void)
{
    static const char *const folders[] = {DEBIAN "pytorch-converted", DEBIAN "pytorch-operator",
                                          DEBIAN "simple"};
    struct tally tally;
    begin(&tally, model_exceptions, COUNT(model_exceptions), test_arg(1));
    for (size_t i = 0; i < COUNT(folders); i++) {
        if (!take_folder(&tally, folders[i])) {
            test_skip("libonnx-testdata is not installed");
        }
    }
    end(&tally);
}

static void newest_node_tests_pass_or_are_excepted(void)
{
    struct tally tally;
    begin(&tally, newest_exceptions, COUNT(newest_exceptions), test_arg(2));
    REQUIRE(test_arg(1) && take_folder(&tally, test_arg(1)));
    end(&tally);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {T(node_tests_pass_or_are_excepted),
                                             T(models_pass_or_are_excepted),
                                             T(newest_node_tests_pass_or_are_excepted)};
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

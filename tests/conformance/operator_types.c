/* What docs/operators.md says of each operator, asked of those who know: lines of words.
 *
 *     operator_types tell tests/ops FOLDER …
 *
 *     op add CpuRef f32 s8    types of its first input: CpuRef's as the operator's definition has
 *                             them; another backend's are those of which it takes a node
 *     onnx Conv conv2d        the only operator that a node of ONNX became, but for moves
 *
 * The nodes are the golden cases of tests/ops, each also with the other types of the definition
 * where its shape rule allows them. FOLDER: models of one ONNX node. Backends see no instructions
 * beyond the least, and the OpenCL library of the tests, so that every machine says the same. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/parse/onnx/onnx_reader.h"
#include "tests/conformance/golden.h"
#include "tests/conformance/one_node.h"
#include "tests/support/backends.h"
#include "tests/support/parse_file.h"
#include "tests/support/test.h"

#define BACKENDS_MAX 8

static const char *const symbols[] = {
#define OP(ID, symbol) #symbol,
#include "inferd/op_list.inc"
#undef OP
};

/* ---- types ---- */

struct question {
    const struct ifd_backend *backend;
    struct ifd_host host;
    struct ifd_device *device;
    uint32_t dtypes; /* IFD_BITs: the answer */
};

/* The only input that is not made constant, as weights are; AS_GIVEN: none is. */
enum { AS_GIVEN = -1, FREE_INPUTS = 2 };

static bool takes(const struct question *q, const struct golden_case *golden, int free_input)
{
    static struct one_node node; /* large */
    one_node_init(&node, golden->name, golden->op, golden->attrs);
    for (uint32_t i = 0; i < golden->input_count; i++) {
        const struct golden_tensor *tensor = &golden->input[i];
        one_node_add_input(&node, tensor->is_absent ? NULL : &tensor->desc, tensor->data,
                           tensor->is_constant ||
                               (free_input != AS_GIVEN && i != (uint32_t)free_input));
    }
    for (uint32_t i = 0; i < golden->output_count; i++) {
        one_node_add_output(&node, &golden->output[i].desc);
    }
    const bool is_taken = q->backend->cost(q->device, &node.node.view, NULL) > 0;
    one_node_finish(&node);
    return is_taken;
}

static bool is_quantized(enum ifd_dtype dtype)
{
    return dtype == IFD_S8 || dtype == IFD_U8 || dtype == IFD_S16;
}

/* The same call on another type: of input 0, and of what has its type. Its content is not asked
 * for. False if the shape rule refuses it, or a constant has the type. */
static bool retype(const struct golden_case *from, enum ifd_dtype dtype, struct golden_case *to)
{
    const struct ifd_op_def *def = ifd_op_def(from->op);
    struct ifd_operand operand[GOLDEN_OPERANDS] = {{0}};
    struct ifd_desc output[GOLDEN_OPERANDS];
    struct ifd_err err = {0};
    const enum ifd_dtype was = from->input[0].desc.dtype;
    *to = *from;
    for (uint32_t i = 0; i < from->input_count + from->output_count; i++) {
        struct golden_tensor *tensor =
            i < from->input_count ? &to->input[i] : &to->output[i - from->input_count];
        const bool decides = i < from->input_count && i > 0 && (def->shape_inputs >> i & 1) != 0;
        if (tensor->is_absent || tensor->desc.dtype != was || decides) {
            continue;
        }
        if (tensor->is_constant) {
            return false;
        }
        tensor->desc.dtype = dtype;
        if (!is_quantized(dtype) || !is_quantized(was)) {
            tensor->desc.quant.count = 0;
        }
    }
    for (uint32_t i = 0; i < to->input_count; i++) {
        const struct golden_tensor *tensor = &to->input[i];
        const bool is_read = tensor->is_constant || (def->shape_inputs >> i & 1) != 0;
        operand[i].desc = tensor->is_absent ? NULL : &tensor->desc;
        operand[i].data =
            is_read ? (struct ifd_bytes){tensor->data, tensor->bytes} : (struct ifd_bytes){NULL, 0};
    }
    for (uint32_t i = 0; i < to->output_count; i++) {
        output[i] = to->output[i].desc;
    }
    const struct ifd_infer question = {.def = def,
                                       .attrs = to->attrs,
                                       .input = operand,
                                       .input_count = to->input_count,
                                       .output_count = to->output_count};
    return def->infer(&question, output, &err) == IFD_OK;
}

/* Have the inputs behind the first one their types still? Then their content is known. */
static bool keeps_rest(const struct golden_case *from, const struct golden_case *to)
{
    bool keeps = true;
    for (uint32_t i = 1; i < from->input_count; i++) {
        keeps = keeps && from->input[i].desc.dtype == to->input[i].desc.dtype;
    }
    return keeps;
}

static void ask(struct golden_case *golden, void *context)
{
    static struct golden_case other; /* large */
    struct question *q = context;
    if (golden->input_count == 0 || golden->input[0].is_absent) {
        return;
    }
    const enum ifd_dtype dtype = golden->input[0].desc.dtype;
    for (int i = AS_GIVEN; i < FREE_INPUTS && i < (int)golden->input_count; i++) {
        if (!(q->dtypes & IFD_BIT(dtype)) && takes(q, golden, i)) {
            q->dtypes |= IFD_BIT(dtype);
        }
    }
    for (int d = 0; d < IFD_DTYPE_COUNT; d++) {
        const bool is_open = (ifd_op_def(golden->op)->dtypes & ~q->dtypes & IFD_BIT(d)) != 0;
        if (is_open && retype(golden, (enum ifd_dtype)d, &other) &&
            (takes(q, &other, AS_GIVEN) || (keeps_rest(golden, &other) && takes(q, &other, 0)))) {
            q->dtypes |= IFD_BIT(d);
        }
    }
}

static void open_backend(struct question *q, const struct ifd_backend *backend)
{
    struct ifd_err err = {0};
    *q = (struct question){.backend = backend};
    q->host = (struct ifd_host){.bytes = sizeof(struct ifd_host),
                                .alloc = ifd_alloc_system(),
                                .op_def = ifd_op_def,
                                .fail = ifd_fail};
    REQUIRE_OK(backend->open(&q->host, &q->device, &err), &err);
}

static void print_types(const char *folder)
{
    struct question question[BACKENDS_MAX];
    uint32_t count = 0;
    const struct ifd_backend *const *backends = test_backends(&count);
    REQUIRE(count <= BACKENDS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        open_backend(&question[i], backends[i]);
    }
    for (int op = 0; op < IFD_OP_COUNT; op++) {
        char path[4096];
        (void)snprintf(path, sizeof(path), "%s/%s.json", folder, symbols[op]);
        FILE *file = fopen(path, "rb");
        for (uint32_t i = 0; i < count; i++) {
            struct question *q = &question[i];
            const struct ifd_op_def *def = ifd_op_def((enum ifd_op)op);
            q->dtypes = 0;
            if (q->backend->per_node) {
                q->dtypes = def->ref ? def->dtypes : 0;
            } else if (file) {
                (void)golden_for_each(path, ask, q);
            }
            (void)printf("op %s %s", symbols[op], q->backend->name);
            for (int d = 0; d < IFD_DTYPE_COUNT; d++) {
                if ((q->dtypes & IFD_BIT(d)) != 0) {
                    (void)printf(" %s", ifd_dtype_name((enum ifd_dtype)d));
                }
            }
            (void)printf("\n");
        }
        if (file) {
            fclose(file);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        backends[i]->close(question[i].device);
    }
}

/* ---- ONNX ---- */

/* Data are laid out anew, or not at all. */
static bool only_moves(enum ifd_op op)
{
    return op == IFD_OP_RESHAPE || op == IFD_OP_TRANSPOSE;
}

static bool reads_an_input(const struct ifd_graph *graph, const struct ifd_node *node)
{
    bool found = false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        found |= node->input[i] != IFD_NONE && !graph->value[node->input[i]].is_constant;
    }
    return found;
}

/* The operator of a graph of one node, moves and what is constant aside; IFD_OP_COUNT: there are
 * more, or none. */
static enum ifd_op only_op(const struct ifd_graph *graph)
{
    enum ifd_op only = IFD_OP_COUNT;
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct ifd_node *node = &graph->node[i];
        if ((graph->node_count == 1 || !only_moves(node->op)) && reads_an_input(graph, node)) {
            only = node->op;
            count++;
        }
    }
    return count == 1 ? only : IFD_OP_COUNT;
}

static void print_model(const char *path)
{
    struct parse_file f;
    struct ifd_arena arena;
    struct ifd_onnx_model model;
    parse_file_open(&f, path);
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    if (f.code == IFD_OK && !f.parsed.cut.is_cut && only_op(&f.graph) != IFD_OP_COUNT &&
        ifd_onnx_read(f.file, NULL, &parse_limits, &arena, &model, &f.err) == IFD_OK &&
        model.graph.node_count == 1 && model.graph.node[0].domain.size == 0) {
        const struct ifd_str name = model.graph.node[0].op;
        (void)printf("onnx %.*s %s\n", (int)name.size, name.data, symbols[only_op(&f.graph)]);
    }
    ifd_arena_finish(&arena);
    parse_file_close(&f);
}

/* Files of a folder, and model.onnx of its folders. */
static void print_models(const char *folder)
{
    DIR *dir = opendir(folder);
    for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        char path[4096];
        const char *end = strrchr(entry->d_name, '.');
        const bool is_file = end && strcmp(end, ".onnx") == 0;
        (void)snprintf(path, sizeof(path), "%s/%s%s", folder, entry->d_name,
                       is_file ? "" : "/model.onnx");
        FILE *file = entry->d_name[0] != '.' ? fopen(path, "rb") : NULL;
        if (file) {
            fclose(file);
            print_model(path);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

static void tell(void)
{
    print_types(test_arg(0));
    for (size_t i = 1; test_arg(i); i++) {
        print_models(test_arg(i));
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(tell),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

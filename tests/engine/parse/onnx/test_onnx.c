/* ONNX files written byte by byte: what is accepted, what is refused, and in which words. What
 * networks compute is tests/acceptance/test_networks.py's. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/str.h"
#include "engine/parse/onnx/wire.h"
#include "tests/support/parse_file.h"
#include "tests/support/test.h"

/* ---- a writer of protobuf ---- */

struct message {
    uint8_t data[32768];
    size_t size;
};

static void put(struct message *m, const void *data, size_t size)
{
    REQUIRE(m->size + size <= sizeof(m->data));
    memcpy(m->data + m->size, data, size);
    m->size += size;
}

static void put_varint(struct message *m, uint64_t value)
{
    do {
        const uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        put(m, &byte, 1);
        value >>= 7;
    } while (value > 0);
}

static void number(struct message *m, uint32_t field, uint64_t value)
{
    put_varint(m, (uint64_t)field << 3);
    put_varint(m, value);
}

static void bytes(struct message *m, uint32_t field, const void *data, size_t size)
{
    put_varint(m, (uint64_t)field << 3 | 2);
    put_varint(m, size);
    put(m, data, size);
}

static void text(struct message *m, uint32_t field, const char *s)
{
    bytes(m, field, s, strlen(s));
}

static void inner(struct message *m, uint32_t field, const struct message *part)
{
    bytes(m, field, part->data, part->size);
}

/* ---- parts of a model ---- */

static struct message node(const char *op, const char *a, const char *b, const char *y)
{
    struct message m = {.size = 0};
    text(&m, 1, a);
    if (b) {
        text(&m, 1, b);
    }
    text(&m, 2, y);
    text(&m, 4, op);
    return m;
}

/* dim: 0 ends the list, -1 is a symbol. */
static struct message port(const char *name, int type, const int64_t *dim)
{
    struct message shape = {.size = 0}, tensor = {.size = 0}, kind = {.size = 0}, m = {.size = 0};
    for (; *dim != 0; dim++) {
        struct message size = {.size = 0};
        if (*dim < 0) {
            text(&size, 2, "n");
        } else {
            number(&size, 1, (uint64_t)*dim);
        }
        inner(&shape, 1, &size);
    }
    number(&tensor, 1, (uint64_t)type);
    inner(&tensor, 2, &shape);
    inner(&kind, 1, &tensor);
    text(&m, 1, name);
    inner(&m, 2, &kind);
    return m;
}

static struct message model(const struct message *graph, uint64_t opset)
{
    struct message m = {.size = 0}, set = {.size = 0};
    number(&set, 2, opset);
    number(&m, 1, 8);
    inner(&m, 7, graph);
    inner(&m, 8, &set);
    return m;
}

static const int64_t two_by_three[] = {2, 3, 0};

/* y = op(x) or op(x, w), w a constant of six f32 */
static struct message small(const char *op, bool has_constant)
{
    struct message g = {.size = 0}, w = {.size = 0};
    const float ones[6] = {1, 1, 1, 1, 1, 1};
    const struct message n = node(op, "x", has_constant ? "w" : NULL, "y");
    inner(&g, 1, &n);
    if (has_constant) {
        number(&w, 1, 2);
        number(&w, 1, 3);
        number(&w, 2, 1);
        text(&w, 8, "w");
        bytes(&w, 9, ones, sizeof(ones));
        inner(&g, 5, &w);
    }
    const struct message x = port("x", 1, two_by_three), y = port("y", 1, two_by_three);
    inner(&g, 11, &x);
    inner(&g, 12, &y);
    return g;
}

static void expect_refused(const struct message *m, enum ifd_code code, const char *part)
{
    struct ifd_err err = {0};
    EXPECT_CODE(parse_bytes((struct ifd_bytes){.data = m->data, .size = m->size}, &err), code,
                &err);
    EXPECT_HAS(err.text, part);
    EXPECT(strchr(err.text, '\n') == NULL);
}

/* ---- attributes ---- */

static void add_int(struct message *node, const char *name, int64_t value)
{
    struct message a = {.size = 0};
    text(&a, 1, name);
    number(&a, 3, (uint64_t)value);
    inner(node, 5, &a);
}

static void add_ints(struct message *node, const char *name, const int64_t *value, size_t count)
{
    struct message a = {.size = 0};
    text(&a, 1, name);
    for (size_t i = 0; i < count; i++) {
        number(&a, 8, (uint64_t)value[i]);
    }
    inner(node, 5, &a);
}

static void add_floats(struct message *node, const char *name, const float *value, size_t count)
{
    struct message a = {.size = 0};
    text(&a, 1, name);
    bytes(&a, 7, value, count * sizeof(*value));
    inner(node, 5, &a);
}

/* A tensor as a constant of a graph (field 5), or named as an attribute of a node. */
static struct message tensor(const char *name, int type, const int64_t *dim, const void *data,
                             size_t size)
{
    struct message m = {.size = 0};
    for (; *dim != 0; dim++) {
        number(&m, 1, (uint64_t)*dim);
    }
    number(&m, 2, (uint64_t)type);
    text(&m, 8, name);
    bytes(&m, 9, data, size);
    return m;
}

static void add_list(struct message *node, const char *name, int type, const void *data,
                     int64_t count, size_t size)
{
    const struct message list = tensor("", type, (const int64_t[]){count, 0}, data, size);
    struct message a = {.size = 0};
    text(&a, 1, name);
    inner(&a, 5, &list);
    inner(node, 5, &a);
}

/* A model read into a graph of its own. Give back: the arena. */
struct reading {
    struct ifd_arena arena;
    struct ifd_graph graph;
    struct ifd_parsed parsed;
    struct ifd_err err;
    enum ifd_code code;
};

static void read_model(struct reading *r, const struct message *m,
                       const struct ifd_parse_options *options)
{
    *r = (struct reading){.code = IFD_OK};
    ifd_arena_init(&r->arena, ifd_alloc_system(), 0);
    ifd_graph_init(&r->graph, &r->arena);
    r->code = ifd_parse((struct ifd_bytes){.data = m->data, .size = m->size}, options, &r->graph,
                        &r->parsed, &r->err);
}

/* ---- tests ---- */

static void a_model_of_one_node_is_read(void)
{
    for (int has_constant = 0; has_constant < 2; has_constant++) {
        const struct message g = small(has_constant ? "Add" : "Relu", has_constant != 0);
        const struct message m = model(&g, 17);
        struct ifd_err err = {0};
        EXPECT_CODE(parse_bytes((struct ifd_bytes){.data = m.data, .size = m.size}, &err), IFD_OK,
                    &err);
    }
}

/* A first reading, and options by which later ones use what it read. */
static void read_and_keep(struct reading *first, const struct message *m,
                          struct ifd_parse_options *options, struct ifd_parse_kept *kept)
{
    *kept = (struct ifd_parse_kept){.read = NULL};
    ifd_arena_init(&kept->arena, ifd_alloc_system(), 0);
    options->kept = kept;
    read_model(first, m, options);
    REQUIRE_OK(first->code, &first->err);
}

/* Wherever in memory it lies, its copy is made once. */
static void later_readings_use_the_constants_of_the_first(void)
{
    static const char *const shift[] = {"", "x", "xx", "xxx"};
    for (size_t i = 0; i < sizeof(shift) / sizeof(shift[0]); i++) {
        const struct message rest = small("Add", true);
        struct message g = {.size = 0};
        text(&g, 10, shift[i]);
        put(&g, rest.data, rest.size);
        const struct message m = model(&g, 13);
        struct ifd_parse_options options = parse_options;
        struct ifd_parse_kept kept;
        struct reading first, second;
        read_and_keep(&first, &m, &options, &kept);
        REQUIRE(kept.read && kept.content == &first.arena);
        const size_t held = ifd_arena_held_bytes(&kept.arena);
        read_model(&second, &m, &options);
        REQUIRE_OK(second.code, &second.err);
        EXPECT_INT(ifd_arena_held_bytes(&kept.arena), held);
        const struct ifd_graph *x = &first.graph, *y = &second.graph;
        REQUIRE(x->node_count == 1 && y->node_count == 1);
        const struct ifd_value *w = &y->value[y->node[0].input[1]];
        EXPECT(w->is_constant && w->data.data == x->value[x->node[0].input[1]].data.data);
        ifd_arena_finish(&second.arena);
        ifd_arena_finish(&first.arena);
        ifd_arena_finish(&kept.arena);
    }
}

/* One of 4-bit floats is larger than what is computed while a file is read: a node decodes it. */
static void later_readings_decode_what_the_first_left_to_a_run(void)
{
    struct message g = small("Relu", false), w = {.size = 0};
    static const uint8_t codes[24000];
    number(&w, 1, 2 * sizeof(codes));
    number(&w, 2, 23);
    text(&w, 8, "w");
    bytes(&w, 9, codes, sizeof(codes));
    inner(&g, 5, &w);
    const struct message m = model(&g, 23);
    struct ifd_parse_options options = parse_options;
    struct ifd_parse_kept kept;
    struct reading first, second;
    read_and_keep(&first, &m, &options, &kept);
    REQUIRE(kept.read && first.graph.node_count > 1);
    read_model(&second, &m, &options);
    REQUIRE_OK(second.code, &second.err);
    EXPECT_INT(second.graph.node_count, first.graph.node_count);
    ifd_arena_finish(&second.arena);
    ifd_arena_finish(&first.arena);
    ifd_arena_finish(&kept.arena);
}

static void every_cut_is_refused_or_read(void)
{
    const struct message g = small("Add", true);
    const struct message m = model(&g, 17);
    for (size_t size = 3; size < m.size; size++) {
        struct ifd_err err = {0};
        const enum ifd_code code =
            parse_bytes((struct ifd_bytes){.data = m.data, .size = size}, &err);
        EXPECT(code == IFD_CORRUPT || code == IFD_UNSUPPORTED);
        EXPECT(err.text[0] != '\0');
    }
}

static void all_missing_operators_are_named_with_counts(void)
{
    struct message g = small("Warp", false);
    const struct message again = node("Warp", "y", NULL, "z"), other = node("Weft", "y", NULL, "u");
    inner(&g, 1, &again);
    inner(&g, 1, &other);
    const struct message m = model(&g, 17);
    expect_refused(
        &m, IFD_UNSUPPORTED,
        "operators that are not supported: Warp (2, first node 0), Weft (1, first node 2)");
}

static void a_file_for_one_cpu_says_how_to_save_it(void)
{
    struct message blocks = node("Conv", "x", NULL, "z"), g = small("Relu", false);
    text(&blocks, 7, "com.microsoft.nchwc");
    inner(&g, 1, &blocks);
    const struct message m = model(&g, 17);
    expect_refused(&m, IFD_UNSUPPORTED,
                   "operators that are not supported: com.microsoft.nchwc.Conv (1, first node 1); "
                   "ONNX Runtime saved this file for one kind of CPU, save it with "
                   "ORT_ENABLE_EXTENDED");
}

static void what_cannot_be_served_says_what_to_do(void)
{
    static const struct {
        const char *op, *domain, *advice;
    } cases[] = {
        {"DictVectorizer", "ai.onnx.ml",
         "a request has tensors, no maps: convert what follows, and send its columns"},
        {"CastMap", "ai.onnx.ml",
         "a request has tensors, no maps: convert what follows, and send its columns"},
        {"BeamSearch", "com.microsoft", "export the decoder alone, and let the client search"},
        {"SparseAttention", "com.microsoft",
         "its caches are inputs and outputs in one place, export with GroupQueryAttention"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct message search = node(cases[i].op, "x", NULL, "z"), g = small("Relu", false);
        char reason[IFD_ERR_TEXT_BYTES];
        text(&search, 7, cases[i].domain);
        inner(&g, 1, &search);
        const struct message m = model(&g, 17);
        snprintf(reason, sizeof(reason),
                 "operators that are not supported: %s.%s (1, first node 1); %s", cases[i].domain,
                 cases[i].op, cases[i].advice);
        expect_refused(&m, IFD_UNSUPPORTED, reason);
    }
}

static void names_of_the_file_are_one_line(void)
{
    const struct message g = small("Re\nlu\x1b[2J", false);
    const struct message m = model(&g, 17);
    expect_refused(&m, IFD_UNSUPPORTED, "Re?lu?[2J (1, first node 0)");
}

/* Clients ask by them. */
static void names_of_ports_are_whole(void)
{
    static const char in[] =
        "StatefulPartitionedCall/model/bidirectional/forward_lstm/strided_slice"
        "/\xe9\x9f\xb3/1";
    static const char out[] =
        "StatefulPartitionedCall/model/bidirectional/forward_lstm/strided_slice"
        "/\xff\n/2";
    struct message g = {.size = 0};
    const struct message n = node("Relu", in, NULL, out);
    const struct message x = port(in, 1, two_by_three), y = port(out, 1, two_by_three);
    inner(&g, 1, &n);
    inner(&g, 11, &x);
    inner(&g, 12, &y);
    const struct message m = model(&g, 17);
    struct reading r;
    read_model(&r, &m, &parse_options);
    REQUIRE_OK(r.code, &r.err);
    EXPECT_TEXT(r.parsed.input[0].name, in);
    EXPECT_TEXT(r.graph.value[r.graph.input[0]].name, in);
    EXPECT_TEXT(r.parsed.output[0].name, "StatefulPartitionedCall/model/bidirectional/forward_lstm/"
                                         "strided_slice/?"
                                         "?/2");
    ifd_arena_finish(&r.arena);
}

static void values_are_made_once_and_before_they_are_read(void)
{
    struct message twice = small("Relu", false);
    const struct message n = node("Abs", "x", NULL, "y");
    inner(&twice, 1, &n);
    const struct message m = model(&twice, 17);
    expect_refused(&m, IFD_CORRUPT, "Abs (node 1, output \"y\"): value \"y\" is made twice");

    struct message early = small("Relu", false);
    const struct message reads = node("Abs", "later", NULL, "z");
    inner(&early, 1, &reads);
    const struct message n2 = model(&early, 17);
    expect_refused(&n2, IFD_CORRUPT, "input 0 \"later\" is made by no node before it");
}

/* Whether an initializer is a constant or the value of an input that the caller names. */
static void initializers_are_given_once(void)
{
    static const int64_t dims[] = {2, 3, 0};
    const float ones[6] = {1, 1, 1, 1, 1, 1};
    const struct ifd_input_shape named = {.name = "w", .shape = {.rank = 2, .dim = {2, 3}}};
    struct ifd_parse_options options = {.limits = &parse_limits, .shape = &named};
    for (uint32_t i = 0; i < 4; i++) {
        struct message g = small("Add", true);
        const struct message w = port("w", 1, dims),
                             again = tensor("w", 1, dims, ones, sizeof(ones));
        inner(&g, 11, &w);
        if (i >= 2) {
            inner(&g, 5, &again);
        }
        const struct message m = model(&g, 17);
        struct reading r;
        options.shape_count = i % 2;
        read_model(&r, &m, &options);
        EXPECT_CODE(r.code, i < 2 ? IFD_OK : IFD_CORRUPT, &r.err);
        EXPECT(i < 2 || strstr(r.err.text, "value \"w\" is made twice"));
        ifd_arena_finish(&r.arena);
    }
}

static void values_of_inputs_have_their_types(void)
{
    static const int64_t dims[] = {3, 0};
    static const uint16_t half[] = {0x3c00, 0xc000, 0x0001};
    static const double real[] = {1, -2, 0.25};
    static const struct ifd_input_shape named = {.name = "x", .shape = {.rank = 1, .dim = {3}}};
    static const struct {
        int type; /* of the file */
        const void *data;
        size_t size;
    } rows[] = {{10, half, sizeof(half)}, {16, half, sizeof(half)}, {11, real, sizeof(real)}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct message g = {.size = 0};
        const struct message n = node("Relu", "x", NULL, "y"), x = port("x", rows[i].type, dims),
                             y = port("y", rows[i].type, dims),
                             value = tensor("x", rows[i].type, dims, rows[i].data, rows[i].size);
        inner(&g, 1, &n);
        inner(&g, 5, &value);
        inner(&g, 11, &x);
        inner(&g, 12, &y);
        const struct message m = model(&g, 17);
        const struct ifd_parse_options options = {
            .limits = &parse_limits, .shape = &named, .shape_count = 1};
        struct reading r;
        read_model(&r, &m, &options);
        REQUIRE_OK(r.code, &r.err);
        REQUIRE(r.parsed.input[0].value.size == rows[i].size);
        EXPECT(memcmp(r.parsed.input[0].value.data, rows[i].data, rows[i].size) == 0);
        ifd_arena_finish(&r.arena);
    }
}

/* Converters to half precision append their casts at the end. */
static void nodes_are_sorted_behind_what_makes_their_inputs(void)
{
    struct message g = {.size = 0};
    const struct message last = node("Neg", "b", NULL, "y"), middle = node("Abs", "a", NULL, "b"),
                         first = node("Relu", "x", NULL, "a"), in = port("x", 1, two_by_three),
                         out = port("y", 1, two_by_three);
    inner(&g, 1, &last);
    inner(&g, 1, &middle);
    inner(&g, 1, &first);
    inner(&g, 11, &in);
    inner(&g, 12, &out);
    const struct message m = model(&g, 17);
    struct reading r;
    read_model(&r, &m, &parse_options);
    REQUIRE_OK(r.code, &r.err);
    EXPECT_INT(r.graph.node_count, 3);
    EXPECT_INT(r.graph.node[0].op, IFD_OP_RELU);
    EXPECT_INT(r.graph.node[1].op, IFD_OP_ABS);
    EXPECT_INT(r.graph.node[2].op, IFD_OP_NEG);
    ifd_arena_finish(&r.arena);

    struct message circle = small("Relu", false);
    const struct message one = node("Abs", "p", NULL, "q"), two = node("Abs", "q", NULL, "p");
    inner(&circle, 1, &one);
    inner(&circle, 1, &two);
    const struct message c = model(&circle, 17);
    expect_refused(&c, IFD_CORRUPT, "input 0 \"p\" is made by no node before it");
}

/* y = Neg(If(true): |p|), p = Relu(x): inside the branches y is another value. */
static void sorted_nodes_do_not_need_what_their_graphs_hide(void)
{
    static const char *const name[] = {"then_branch", "else_branch"};
    struct message g = {.size = 0}, branch = {.size = 0}, choice = node("If", "c", NULL, "r");
    const struct message within = node("Abs", "p", NULL, "y"),
                         of_branch = port("y", 1, two_by_three);
    const struct message last = node("Neg", "r", NULL, "y"), first = node("Relu", "x", NULL, "p"),
                         in = port("x", 1, two_by_three), out = port("y", 1, two_by_three),
                         c = tensor("c", 9, (const int64_t[]){0}, "\1", 1);
    inner(&branch, 1, &within);
    inner(&branch, 12, &of_branch);
    for (size_t i = 0; i < 2; i++) {
        struct message a = {.size = 0};
        text(&a, 1, name[i]);
        inner(&a, 6, &branch);
        inner(&choice, 5, &a);
    }
    inner(&g, 1, &choice);
    inner(&g, 1, &last);
    inner(&g, 1, &first);
    inner(&g, 5, &c);
    inner(&g, 11, &in);
    inner(&g, 12, &out);
    const struct message m = model(&g, 17);
    struct reading r;
    read_model(&r, &m, &parse_options);
    REQUIRE_OK(r.code, &r.err);
    EXPECT_INT(r.graph.node_count, 3);
    EXPECT_INT(r.graph.node[0].op, IFD_OP_RELU);
    EXPECT_INT(r.graph.node[2].op, IFD_OP_NEG);
    ifd_arena_finish(&r.arena);
}

/* Before opset 7 attribute "axis" said where the second operand lies. */
static void old_operands_lie_along_an_axis(void)
{
    for (uint64_t opset = 6; opset < 8; opset++) {
        struct message g = {.size = 0}, w = {.size = 0}, axis = {.size = 0};
        struct message add = node("Add", "x", "w", "y");
        const float ones[2] = {1, 1};
        text(&axis, 1, "axis");
        number(&axis, 3, 0);
        number(&axis, 20, 2);
        inner(&add, 5, &axis);
        inner(&g, 1, &add);
        number(&w, 1, 2);
        number(&w, 2, 1);
        text(&w, 8, "w");
        bytes(&w, 9, ones, sizeof(ones));
        inner(&g, 5, &w);
        const struct message x = port("x", 1, two_by_three), y = port("y", 1, two_by_three);
        inner(&g, 11, &x);
        inner(&g, 12, &y);
        const struct message m = model(&g, opset);
        if (opset < 7) {
            struct ifd_err err = {0};
            EXPECT_CODE(parse_bytes((struct ifd_bytes){.data = m.data, .size = m.size}, &err),
                        IFD_OK, &err);
        } else {
            expect_refused(&m, IFD_CORRUPT, "shapes [2,3] and [2] do not broadcast");
        }
    }
}

static void a_constant_has_as_many_elements_as_its_shape_says(void)
{
    struct message g = small("Relu", false), w = {.size = 0};
    number(&w, 1, 1000000000);
    number(&w, 2, 1);
    text(&w, 8, "w");
    bytes(&w, 9, "\0\0\x80\x3f", 4);
    inner(&g, 5, &w);
    const struct message m = model(&g, 17);
    expect_refused(&m, IFD_CORRUPT, "constant \"w\" of shape [1000000000] has 1 elements");
}

/* Adds a constant of six numbers whose content lies in a file beside, from an offset on. */
static void add_outside(struct message *g, const char *name, struct ifd_str location,
                        const char *offset)
{
    const struct {
        const char *key;
        struct ifd_str value;
    } pairs[] = {{"location", location}, {"offset", ifd_str(offset)}, {"length", ifd_str("24")}};
    struct message w = {.size = 0};
    number(&w, 1, 2);
    number(&w, 1, 3);
    number(&w, 2, 1);
    text(&w, 8, name);
    for (size_t i = 0; i < 3; i++) {
        struct message pair = {.size = 0};
        text(&pair, 1, pairs[i].key);
        bytes(&pair, 2, pairs[i].value.data, pairs[i].value.size);
        inner(&w, 13, &pair);
    }
    number(&w, 14, 1);
    inner(g, 5, &w);
}

static struct message outside(const char *location, const char *offset)
{
    struct message g = small("Relu", false);
    add_outside(&g, "w", ifd_str(location), offset);
    return model(&g, 17);
}

static void constants_may_lie_in_files_beside(void)
{
    static _Alignas(IFD_TENSOR_ALIGN) const uint8_t content[128] = {0};
    const struct ifd_external_file file = {"weights", {content, sizeof(content)}};
    const struct ifd_parse_options options = {
        .limits = &parse_limits, .external = &file, .external_count = 1};
    static const struct {
        const char *location, *offset, *error;
    } rows[] = {
        {"weights", "0", NULL},
        {"./weights", "104", NULL},
        {"weights", "105", "24 bytes from 105 on for a constant, but \"weights\" has 128"},
        {"weights", "18446744073709551615", "but \"weights\" has 128"},
        {"weights", "-1", "is no number"},
        {"weights", "18446744073709551616", "is no number"},
        {"others", "0", "constant \"w\" lies in \"others\", which is not beside"},
        {"", "0", "constant \"w\" lies in \"?\", which is not beside"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct message m = outside(rows[i].location, rows[i].offset);
        struct reading r;
        read_model(&r, &m, &options);
        EXPECT_INT(r.code == IFD_OK, rows[i].error == NULL);
        EXPECT(!rows[i].error || strstr(r.err.text, rows[i].error));
        ifd_arena_finish(&r.arena);
    }
}

static void files_beside_are_named_once(void)
{
    static const char *const location[] = {"m", "c", "x", "./c", "a", "m", "xx", "b", "a"};
    static const char *const want[] = {"a", "b", "c", "m", "x", "xx"};
    struct message g = small("Relu", false);
    for (size_t i = 0; i < sizeof(location) / sizeof(location[0]); i++) {
        add_outside(&g, (const char[]){(char)('0' + i), '\0'}, ifd_str(location[i]), "0");
    }
    const struct message m = model(&g, 17);
    struct ifd_external_names names;
    struct ifd_arena arena;
    struct ifd_err err = {0};
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    REQUIRE_OK(ifd_parse_externals((struct ifd_bytes){.data = m.data, .size = m.size},
                                   &parse_limits, &arena, &names, &err),
               &err);
    REQUIRE(names.count == sizeof(want) / sizeof(want[0]));
    for (uint32_t i = 0; i < names.count; i++) {
        EXPECT_TEXT(names.name[i], want[i]);
    }
    ifd_arena_finish(&arena);
}

static void a_name_of_a_file_beside_has_no_nul(void)
{
    struct message g = small("Relu", false);
    add_outside(&g, "w", (struct ifd_str){.data = "w\0x", .size = 3}, "0");
    const struct message m = model(&g, 17);
    expect_refused(&m, IFD_CORRUPT, "whose name has a NUL");
}

/* A function "F" of the domain "own", of one node, whose domain it imports. */
static struct message function(const char *op, const char *domain, const char *imports)
{
    struct message f = {.size = 0}, n = node(op, "x", NULL, "y"), set = {.size = 0};
    text(&n, 7, domain);
    text(&set, 1, imports);
    number(&set, 2, 17);
    text(&f, 1, "F");
    text(&f, 4, "x");
    text(&f, 5, "y");
    inner(&f, 7, &n);
    inner(&f, 9, &set);
    text(&f, 10, "own");
    return f;
}

static void functions_that_call_themselves_or_nobody_are_refused(void)
{
    static const struct {
        const char *op, *domain, *imports;
        enum ifd_code code;
        const char *error;
    } rows[] = {
        {"F", "own", "own", IFD_TOO_LARGE, "functions call each other more than 32 deep"},
        {"G", "own", "own", IFD_UNSUPPORTED,
         "operators that are not supported: own.G (1, first node 0)"},
        {"Relu", "", "own", IFD_UNSUPPORTED, "the function names no opset of ONNX"},
        {"Relu", "", "", IFD_OK, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct message x = port("x", 1, two_by_three), y = port("y", 1, two_by_three);
        struct message g = {.size = 0}, n = node("F", "x", NULL, "y");
        const struct message f = function(rows[i].op, rows[i].domain, rows[i].imports);
        text(&n, 7, "own");
        inner(&g, 1, &n);
        inner(&g, 11, &x);
        inner(&g, 12, &y);
        struct message m = model(&g, 17);
        inner(&m, 25, &f);
        expect_refused(&m, rows[i].code, rows[i].error);
    }
}

static void functions_that_nothing_calls_may_have_any_operators(void)
{
    struct message g = small("Relu", false);
    struct message m = model(&g, 17);
    const struct message f = function("G", "own", "own");
    inner(&m, 25, &f);
    expect_refused(&m, IFD_OK, "");
}

static void open_dimensions_are_declared_and_get_sizes(void)
{
    static const int64_t dims[] = {-1, 3, -1, 0};
    struct message g = {.size = 0};
    const struct message n = node("Relu", "x", NULL, "y");
    const struct message x = port("x", 1, dims);
    const struct message y = port("y", 1, dims);
    inner(&g, 1, &n);
    inner(&g, 11, &x);
    inner(&g, 12, &y);
    const struct message m = model(&g, 17);
    const struct ifd_parse_options options = {
        .limits = &parse_limits, .open_first = 2, .open_other = 5};
    struct reading r;
    read_model(&r, &m, &options);
    REQUIRE_OK(r.code, &r.err);
    const struct ifd_shape *shape = &r.graph.value[r.graph.output[0]].desc.shape;
    EXPECT(r.parsed.opens_first && r.parsed.opens_others);
    EXPECT_INT(r.parsed.input[0].desc.shape.dim[2], IFD_DIM_ANY);
    EXPECT_INT(r.parsed.output[0].desc.shape.dim[0], IFD_DIM_ANY);
    EXPECT_INT(r.parsed.output[0].desc.shape.dim[1], 3);
    EXPECT_INT(shape->dim[0], 2);
    EXPECT_INT(shape->dim[2], 2); /* one symbol, one size */
    ifd_arena_finish(&r.arena);
}

static void a_small_file_makes_no_large_tensor(void)
{
    /* a constant of 2^40 elements from two numbers: ConstantOfShape, then what is larger still */
    struct message g = {.size = 0}, shape = {.size = 0};
    const int64_t dims[2] = {1 << 20, 1 << 20};
    const struct message n = node("ConstantOfShape", "s", NULL, "y");
    const struct message y = port("y", 1, two_by_three);
    number(&shape, 1, 2);
    number(&shape, 2, 7);
    text(&shape, 8, "s");
    bytes(&shape, 9, dims, sizeof(dims));
    inner(&g, 1, &n);
    inner(&g, 5, &shape);
    inner(&g, 12, &y);
    const struct message m = model(&g, 17);
    expect_refused(&m, IFD_TOO_LARGE, "[1048576,1048576]");
}

static void add_f32(struct message *node, const char *name, float value)
{
    struct message a = {.size = 0};
    text(&a, 1, name);
    put_varint(&a, 2 << 3 | 5);
    put(&a, &value, sizeof(value));
    inner(node, 5, &a);
}

enum { DRAWN = 2000 };

/* A graph's node whose result "y" has so many random numbers; seed < 0: none. */
static void add_random(struct message *g, const char *op, const char *y, int64_t count, float seed)
{
    struct message n = {.size = 0}, shape = {.size = 0};
    text(&n, 2, y);
    text(&n, 4, op);
    text(&shape, 1, "shape");
    number(&shape, 8, (uint64_t)count);
    inner(&n, 5, &shape);
    add_f32(&n, strcmp(op, "RandomUniform") == 0 ? "low" : "mean", 2);
    add_f32(&n, strcmp(op, "RandomUniform") == 0 ? "high" : "scale", 4);
    if (seed >= 0) {
        add_f32(&n, "seed", seed);
    }
    inner(g, 1, &n);
}

static void random_numbers_are_drawn_while_a_file_is_read(void)
{
    static const char *const y[] = {"a", "b", "c", "d", "e"};
    struct message g = {.size = 0};
    for (size_t i = 0; i < 5; i++) { /* two of the same seed, two of none */
        const struct message out = port(y[i], 1, (const int64_t[]){DRAWN, 0});
        add_random(&g, i < 4 ? "RandomUniform" : "RandomNormal", y[i], DRAWN, i < 2 ? 1 : -1);
        inner(&g, 12, &out);
    }
    const struct message m = model(&g, 17);
    struct reading r;
    read_model(&r, &m, &parse_options);
    REQUIRE_OK(r.code, &r.err);
    REQUIRE(r.graph.output_count == 5);
    const float *drawn[5];
    for (uint32_t i = 0; i < 5; i++) {
        const struct ifd_value *value = &r.graph.value[r.graph.output[i]];
        double sum = 0, squares = 0;
        REQUIRE(value->is_constant && value->data.size == DRAWN * sizeof(float));
        drawn[i] = (const float *)(const void *)value->data.data;
        for (size_t k = 0; k < DRAWN; k++) {
            EXPECT(i == 4 || (drawn[i][k] >= 2 && drawn[i][k] <= 4));
            sum += (double)drawn[i][k];
            squares += (double)(drawn[i][k] * drawn[i][k]);
        }
        const double mean = sum / DRAWN, variance = squares / DRAWN - mean * mean;
        EXPECT_CLOSE(mean, i < 4 ? 3 : 2, i < 4 ? 0.06 : 0.4);            /* more than four times */
        EXPECT_CLOSE(variance, i < 4 ? 1.0 / 3 : 16, i < 4 ? 0.03 : 2.2); /* the deviation */
    }
    EXPECT_BYTES(drawn[0], drawn[1], DRAWN * sizeof(float));
    EXPECT(memcmp(drawn[0], drawn[2], DRAWN * sizeof(float)) != 0);
    EXPECT(memcmp(drawn[2], drawn[3], DRAWN * sizeof(float)) != 0);
    ifd_arena_finish(&r.arena);
}

static void fewer_than_no_random_numbers_are_refused(void)
{
    const struct message y = port("y", 1, two_by_three);
    struct message g = {.size = 0};
    add_random(&g, "RandomNormal", "y", -5, 1);
    inner(&g, 12, &y);
    const struct message m = model(&g, 17);
    expect_refused(&m, IFD_CORRUPT, "attribute \"shape\" has the number -5");
}

/* Reads a model whose one output is constant. Give back: the arena. */
static struct ifd_value constant_value(const struct message *m, struct ifd_arena *arena)
{
    struct reading r;
    read_model(&r, m, &parse_options);
    REQUIRE_OK(r.code, &r.err);
    REQUIRE(r.graph.output_count == 1 && r.graph.value[r.graph.output[0]].is_constant);
    *arena = r.arena;
    return r.graph.value[r.graph.output[0]];
}

static struct ifd_bytes constant_output(const struct message *m, struct ifd_arena *arena)
{
    return constant_value(m, arena).data;
}

static void trees_may_grow_behind_sets_of_members(void)
{
    enum { NODES = 6, MEMBERS = 10 };
    static const int64_t rows_by_one[] = {3, 1, 0}, zeros[NODES] = {0},
                         yes[NODES] = {1, 2, 3, 4, 5, 1}, is_leaf[NODES] = {0, 0, 0, 0, 0, 1},
                         ones[NODES] = {1, 1, 1, 1, 1, 1};
    static const float x[3] = {MEMBERS, 1, 0.5F}, splits[NODES] = {0}, weights[2] = {-1, 7};
    static const uint8_t modes[NODES] = {6, 6, 6, 6, 6, 6};
    float member[NODES * (MEMBERS + 1)];
    for (int i = 0; i < NODES * (MEMBERS + 1); i++) {
        const int place = i % (MEMBERS + 1);
        member[i] = place == MEMBERS ? NAN : (float)(1 + place);
    }
    struct message g = {.size = 0}, n = node("TreeEnsemble", "x", NULL, "y"), set = {.size = 0};
    const struct message given = tensor("x", 1, rows_by_one, x, sizeof(x));
    const struct message y = port("y", 1, rows_by_one);
    text(&n, 7, "ai.onnx.ml");
    add_ints(&n, "nodes_featureids", zeros, NODES);
    add_ints(&n, "nodes_truenodeids", yes, NODES);
    add_ints(&n, "nodes_trueleafs", is_leaf, NODES);
    add_ints(&n, "nodes_falsenodeids", zeros, NODES);
    add_ints(&n, "nodes_falseleafs", ones, NODES);
    add_ints(&n, "tree_roots", zeros, 1);
    add_ints(&n, "leaf_targetids", zeros, 2);
    add_list(&n, "nodes_modes", 2, modes, NODES, sizeof(modes));
    add_list(&n, "nodes_splits", 1, splits, NODES, sizeof(splits));
    add_list(&n, "leaf_weights", 1, weights, 2, sizeof(weights));
    add_list(&n, "membership_values", 1, member, NODES * (MEMBERS + 1), sizeof(member));
    inner(&g, 1, &n);
    inner(&g, 5, &given);
    inner(&g, 12, &y);
    struct message m = model(&g, 17);
    text(&set, 1, "ai.onnx.ml");
    number(&set, 2, 5);
    inner(&m, 8, &set);
    struct ifd_arena arena;
    const struct ifd_bytes sums = constant_output(&m, &arena);
    EXPECT_BYTES(sums.data, ((const float[]){7, 7, -1}), 3 * sizeof(float));
    ifd_arena_finish(&arena);
}

static void zero_points_without_dimensions_are_refused(void)
{
    static const int64_t rows[] = {2, 8, 0}, scales[] = {2, 1, 0}, list[] = {2, 0}, none[] = {0};
    static const uint8_t packed[16] = {0}, zero[2] = {8, 8};
    static const float scale[2] = {1, 2};
    static const int64_t first = 0;
    struct message g = {.size = 0}, n = {.size = 0}, set = {.size = 0};
    const struct message parts[4] = {tensor("x", 2, rows, packed, sizeof(packed)),
                                     tensor("at", 7, none, &first, sizeof(first)),
                                     tensor("scales", 1, scales, scale, sizeof(scale)),
                                     tensor("zero", 2, list, zero, sizeof(zero))};
    const struct message y = port("y", 1, two_by_three);
    text(&n, 1, "x");
    text(&n, 1, "at");
    text(&n, 1, "scales");
    text(&n, 1, "zero");
    text(&n, 2, "y");
    text(&n, 4, "GatherBlockQuantized");
    text(&n, 7, "com.microsoft");
    add_int(&n, "block_size", 16);
    inner(&g, 1, &n);
    for (size_t i = 0; i < 4; i++) {
        inner(&g, 5, &parts[i]);
    }
    inner(&g, 12, &y);
    struct message m = model(&g, 17);
    text(&set, 1, "com.microsoft");
    number(&set, 2, 1);
    inner(&m, 8, &set);
    expect_refused(&m, IFD_UNSUPPORTED, "zero points [2]");
}

/* If(c) whose branches are the function's attribute "body" */
static struct message chosen(const char *y)
{
    static const char *const branch[] = {"then_branch", "else_branch"};
    struct message n = node("If", "c", NULL, y);
    for (size_t i = 0; i < 2; i++) {
        struct message a = {.size = 0};
        text(&a, 1, branch[i]);
        text(&a, 21, "body");
        inner(&n, 5, &a);
    }
    return n;
}

/* y = F(x, true), a function that has a graph of this node for its attribute "body" */
static struct message model_of_body(const struct message *of_body)
{
    struct message f = {.size = 0}, set = {.size = 0}, body = {.size = 0}, given = {.size = 0};
    struct message g = {.size = 0}, call = node("F", "x", "c", "y");
    const struct message n = chosen("y"), z = port("z", 1, two_by_three);
    const struct message c = tensor("c", 9, (const int64_t[]){0}, "\1", 1);
    const struct message x = port("x", 1, two_by_three), y = port("y", 1, two_by_three);
    inner(&body, 1, of_body);
    inner(&body, 12, &z);
    text(&given, 1, "body");
    inner(&given, 6, &body);
    number(&set, 2, 17);
    text(&f, 1, "F");
    text(&f, 4, "x");
    text(&f, 4, "c");
    text(&f, 5, "y");
    inner(&f, 7, &n);
    inner(&f, 9, &set);
    text(&f, 10, "own");
    inner(&f, 11, &given);
    text(&call, 7, "own");
    inner(&g, 1, &call);
    inner(&g, 5, &c);
    inner(&g, 11, &x);
    inner(&g, 12, &y);
    struct message m = model(&g, 17);
    inner(&m, 25, &f);
    return m;
}

static void graphs_that_functions_bring_are_looked_through(void)
{
    const struct message relu = node("Relu", "x", NULL, "z"), warp = node("Warp", "x", NULL, "z");
    const struct message sound = model_of_body(&relu), missing = model_of_body(&warp);
    expect_refused(&sound, IFD_OK, "");
    expect_refused(&missing, IFD_UNSUPPORTED,
                   "operators that are not supported: Warp (1, first node 0)");
}

/* One as the element of a sequence, one as a tensor. */
static void outputs_of_one_name_are_refused(void)
{
    static const char *const other[] = {"y.0", "y.2", "y"};
    for (size_t i = 0; i < 3; i++) {
        struct message g = {.size = 0}, sequence = {.size = 0}, kind = {.size = 0};
        struct message listed = {.size = 0};
        const struct message pair = node("SequenceConstruct", "x", "x", "y");
        const struct message tensor = node("Relu", "x", NULL, i == 2 ? "z" : other[i]);
        const struct message x = port("x", 1, two_by_three), z = port(other[i], 1, two_by_three);
        inner(&g, 1, &pair);
        inner(&g, 1, &tensor);
        inner(&sequence, 1, &(struct message){.size = 0});
        inner(&kind, 4, &sequence);
        text(&listed, 1, "y");
        inner(&listed, 2, &kind);
        inner(&g, 11, &x);
        inner(&g, 12, &listed);
        inner(&g, 12, i == 2 ? &listed : &z);
        const struct message m = model(&g, 17);
        expect_refused(&m, i == 1 ? IFD_OK : IFD_UNSUPPORTED,
                       i == 1 ? "" : "two outputs have the name \"y.0\"");
    }
}

static void graphs_that_refer_to_themselves_are_refused(void)
{
    const struct message again = chosen("z");
    const struct message m = model_of_body(&again);
    expect_refused(&m, IFD_TOO_LARGE, "graphs and functions are nested more than 128 deep");
}

static void numbers_of_64_bits_are_whole(void)
{
    /* the sentinel of what is missing, and labels of what is unknown, are no doubles */
    static const int64_t two[] = {2, 0}, x[2] = {INT64_MIN, INT64_MAX};
    static const struct {
        const char *op;
        const char *name[2];
        int64_t number[2];
        const char *other;
        int64_t given, answer[2];
    } rows[] = {
        {"Imputer",
         {"imputed_value_int64s", NULL},
         {5, 0},
         "replaced_value_int64",
         INT64_MAX,
         {INT64_MIN, 5}},
        {"LabelEncoder",
         {"keys_int64s", "values_int64s"},
         {INT64_MIN, 5},
         "default_int64",
         INT64_MAX - 1,
         {5, INT64_MAX - 1}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct message g = {.size = 0}, n = node(rows[i].op, "x", NULL, "y"), set = {.size = 0};
        const struct message given = tensor("x", 7, two, x, sizeof(x)), y = port("y", 7, two);
        text(&n, 7, "ai.onnx.ml");
        for (size_t k = 0; k < 2 && rows[i].name[k]; k++) {
            add_ints(&n, rows[i].name[k], &rows[i].number[k], 1);
        }
        add_int(&n, rows[i].other, rows[i].given);
        inner(&g, 1, &n);
        inner(&g, 5, &given);
        inner(&g, 12, &y);
        struct message m = model(&g, 17);
        text(&set, 1, "ai.onnx.ml");
        number(&set, 2, 3);
        inner(&m, 8, &set);
        struct ifd_arena arena;
        const struct ifd_bytes answer = constant_output(&m, &arena);
        REQUIRE(answer.size == sizeof(rows[i].answer));
        EXPECT_BYTES(answer.data, rows[i].answer, sizeof(rows[i].answer));
        ifd_arena_finish(&arena);
    }
}

static void probabilities_of_many_classes_are_refused(void)
{
    /* their iteration would be a long graph */
    enum { CLASSES = 129 };
    static const int64_t one_by_one[] = {1, 1, 0};
    int64_t label[CLASSES], vectors[CLASSES] = {1};
    for (int64_t i = 0; i < CLASSES; i++) {
        label[i] = i;
    }
    struct message g = {.size = 0}, n = node("SVMClassifier", "x", NULL, "label"),
                   set = {.size = 0};
    const struct message x = port("x", 1, one_by_one), y = port("y", 1, one_by_one);
    text(&n, 2, "y");
    text(&n, 7, "ai.onnx.ml");
    add_ints(&n, "classlabels_ints", label, CLASSES);
    add_ints(&n, "vectors_per_class", vectors, CLASSES);
    add_floats(&n, "rho", (const float[]){0}, 1);
    add_floats(&n, "prob_a", (const float[]){0}, 1);
    inner(&g, 1, &n);
    inner(&g, 11, &x);
    inner(&g, 12, &y);
    struct message m = model(&g, 17);
    text(&set, 1, "ai.onnx.ml");
    number(&set, 2, 1);
    inner(&m, 8, &set);
    expect_refused(&m, IFD_UNSUPPORTED, "probabilities of 129 classes, limit 128");
}

static void windows_of_pools_fit_32_bits(void)
{
    static const int64_t dims[] = {1, 1, 4, 4, 0};
    static const int64_t sizes[] = {INT64_MIN, 0, (INT64_C(1) << 32) + 2, INT64_MAX};
    static const char *const ops[] = {"MaxPool", "AveragePool", "LpPool"};
    for (size_t i = 0; i < 3 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct message g = {.size = 0}, n = node(ops[i % 3], "x", NULL, "y");
        const struct message x = port("x", 1, dims), y = port("y", 1, dims);
        add_ints(&n, "kernel_shape", (const int64_t[]){2, sizes[i / 3]}, 2);
        add_int(&n, "ceil_mode", 1);
        inner(&g, 1, &n);
        inner(&g, 11, &x);
        inner(&g, 12, &y);
        const struct message m = model(&g, 19);
        expect_refused(&m, IFD_UNSUPPORTED, "a window of ");
    }
}

static void empty_constants_have_dimensions_of_tensors(void)
{
    static const int64_t dims[] = {1 << 30, 1, 0}; /* of 4 bytes: also too large on 32 bits */
    struct message g = {.size = 0}, w = {.size = 0}, n = node("Relu", "w", NULL, "y");
    const struct message y = port("y", 1, dims);
    number(&w, 1, 0);
    number(&w, 1, (uint64_t)dims[0]);
    number(&w, 2, 1);
    text(&w, 8, "w");
    bytes(&w, 9, "", 0);
    inner(&g, 1, &n);
    inner(&g, 5, &w);
    inner(&g, 12, &y);
    const struct message m = model(&g, 17);
    expect_refused(&m, IFD_TOO_LARGE, "constant \"w\" is empty, of shape [0,");
}

static void borders_far_outside_of_pictures_are_refused(void)
{
    static const int64_t dims[] = {1, 2, 3, 4, 0};
    static const int64_t borders[][4] = {
        {5, 0, 0, INT64_MIN}, {INT64_MIN, 0, 0, 0}, {0, INT64_MAX, 0, 1}, {0, 0, INT64_MAX, 0}};
    for (size_t i = 0; i < sizeof(borders) / sizeof(borders[0]); i++) {
        struct message g = {.size = 0}, n = node("Crop", "x", NULL, "y");
        const struct message x = port("x", 1, dims), y = port("y", 1, dims);
        add_ints(&n, "border", borders[i], 4);
        inner(&g, 1, &n);
        inner(&g, 11, &x);
        inner(&g, 12, &y);
        const struct message m = model(&g, 17);
        expect_refused(&m, IFD_CORRUPT, "borders or sizes that images [1,2,3,4] do not have");
    }
}

static void blocks_of_weights_are_whole_bytes(void)
{
    static const int64_t dims[] = {1, 16, 0}, out[] = {1, 1, 0};
    static const int64_t sizes[] = {15, 16, 17, 19, 24};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct message g = {.size = 0}, n = node("MatMulNBits", "x", "w", "y");
        struct message w = {.size = 0}, s = {.size = 0};
        const struct message x = port("x", 1, dims), y = port("y", 1, out);
        text(&n, 1, "s");
        text(&n, 7, "com.microsoft");
        add_int(&n, "N", 1);
        add_int(&n, "K", 16);
        add_int(&n, "bits", 4);
        add_int(&n, "block_size", sizes[i]);
        number(&w, 1, (uint64_t)sizes[i] / 2);
        number(&w, 2, 2); /* u8 */
        text(&w, 8, "w");
        bytes(&w, 9, "0123456789ab", (size_t)sizes[i] / 2);
        number(&s, 1, 1);
        number(&s, 2, 1); /* f32 */
        text(&s, 8, "s");
        bytes(&s, 9, "\0\0\200?", sizeof(float));
        inner(&g, 1, &n);
        inner(&g, 5, &w);
        inner(&g, 5, &s);
        inner(&g, 11, &x);
        inner(&g, 12, &y);
        const struct message m = model(&g, 17);
        const bool is_known = sizes[i] == 16;
        expect_refused(&m, is_known ? IFD_OK : IFD_UNSUPPORTED,
                       is_known ? "" : "1 x 16 weights of 4 bits in blocks of");
    }
}

static void lists_of_numbers_stay_lists(void)
{
    static const char *const ops[] = {"Imputer", "Normalizer"};
    static const int64_t two[] = {2, 0};
    static const float x[2] = {-3, 6}, value = 5, answers[2][2] = {{-3, 5}, {-0.5F, 1}};
    for (size_t i = 0; i < 2; i++) {
        struct message g = {.size = 0}, n = node(ops[i], "x", NULL, "y"), set = {.size = 0};
        const struct message given = tensor("x", 1, two, x, sizeof(x)), y = port("y", 1, two);
        text(&n, 7, "ai.onnx.ml");
        add_floats(&n, "imputed_value_floats", &value, 1);
        add_f32(&n, "replaced_value_float", 6);
        inner(&g, 1, &n);
        inner(&g, 5, &given);
        inner(&g, 12, &y);
        struct message m = model(&g, 17);
        text(&set, 1, "ai.onnx.ml");
        number(&set, 2, 1);
        inner(&m, 8, &set);
        struct ifd_arena arena;
        const struct ifd_value made = constant_value(&m, &arena);
        EXPECT_INT(made.desc.shape.rank, 1);
        REQUIRE(made.data.size == sizeof(x));
        EXPECT_BYTES(made.data.data, answers[i], sizeof(x));
        ifd_arena_finish(&arena);
    }
}

static void places_far_outside_of_volumes_have_zeros(void)
{
    static const int64_t volume[] = {1, 1, 2, 2, 2, 0}, places[] = {1, 1, 1, 5, 3, 0};
    static const float x[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const float grid[5][3] = {
        {0, 0, 0}, {INFINITY, 0, 0}, {0, -INFINITY, 0}, {0, 0, NAN}, {1e30F, 0, 0}};
    struct message g = {.size = 0}, mode = {.size = 0}, n = node("GridSample", "x", "grid", "y");
    const struct message parts[2] = {tensor("x", 1, volume, x, sizeof(x)),
                                     tensor("grid", 1, places, grid, sizeof(grid))};
    const struct message y = port("y", 1, (const int64_t[]){1, 1, 1, 1, 5, 0});
    text(&mode, 1, "mode");
    text(&mode, 4, "linear");
    inner(&n, 5, &mode);
    inner(&g, 1, &n);
    inner(&g, 5, &parts[0]);
    inner(&g, 5, &parts[1]);
    inner(&g, 12, &y);
    const struct message m = model(&g, 20);
    struct ifd_arena arena;
    const struct ifd_bytes read = constant_output(&m, &arena);
    REQUIRE(read.size == 5 * sizeof(float));
    EXPECT_BYTES(read.data, ((const float[]){1, 0, 0, 0, 0}), read.size);
    ifd_arena_finish(&arena);
}

static void kernels_of_machines_have_a_known_name(void)
{
    static const char *const names[] = {"LINEAR", "POLY", "RBF", "SIGMOID", "CHI2"};
    static const int64_t one_by_one[] = {1, 1, 0};
    static const float one[1] = {1};
    for (size_t i = 0; i < 5; i++) {
        struct message g = {.size = 0}, n = node("SVMRegressor", "x", NULL, "y"), set = {.size = 0},
                       kernel = {.size = 0};
        const struct message x = port("x", 1, one_by_one), y = port("y", 1, one_by_one);
        text(&n, 7, "ai.onnx.ml");
        text(&kernel, 1, "kernel_type");
        text(&kernel, 4, names[i]);
        inner(&n, 5, &kernel);
        add_int(&n, "n_supports", 1);
        add_floats(&n, "support_vectors", one, 1);
        add_floats(&n, "coefficients", one, 1);
        add_floats(&n, "rho", one, 1);
        inner(&g, 1, &n);
        inner(&g, 11, &x);
        inner(&g, 12, &y);
        struct message m = model(&g, 17);
        text(&set, 1, "ai.onnx.ml");
        number(&set, 2, 1);
        inner(&m, 8, &set);
        expect_refused(&m, i < 4 ? IFD_OK : IFD_UNSUPPORTED,
                       i < 4 ? "" : "another \"kernel_type\"");
    }
}

static void linear_attention_has_a_query_for_each_key(void)
{
    for (int64_t queries = 2; queries <= 4; queries++) {
        struct message g = {.size = 0}, n = node("LinearAttention", "q", "k", "y"),
                       rule = {.size = 0};
        const struct message q = port("q", 1, (const int64_t[]){1, queries, 8, 0}),
                             k = port("k", 1, (const int64_t[]){1, 3, 8, 0}),
                             y = port("y", 1, (const int64_t[]){1, queries, 8, 0});
        text(&n, 1, "k");
        text(&rule, 1, "update_rule");
        text(&rule, 4, "linear");
        inner(&n, 5, &rule);
        add_int(&n, "q_num_heads", 2);
        add_int(&n, "kv_num_heads", 2);
        inner(&g, 1, &n);
        inner(&g, 11, &q);
        inner(&g, 11, &k);
        inner(&g, 12, &y);
        const struct message m = model(&g, 27);
        expect_refused(&m, queries == 3 ? IFD_OK : IFD_CORRUPT,
                       queries == 3 ? "" : "queries, 3 keys, 3 values");
    }
}

/* x [2,3], shares of three experts, weights of one layer: those of the second are missing. */
static void experts_have_weights_of_two_layers(void)
{
    static const char *const ops[] = {"MoE", "QMoE"};
    for (size_t i = 0; i < 2; i++) {
        struct message g = {.size = 0}, n = node(ops[i], "x", "r", "y");
        const struct message x = port("x", 1, two_by_three), r = port("r", 1, two_by_three),
                             w = port("w", 1, (const int64_t[]){3, 3, 3, 0}),
                             y = port("y", 1, two_by_three);
        text(&n, 1, "w");
        text(&n, 7, "com.microsoft");
        inner(&g, 1, &n);
        inner(&g, 11, &x);
        inner(&g, 11, &r);
        inner(&g, 11, &w);
        inner(&g, 12, &y);
        const struct message m = model(&g, 17);
        expect_refused(&m, i == 0 ? IFD_CORRUPT : IFD_UNSUPPORTED,
                       i == 0 ? "weights of shape []" : "weights [3,3,3] of 4 bits");
    }
}

/* x, shares of three experts, weights that are no constants, and at last what each token takes of
 * its experts. */
static void each_token_takes_a_share_of_each_expert(void)
{
    for (int64_t experts = 2; experts <= 3; experts++) {
        struct message g = {.size = 0}, n = node("QMoE", "x", "r", "y");
        const struct message x = port("x", 1, two_by_three), r = port("r", 1, two_by_three),
                             w = port("w", 2, (const int64_t[]){3, 3, 3, 0}),
                             own = port("own", 1, (const int64_t[]){2, experts, 0}),
                             y = port("y", 1, two_by_three);
        text(&n, 1, "w");
        for (uint32_t i = 3; i < 14; i++) {
            text(&n, 1, "");
        }
        text(&n, 1, "own");
        text(&n, 7, "com.microsoft");
        inner(&g, 1, &n);
        inner(&g, 11, &x);
        inner(&g, 11, &r);
        inner(&g, 11, &w);
        inner(&g, 11, &own);
        inner(&g, 12, &y);
        const struct message m = model(&g, 17);
        expect_refused(&m, IFD_UNSUPPORTED,
                       experts == 3 ? "weights [3,3,3] of 4 bits" : "1 of the experts of [2,3]");
    }
}

static void a_router_has_a_bias_for_each_expert(void)
{
    static const int64_t shapes[][3] = {{3, 0}, {1, 0}, {2, 3, 0}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct message g = {.size = 0}, n = node("MoEGroupRouter", "x", "b", "y");
        const struct message x = port("x", 1, (const int64_t[]){1, 3, 0}),
                             b = port("b", 1, shapes[i]),
                             y = port("y", 1, (const int64_t[]){1, 3, 0});
        text(&n, 7, "com.microsoft");
        add_int(&n, "top_k", 1);
        inner(&g, 1, &n);
        inner(&g, 11, &x);
        inner(&g, 11, &b);
        inner(&g, 12, &y);
        const struct message m = model(&g, 17);
        expect_refused(&m, i == 0 ? IFD_OK : IFD_UNSUPPORTED,
                       i == 0 ? "" : "a choice of groups, or a projection: inputs of shape [1,3]");
    }
}

/* Of heads as they are, and of GatedDeltaNet with both dimensions swapped. */
static void a_state_is_one_for_each_sample_and_head(void)
{
    static const int64_t shapes[][5] = {{1, 2, 4, 3, 0}, {1, 1, 4, 3, 0}, {4, 3, 0}};
    for (size_t i = 0; i < 2 * sizeof(shapes) / sizeof(shapes[0]); i++) {
        const bool is_delta = i % 2 == 1;
        struct message g = {.size = 0},
                       n = node(is_delta ? "GatedDeltaNet" : "LinearAttention", "q", "q", "y"),
                       rule = {.size = 0};
        int64_t state[5];
        memcpy(state, shapes[i / 2], sizeof(state));
        const uint32_t last = i / 2 == 2 ? 1 : 3;
        state[last - 1] = is_delta ? 3 : 4;
        state[last] = is_delta ? 4 : 3;
        const struct message q = port("q", 1,
                                      is_delta ? (const int64_t[]){1, 2, 2, 4, 0}
                                               : (const int64_t[]){1, 2, 8, 0}),
                             v = port("v", 1,
                                      is_delta ? (const int64_t[]){1, 2, 2, 3, 0}
                                               : (const int64_t[]){1, 2, 6, 0}),
                             s = port("s", 1, state),
                             y = port("y", 1,
                                      is_delta ? (const int64_t[]){1, 2, 2, 3, 0}
                                               : (const int64_t[]){1, 2, 6, 0});
        text(&n, 1, "v");
        for (uint32_t k = 3; k < (is_delta ? 6 : 3); k++) {
            text(&n, 1, "");
        }
        text(&n, 1, "s");
        text(&n, 7, "com.microsoft");
        text(&rule, 1, "update_rule");
        text(&rule, 4, "linear");
        inner(&n, 5, &rule);
        add_int(&n, "q_num_heads", 2);
        add_int(&n, "kv_num_heads", 2);
        inner(&g, 1, &n);
        inner(&g, 11, &q);
        inner(&g, 11, &v);
        inner(&g, 11, &s);
        inner(&g, 12, &y);
        const struct message m = model(&g, 17);
        expect_refused(&m, i < 2 ? IFD_OK : IFD_CORRUPT, i < 2 ? "" : "a state of shape [");
    }
}

/* Each is turned by a node of its own, which says its rank. */
static void the_ranks_of_many_inputs_are_not_looked_for(void)
{
    for (uint32_t count = 256; count <= 257; count++) {
        struct message g = {.size = 0}, array = {.size = 0}, type = {.size = 0}, perm = {.size = 0};
        static const int64_t one[] = {1, 0};
        number(&array, 1, 1); /* floats, of no shape */
        inner(&type, 1, &array);
        text(&perm, 1, "perm");
        number(&perm, 8, 0);
        for (uint32_t i = 0; i < count; i++) {
            char x[8], y[8];
            (void)snprintf(x, sizeof(x), "x%u", i);
            (void)snprintf(y, sizeof(y), "y%u", i);
            struct message n = node("Transpose", x, NULL, y), in = {.size = 0};
            text(&in, 1, x);
            inner(&in, 2, &type);
            inner(&n, 5, &perm);
            inner(&g, 1, &n);
            inner(&g, 11, &in);
        }
        const struct message y = port("y0", 1, one);
        inner(&g, 12, &y);
        const struct message m = model(&g, 17);
        expect_refused(&m, count == 256 ? IFD_OK : IFD_UNSUPPORTED,
                       count == 256 ? "" : "input \"x256\" is of unknown rank");
    }
}

/* Of any inputs and outputs; a list ends with NULL. */
static void add_node(struct message *g, const char *op, const char *const *in,
                     const char *const *out, int64_t to)
{
    struct message m = {.size = 0};
    for (; *in; in++) {
        text(&m, 1, *in);
    }
    for (; *out; out++) {
        text(&m, 2, *out);
    }
    text(&m, 4, op);
    if (to != 0) {
        add_int(&m, "to", to);
    }
    inner(g, 1, &m);
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A product with scales of more dimensions than the sums has as many. */
static void scales_of_dynamic_products_may_have_more_dimensions(void)
{
    static const int64_t one[] = {1, 1, 1, 0}, *const from[] = {one + 3, one + 2, one + 1, one};
    const float scale = 0.5f;
    const int8_t weights[6] = {1, 2, 3, 4, 5, 6};
    for (int i = 0; i < 4; i++) {
        struct message g = {.size = 0};
        add_node(&g, "DynamicQuantizeLinear", NAMES("x"), NAMES("q", "s", "z"), 0);
        add_node(&g, "MatMulInteger", NAMES("q", "w", "z"), NAMES("i"), 0);
        add_node(&g, "Cast", NAMES("i"), NAMES("f"), 1);
        add_node(&g, "Mul", NAMES("s", "ws"), NAMES("both"), 0);
        add_node(&g, "Mul", NAMES("f", "both"), NAMES("y"), 0);
        const struct message w = tensor("w", 3, (const int64_t[]){3, 2, 0}, weights, 6),
                             ws = tensor("ws", 1, from[i], &scale, sizeof(scale)),
                             x = port("x", 1, two_by_three),
                             y = port("y", 1,
                                      i > 2 ? (const int64_t[]){1, 2, 2, 0}
                                            : (const int64_t[]){2, 2, 0});
        inner(&g, 5, &w);
        inner(&g, 5, &ws);
        inner(&g, 11, &x);
        inner(&g, 12, &y);
        const struct message m = model(&g, 17);
        struct reading r;
        read_model(&r, &m, &parse_options);
        REQUIRE_OK(r.code, &r.err);
        EXPECT_INT(r.graph.value[r.graph.output[0]].desc.shape.rank, i > 2 ? 3 : 2);
        ifd_arena_finish(&r.arena);
    }
}

static void varints_end_at_64_bits(void)
{
    static const uint8_t longest[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    static const uint8_t too_long[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                       0xff, 0xff, 0xff, 0xff, 0x01};
    uint64_t value = 0;
    const uint8_t *at = longest;
    EXPECT(ifd_wire_varint(&at, longest + sizeof(longest), &value));
    EXPECT(value == UINT64_MAX);
    at = longest;
    EXPECT(!ifd_wire_varint(&at, longest + 5, &value));
    at = too_long;
    EXPECT(!ifd_wire_varint(&at, too_long + sizeof(too_long), &value));
}

/* y of an RNN layer with this function. */
static struct message rnn(const char *function)
{
    static const int64_t sequence[] = {1, 1, 2, 0}, weights[] = {1, 2, 2, 0};
    struct message g = {.size = 0}, functions = {.size = 0}, n = node("RNN", "x", "w", "y");
    text(&n, 1, "r");
    text(&functions, 1, "activations");
    text(&functions, 9, function);
    number(&functions, 20, 8);
    inner(&n, 5, &functions);
    inner(&g, 1, &n);
    const struct message x = port("x", 1, sequence), w = port("w", 1, weights),
                         r = port("r", 1, weights), y = port("y", 1, (const int64_t[]){0});
    inner(&g, 11, &x);
    inner(&g, 11, &w);
    inner(&g, 11, &r);
    inner(&g, 12, &y);
    return model(&g, 14);
}

static void functions_of_recurrent_layers_are_known_and_have_their_numbers(void)
{
    const struct message known = rnn("HardSigmoid"), unknown = rnn("Selu"),
                         lacks = rnn("ScaledTanh");
    expect_refused(&known, IFD_OK, "");
    expect_refused(&unknown, IFD_UNSUPPORTED, "activation \"Selu\"");
    expect_refused(&lacks, IFD_UNSUPPORTED, "activation \"ScaledTanh\" without activation_alpha");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_model_of_one_node_is_read),
        T(later_readings_use_the_constants_of_the_first),
        T(later_readings_decode_what_the_first_left_to_a_run),
        T(every_cut_is_refused_or_read),
        T(all_missing_operators_are_named_with_counts),
        T(a_file_for_one_cpu_says_how_to_save_it),
        T(what_cannot_be_served_says_what_to_do),
        T(names_of_the_file_are_one_line),
        T(names_of_ports_are_whole),
        T(values_are_made_once_and_before_they_are_read),
        T(initializers_are_given_once),
        T(values_of_inputs_have_their_types),
        T(nodes_are_sorted_behind_what_makes_their_inputs),
        T(sorted_nodes_do_not_need_what_their_graphs_hide),
        T(old_operands_lie_along_an_axis),
        T(a_constant_has_as_many_elements_as_its_shape_says),
        T(constants_may_lie_in_files_beside),
        T(files_beside_are_named_once),
        T(a_name_of_a_file_beside_has_no_nul),
        T(functions_that_call_themselves_or_nobody_are_refused),
        T(functions_that_nothing_calls_may_have_any_operators),
        T(open_dimensions_are_declared_and_get_sizes),
        T(a_small_file_makes_no_large_tensor),
        T(random_numbers_are_drawn_while_a_file_is_read),
        T(fewer_than_no_random_numbers_are_refused),
        T(trees_may_grow_behind_sets_of_members),
        T(zero_points_without_dimensions_are_refused),
        T(graphs_that_functions_bring_are_looked_through),
        T(graphs_that_refer_to_themselves_are_refused),
        T(outputs_of_one_name_are_refused),
        T(numbers_of_64_bits_are_whole),
        T(probabilities_of_many_classes_are_refused),
        T(windows_of_pools_fit_32_bits),
        T(empty_constants_have_dimensions_of_tensors),
        T(borders_far_outside_of_pictures_are_refused),
        T(blocks_of_weights_are_whole_bytes),
        T(lists_of_numbers_stay_lists),
        T(places_far_outside_of_volumes_have_zeros),
        T(kernels_of_machines_have_a_known_name),
        T(linear_attention_has_a_query_for_each_key),
        T(experts_have_weights_of_two_layers),
        T(each_token_takes_a_share_of_each_expert),
        T(a_router_has_a_bias_for_each_expert),
        T(the_ranks_of_many_inputs_are_not_looked_for),
        T(a_state_is_one_for_each_sample_and_head),
        T(scales_of_dynamic_products_may_have_more_dimensions),
        T(varints_end_at_64_bits),
        T(functions_of_recurrent_layers_are_known_and_have_their_numbers),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

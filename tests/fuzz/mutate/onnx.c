/* libFuzzer's mutator for ONNX: changes fields of the messages, not bytes, and keeps the lengths
 * around them right, so that most of what it makes gets behind the reader. What it puts in fits
 * where it stands: names of values that the file has, operators and attributes that the parser
 * knows, tensors whose content is as long as their shape says. */
#include <string.h>

#include "engine/parse/onnx/wire.h"
#include "tests/fuzz/fuzz.h"

#define FIELDS    4096
#define ROOM      ((size_t)1 << 16)
#define ROUNDS    3
#define DIMS      5
#define CONTENT   256
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))
#define NO_PARENT UINT32_MAX

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other,
                                 size_t other_size, uint8_t *out, size_t max_size, unsigned seed);

/* ---- what messages hold ---- */

enum message { LEAF, MODEL, OPSET, GRAPH, NODE, ATTRIBUTE, TENSOR, VALUE, TYPE, ARRAY, SHAPE, DIM };

static const struct {
    enum message in;
    uint32_t number;
    enum message is;
} children[] = {
    {MODEL, 7, GRAPH},     {MODEL, 8, OPSET},  {GRAPH, 1, NODE},     {GRAPH, 5, TENSOR},
    {GRAPH, 11, VALUE},    {GRAPH, 12, VALUE}, {NODE, 5, ATTRIBUTE}, {ATTRIBUTE, 5, TENSOR},
    {ATTRIBUTE, 6, GRAPH}, {VALUE, 2, TYPE},   {TYPE, 1, ARRAY},     {TYPE, 9, TYPE},
    {ARRAY, 2, SHAPE},     {SHAPE, 1, DIM},
};

enum leaf { IS_OTHER, IS_NAME, IS_OPERATOR, IS_WORD, IS_PACKED, IS_CONTENT };

static const struct {
    enum message in;
    uint32_t number;
    enum leaf is;
} leaves[] = {
    {NODE, 1, IS_NAME},      {NODE, 2, IS_NAME},      {VALUE, 1, IS_NAME},
    {TENSOR, 8, IS_NAME},    {NODE, 4, IS_OPERATOR},  {ATTRIBUTE, 1, IS_WORD},
    {ATTRIBUTE, 4, IS_WORD}, {TENSOR, 1, IS_PACKED},  {TENSOR, 5, IS_PACKED},
    {TENSOR, 7, IS_PACKED},  {TENSOR, 11, IS_PACKED}, {ATTRIBUTE, 8, IS_PACKED},
    {TENSOR, 9, IS_CONTENT}, {TENSOR, 4, IS_CONTENT}, {ATTRIBUTE, 7, IS_CONTENT},
};

/* All words of the parser's sources: generated (CMakeLists.txt). */
static const char *const operators[] = {
#include "onnx_operators.inc"
};
static const char *const words[] = {
#include "onnx_words.inc"
};

struct field {
    enum message in, is;
    uint32_t number, parent; /* index, or NO_PARENT */
    enum ifd_wire_type type;
    size_t begin, body, end; /* the key is at begin; of BYTES, content from body on */
};

struct file {
    uint8_t data[ROOM];
    size_t size;
    struct field field[FIELDS];
    uint32_t count;
    uint32_t random;
};

/* What a field becomes. */
struct patch {
    uint8_t data[ROOM];
    size_t size;
};

static uint32_t pick(struct file *f, size_t count)
{
    f->random = f->random * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(f->random >> 8) * count >> 24);
}

static enum message child_of(enum message in, const struct ifd_wire_field *field)
{
    for (size_t i = 0; i < COUNT(children) && field->type == IFD_WIRE_BYTES; i++) {
        if (children[i].in == in && children[i].number == field->number) {
            return children[i].is;
        }
    }
    return LEAF;
}

/* Fields of the messages of one level are in a row; those inside of them follow. */
static void list_message(struct file *f, enum message in, uint32_t parent, size_t begin, size_t end)
{
    struct ifd_wire wire = ifd_wire_open((struct ifd_bytes){f->data + begin, end - begin});
    struct ifd_wire_field field;
    for (const uint8_t *at = wire.at; f->count < FIELDS && ifd_wire_next(&wire, &field);
         at = wire.at) {
        const size_t stop = (size_t)(wire.at - f->data);
        f->field[f->count++] =
            (struct field){.in = in,
                           .is = child_of(in, &field),
                           .number = field.number,
                           .parent = parent,
                           .type = field.type,
                           .begin = (size_t)(at - f->data),
                           .body = field.type == IFD_WIRE_BYTES ? stop - field.bytes.size : stop,
                           .end = stop};
    }
}

static bool read_file(struct file *f, const uint8_t *data, size_t size, uint32_t random)
{
    if (size > ROOM / 2) {
        return false;
    }
    memcpy(f->data, data, size);
    f->size = size;
    f->count = 0;
    f->random = random;
    list_message(f, MODEL, NO_PARENT, 0, size);
    for (uint32_t i = 0; i < f->count; i++) {
        if (f->field[i].is != LEAF) {
            list_message(f, f->field[i].is, i, f->field[i].body, f->field[i].end);
        }
    }
    return f->count > 0;
}

/* ---- writing ---- */

static void put(struct patch *p, const void *data, size_t size)
{
    if (size <= sizeof(p->data) - p->size) {
        memcpy(p->data + p->size, data, size);
        p->size += size;
    }
}

static void put_varint(struct patch *p, uint64_t value)
{
    do {
        const uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        put(p, &byte, 1);
        value >>= 7;
    } while (value > 0);
}

static void put_bytes(struct patch *p, uint32_t number, const void *data, size_t size)
{
    put_varint(p, (uint64_t)number << 3 | IFD_WIRE_BYTES);
    put_varint(p, size);
    put(p, data, size);
}

static void put_number(struct patch *p, uint32_t number, uint64_t value)
{
    put_varint(p, (uint64_t)number << 3);
    put_varint(p, value);
}

static void put_field(struct patch *p, const struct file *from, const struct field *field)
{
    put(p, from->data + field->begin, field->end - field->begin);
}

/* Puts the patch in the place of a field, and lengths around it right. */
static void apply(struct file *f, const struct field *field, struct patch *p)
{
    static struct patch outer;
    for (uint32_t up = field->parent; up != NO_PARENT; up = field->parent) {
        const struct field *parent = &f->field[up];
        const size_t before = field->begin - parent->body, behind = parent->end - field->end;
        outer.size = 0;
        put_varint(&outer, (uint64_t)parent->number << 3 | IFD_WIRE_BYTES);
        put_varint(&outer, before + p->size + behind);
        put(&outer, f->data + parent->body, before);
        put(&outer, p->data, p->size);
        put(&outer, f->data + field->end, behind);
        *p = outer;
        field = parent;
    }
    outer.size = 0;
    put(&outer, f->data, field->begin);
    put(&outer, p->data, p->size);
    put(&outer, f->data + field->end, f->size - field->end);
    f->size = outer.size;
    memcpy(f->data, outer.data, outer.size);
}

/* ---- what fits ---- */

static uint64_t any_number(struct file *f)
{
    static const uint64_t numbers[] = {255,
                                       256,
                                       65535,
                                       65536,
                                       INT32_MAX,
                                       (uint64_t)INT32_MAX + 1,
                                       UINT32_MAX,
                                       INT64_MAX,
                                       (uint64_t)INT64_MAX + 1,
                                       (uint64_t)INT32_MIN,
                                       1000000000};
    switch (pick(f, 8)) {
    case 0:
        return numbers[pick(f, COUNT(numbers))];
    case 1:
        return 0 - (uint64_t)(1 + pick(f, 4));
    case 2:
        return pick(f, 64);
    default:
        return pick(f, 8);
    }
}

static uint32_t any_float(struct file *f)
{
    static const uint32_t floats[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x3f000000,
                                      0x40000000, 0x3c000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                      0x00000001, 0x7f7fffff, 0x4f000000, 0x43800000, 0x5f000000};
    return floats[pick(f, COUNT(floats))];
}

static enum leaf leaf_of(const struct field *field)
{
    for (size_t i = 0; i < COUNT(leaves); i++) {
        if (leaves[i].in == field->in && leaves[i].number == field->number) {
            return leaves[i].is;
        }
    }
    return IS_OTHER;
}

/* A field of which fits() is true, or NULL. */
static const struct field *find(struct file *f, bool (*fits)(const struct field *, uint32_t),
                                uint32_t argument)
{
    const uint32_t first = pick(f, f->count);
    for (uint32_t i = 0; i < f->count; i++) {
        const struct field *field = &f->field[(first + i) % f->count];
        if (fits(field, argument)) {
            return field;
        }
    }
    return NULL;
}

static bool is_leaf(const struct field *field, uint32_t leaf)
{
    return field->type == IFD_WIRE_BYTES && field->is == LEAF && leaf_of(field) == leaf;
}

static bool is_message(const struct field *field, uint32_t message)
{
    return field->is == message;
}

static bool lies_in(const struct field *field, uint32_t message)
{
    return field->in == message;
}

static void put_name(struct patch *p, uint32_t number, struct file *f)
{
    const struct field *name = find(f, is_leaf, IS_NAME);
    if (!name || pick(f, 16) == 0) {
        put_bytes(p, number, "", 0);
    } else {
        put_bytes(p, number, f->data + name->body, name->end - name->body);
    }
}

/* A tensor with the name of the old one: any shape, any type, content of the right length. */
static void put_tensor(struct patch *p, struct file *f, const struct field *old)
{
    static const struct {
        uint8_t type, bytes;
    } types[] = {{1, 4}, {1, 4}, {1, 4}, {7, 8}, {7, 8},  {6, 4},  {2, 1},
                 {3, 1}, {9, 1}, {4, 2}, {5, 2}, {10, 2}, {11, 8}, {16, 2}};
    const uint32_t rank = pick(f, DIMS), kind = pick(f, COUNT(types));
    uint8_t content[CONTENT] = {0};
    struct patch tensor = {.size = 0};
    size_t bytes = types[kind].bytes;
    for (uint32_t i = 0; i < rank; i++) {
        const uint64_t dim = pick(f, 8) == 0 ? 0 : 1 + pick(f, 4);
        put_number(&tensor, 1, dim);
        bytes *= dim;
    }
    bytes = bytes < CONTENT ? bytes : CONTENT;
    put_number(&tensor, 2, types[kind].type);
    for (size_t i = 0; i + types[kind].bytes <= bytes; i += types[kind].bytes) {
        const uint64_t value = types[kind].type == 1 ? any_float(f) : any_number(f);
        memcpy(content + i, &value, types[kind].bytes);
    }
    for (uint32_t i = 0; i < f->count; i++) {
        const struct field *field = &f->field[i];
        if (is_leaf(field, IS_NAME) && field->in == TENSOR && &f->field[field->parent] == old) {
            put_field(&tensor, f, field);
        }
    }
    put_bytes(&tensor, 9, content, bytes);
    put_bytes(p, old->number, tensor.data, tensor.size);
}

/* Any attribute with any value, or one of another operator. */
static void put_attribute(struct patch *p, struct file *f)
{
    struct patch attribute = {.size = 0};
    const struct field *other = find(f, is_message, ATTRIBUTE);
    const char *name = words[pick(f, COUNT(words))], *text = words[pick(f, COUNT(words))];
    const uint32_t bits = any_float(f);
    if (other && pick(f, 2) == 0) {
        put_field(p, f, other);
        return;
    }
    put_bytes(&attribute, 1, name, strlen(name));
    switch (pick(f, 4)) {
    case 0:
        put_varint(&attribute, 2 << 3 | IFD_WIRE_FIXED32);
        put(&attribute, &bits, sizeof(bits));
        break;
    case 1:
        put_number(&attribute, 3, any_number(f));
        break;
    case 2:
        put_bytes(&attribute, 4, text, strlen(text));
        break;
    default:
        for (uint32_t i = pick(f, 5); i > 0; i--) {
            put_number(&attribute, 8, any_number(f));
        }
        break;
    }
    put_bytes(p, 5, attribute.data, attribute.size);
}

/* An operator on values that are there. */
static void put_node(struct patch *p, struct file *f, const struct field *old)
{
    static const char *const domains[] = {"com.microsoft", "ai.onnx.ml",
                                          "ai.onnx.preview.training"};
    struct patch node = {.size = 0};
    const char *op = operators[pick(f, COUNT(operators))];
    for (uint32_t i = pick(f, 5); i > 0; i--) {
        put_name(&node, 1, f);
    }
    for (uint32_t i = 1 + pick(f, 8) / 6; i > 0; i--) {
        put_name(&node, 2, f);
    }
    put_bytes(&node, 4, op, strlen(op));
    for (uint32_t i = pick(f, 3); i > 0; i--) {
        put_attribute(&node, f);
    }
    if (pick(f, 4) == 0) {
        const char *domain = domains[pick(f, COUNT(domains))];
        put_bytes(&node, 7, domain, strlen(domain));
    }
    put_bytes(p, old->number, node.data, node.size);
}

static void put_packed(struct patch *p, struct file *f, const struct field *old)
{
    struct patch list = {.size = 0};
    const uint8_t *at = f->data + old->body, *end = f->data + old->end;
    const uint32_t change = pick(f, 4);
    uint64_t value = 0;
    for (uint32_t i = 0; at < end && ifd_wire_varint(&at, end, &value); i++) {
        put_varint(&list, i == change ? any_number(f) : value);
    }
    if (pick(f, 4) == 0) {
        put_varint(&list, any_number(f));
    }
    put_bytes(p, old->number, list.data, list.size);
}

static void put_content(struct patch *p, struct file *f, const struct field *old)
{
    static uint8_t content[ROOM];
    size_t size = old->end - old->body;
    memcpy(content, f->data + old->body, size);
    if (size >= 4 && pick(f, 4) > 0) {
        const uint32_t value = any_float(f);
        memcpy(content + (size_t)pick(f, size / 4) * 4, &value, sizeof(value));
    } else {
        size = LLVMFuzzerMutate(content, size, ROOM / 4);
    }
    put_bytes(p, old->number, content, size);
}

static void put_text(struct patch *p, struct file *f, const struct field *old)
{
    const char *text = leaf_of(old) == IS_OPERATOR ? operators[pick(f, COUNT(operators))]
                                                   : words[pick(f, COUNT(words))];
    put_bytes(p, old->number, text, strlen(text));
}

/* Another value of the same kind. */
static void put_changed(struct patch *p, struct file *f, const struct field *old)
{
    const uint32_t bits = any_float(f);
    const uint64_t wide = (uint64_t)bits << 32;
    switch (old->type) {
    case IFD_WIRE_VARINT:
        put_number(p, old->number, any_number(f));
        return;
    case IFD_WIRE_FIXED32:
    case IFD_WIRE_FIXED64:
        put(p, f->data + old->begin,
            old->end - old->begin - (old->type == IFD_WIRE_FIXED32 ? 4 : 8));
        put(p, old->type == IFD_WIRE_FIXED32 ? (const void *)&bits : &wide,
            old->type == IFD_WIRE_FIXED32 ? 4 : 8);
        return;
    case IFD_WIRE_BYTES:
        break;
    }
    switch (old->is == LEAF ? leaf_of(old) : IS_OTHER) {
    case IS_NAME:
        put_name(p, old->number, f);
        break;
    case IS_OPERATOR:
    case IS_WORD:
        put_text(p, f, old);
        break;
    case IS_PACKED:
        put_packed(p, f, old);
        break;
    case IS_CONTENT:
    case IS_OTHER:
        if (old->is == TENSOR) {
            put_tensor(p, f, old);
        } else if (old->is == NODE) {
            put_node(p, f, old);
        } else {
            put_content(p, f, old);
        }
        break;
    }
}

/* ---- the mutations ---- */

/* from: where a field that is added comes from; its messages are of the same format. */
static void change_once(struct file *f, struct file *from)
{
    static struct patch p;
    const struct field *field = &f->field[pick(f, f->count)], *other = NULL;
    p.size = 0;
    switch (pick(f, 8)) {
    case 0: /* without it */
        break;
    case 1: /* twice */
        put_field(&p, f, field);
        put_field(&p, f, field);
        break;
    case 2: /* another one of the same message beside it */
        other = find(from, lies_in, field->in);
        put_field(&p, f, field);
        if (other) {
            put_field(&p, from, other);
        }
        break;
    case 3: /* one more operator */
        field = find(f, is_message, NODE);
        if (!field) {
            return;
        }
        put_field(&p, f, field);
        put_node(&p, f, field);
        break;
    default:
        put_changed(&p, f, field);
        break;
    }
    apply(f, field, &p);
}

static size_t finish(const struct file *f, uint8_t *out, size_t max_size)
{
    if (f->size > max_size) {
        return 0;
    }
    memcpy(out, f->data, f->size);
    return f->size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static struct file f;
    const bool is_blind = seed % 16 == 0; /* for the reader itself */
    for (uint32_t i = 0; i < 1 + seed / 16 % ROUNDS && !is_blind; i++) {
        if (!read_file(&f, data, size, seed + i * 2654435761u)) {
            break;
        }
        change_once(&f, &f);
        size = f.size <= max_size ? finish(&f, data, max_size) : size;
    }
    return is_blind || size == 0 ? LLVMFuzzerMutate(data, size, max_size) : size;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other,
                                 size_t other_size, uint8_t *out, size_t max_size, unsigned seed)
{
    static struct file f, from;
    static struct patch p;
    if (!read_file(&f, data, size, seed) || !read_file(&from, other, other_size, seed * 3)) {
        return 0;
    }
    for (uint32_t i = 0; i < 1 + seed % 4; i++) {
        const struct field *field = &f.field[pick(&f, f.count)];
        const struct field *added = find(&from, lies_in, field->in);
        p.size = 0;
        put_field(&p, &f, field);
        if (added) {
            put_field(&p, &from, added);
        }
        apply(&f, field, &p);
        if (f.size > max_size || !read_file(&f, f.data, f.size, f.random)) {
            return 0;
        }
    }
    return finish(&f, out, max_size);
}

/* Tables from keys to values (tf.lookup), which a subgraph of CALL_ONCE fills. A table is known
 * while the graph is built; its handle is a constant of the file's number for the table, whatever
 * was built before: a handle may come from in front of a cut. It is wider than a variable's. */
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/tflite/composite.h"

#define HANDLE     ((int64_t)1 << 32) /* and the number */
#define KEYS_MAX   65536              /* each is compared with each element */
#define TABLES_MAX 256                /* they are looked through for each operator of one */

struct ifd_tflite_table {
    struct ifd_tflite_table *next;
    int64_t handle;
    bool is_filled;
    struct ifd_desc key, value; /* [n] */
    struct ifd_bytes keys, values;
};

void ifd_composite_hashtable(struct ifd_composite *c)
{
    const int64_t handle = HANDLE + (uint32_t)c->options->mode;
    c->output[0] = ifd_build_number(c->b, IFD_S64, (double)handle);
}

/* The table of a handle, which is empty when it is first asked for. */
static struct ifd_tflite_table *table_of(const struct ifd_composite *c, int64_t handle)
{
    struct ifd_tflite_build *build = c->build;
    struct ifd_tflite_table *table = build->table;
    uint32_t others = 0;
    while (table && table->handle != handle) {
        table = table->next;
        others++;
    }
    if (!table && others == TABLES_MAX) {
        ifd_build_fail(c->b, IFD_TOO_LARGE, "more than %d tables", TABLES_MAX);
    } else if (!table) {
        table = ifd_arena_take(build->scratch, sizeof(*table));
        if (!table) {
            c->b->code = ifd_arena_fail(build->scratch, sizeof(*table), c->b->err);
            return NULL;
        }
        *table = (struct ifd_tflite_table){.next = build->table, .handle = handle};
        build->table = table;
    }
    return table;
}

/* The table that input 0 is a handle of; NULL and a failure without one. */
static struct ifd_tflite_table *find_table(const struct ifd_composite *c)
{
    int64_t handle = 0;
    const struct ifd_bytes content = ifd_build_content(c->b, c->input[0]);
    if (content.size == sizeof(handle)) {
        memcpy(&handle, content.data, sizeof(handle));
    }
    if (c->b->code == IFD_OK && (handle < HANDLE || handle > HANDLE + UINT32_MAX)) {
        c->build->is_stuck =
            c->build->graph != c->build->main; /* it knows no constants of others */
        ifd_build_fail(c->b, IFD_UNSUPPORTED, "input 0 is no handle that the file decides");
    }
    return c->b->code == IFD_OK ? table_of(c, handle) : NULL;
}

/* As a list, which the file decides. */
static bool take_list(const struct ifd_composite *c, uint32_t input, struct ifd_desc *ret_desc,
                      struct ifd_bytes *ret)
{
    size_t count = 0;
    *ret_desc = *ifd_build_desc(c->b, c->input[input]);
    *ret = ifd_build_content(c->b, c->input[input]);
    if (c->b->code == IFD_OK && (!c->b->graph->value[c->input[input]].is_constant ||
                                 !ifd_shape_elements(&ret_desc->shape, &count))) {
        ifd_build_fail(c->b, IFD_UNSUPPORTED, "input %u is not constant", input);
    }
    ret_desc->shape = (struct ifd_shape){.rank = 1, .dim = {(int64_t)count}};
    return c->b->code == IFD_OK;
}

/* A table that has content keeps it, as in LiteRT. What a graph of its own does may not happen. */
void ifd_composite_hashtable_import(struct ifd_composite *c)
{
    struct ifd_tflite_build *build = c->build;
    struct ifd_tflite_table *table = ifd_composite_has_inputs(c, 3) ? find_table(c) : NULL;
    struct ifd_tflite_table filled = {.is_filled = true};
    if (table && build->graph != build->main) {
        build->is_stuck = true;
        ifd_build_fail(c->b, IFD_UNSUPPORTED, "a table that a branch or a loop fills");
        return;
    }
    if (!table || table->is_filled || !take_list(c, 1, &filled.key, &filled.keys) ||
        !take_list(c, 2, &filled.value, &filled.values)) {
        return;
    }
    const int64_t count = filled.key.shape.dim[0];
    const enum ifd_dtype key = filled.key.dtype;
    if ((key != IFD_S64 && key != IFD_STR) || filled.value.shape.dim[0] != count || count < 1 ||
        count > KEYS_MAX) {
        ifd_build_fail(c->b, IFD_UNSUPPORTED, "%lld keys of %s and %lld values, limit %d",
                       (long long)count, ifd_dtype_name(key), (long long)filled.value.shape.dim[0],
                       KEYS_MAX);
        return;
    }
    filled.next = table->next;
    filled.handle = table->handle;
    *table = filled;
    build->fills_tables = build->fills_tables || !build->is_initializing;
}

/* Inputs: table, what is looked up, what others get. */
void ifd_composite_hashtable_find(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    const struct ifd_tflite_table *table = ifd_composite_has_inputs(c, 3) ? find_table(c) : NULL;
    if (!table) {
        return;
    }
    const struct ifd_desc x = *ifd_build_desc(b, c->input[1]);
    const struct ifd_desc flag = {.dtype = IFD_BOOL};
    struct ifd_shape column = x.shape;
    if (!table->is_filled || x.dtype != table->key.dtype || x.shape.rank == IFD_MAX_RANK ||
        ifd_build_desc(b, c->input[2])->dtype != table->value.dtype) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "%s %s in a table of %s that is %s",
                       ifd_dtype_name(x.dtype), ifd_shape_text(&x.shape).s,
                       ifd_dtype_name(table->key.dtype), table->is_filled ? "filled" : "empty");
        return;
    }
    column.dim[column.rank++] = 1;
    const uint32_t pair[2] = {ifd_build_reshape(b, c->input[1], column.dim, column.rank),
                              ifd_build_constant(b, &table->key, table->keys, IFD_TENSOR_PAD)};
    const uint32_t values = ifd_build_constant(b, &table->value, table->values, IFD_TENSOR_PAD);
    const uint32_t others = ifd_build_reshape(b, c->input[2], (const int64_t[]){1}, 1);
    c->output[0] =
        ifd_build_first(b, ifd_build_node(b, IFD_OP_EQUAL, pair, 2, &flag, NULL), values, others);
}

void ifd_composite_hashtable_size(struct ifd_composite *c)
{
    const struct ifd_tflite_table *table = ifd_composite_has_inputs(c, 1) ? find_table(c) : NULL;
    if (table) {
        const int64_t count = table->is_filled ? table->key.shape.dim[0] : 0;
        c->output[0] = ifd_build_list(c->b, &count, 1);
    }
}

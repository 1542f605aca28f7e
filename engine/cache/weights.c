/* Finds constants with one reader and separate pages, and releases these pages. */
#include "engine/cache/weights.h"

#include <stdlib.h>

/* A smaller constant hardly fills a page. */
#define RELEASE_BYTES_MIN ((size_t)16 * 1024)

static int compare_weights(const void *a, const void *b)
{
    const struct ifd_weight *x = a, *y = b;
    return (x->data > y->data) - (x->data < y->data);
}

/* Uses of every value: as operands of nodes and as outputs of the graph. */
static void count_readers(const struct ifd_graph *graph, uint32_t *readers)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        for (uint32_t i = 0; i < graph->node[n].input_count; i++) {
            if (graph->node[n].input[i] != IFD_NONE) {
                readers[graph->node[n].input[i]]++;
            }
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        readers[graph->output[i]]++;
    }
}

/* Keeps the items that can be released: large, with at most one reader, without overlap. Returns
 * their number. */
static uint32_t keep_releasable(struct ifd_weight *item, uint32_t count)
{
    uint32_t kept = 0;
    const uint8_t *end = NULL; /* of all items before */
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *own_end = item[i].data + item[i].size;
        const bool overlaps = item[i].data < end || (i + 1 < count && item[i + 1].data < own_end);
        end = own_end > end ? own_end : end;
        if (!overlaps && item[i].size >= RELEASE_BYTES_MIN && item[i].readers <= 1) {
            item[kept++] = item[i];
        }
    }
    return kept;
}

static void release(struct ifd_weights *weights, const struct ifd_weight *item)
{
    struct ifd_value *value = &weights->graph->value[item->value];
    if (!value->is_released) {
        value->is_released = true;
        weights->released_bytes += ifd_discard_pages((void *)(uintptr_t)item->data, item->size);
    }
}

enum ifd_code ifd_weights_init(struct ifd_weights *weights, struct ifd_graph *graph,
                               const struct ifd_weights_scope *scope, struct ifd_arena *arena,
                               struct ifd_err *err)
{
    const size_t most = (size_t)graph->value_count + scope->other_count;
    uint32_t *readers = ifd_arena_take_array(arena, graph->value_count, sizeof(*readers));
    struct ifd_weight *item = ifd_arena_take_array(arena, most, sizeof(*item));
    if (!readers || !item) {
        return ifd_arena_fail(arena, most * sizeof(*item), err);
    }
    uint32_t count = 0;
    count_readers(graph, readers);
    for (uint32_t v = 0; v < graph->value_count; v++) {
        const struct ifd_value *value = &graph->value[v];
        size_t readable = 0;
        if (value->is_constant && value->data.size > 0 &&
            (!scope->only_in_arena || ifd_arena_holds(arena, value->data.data, &readable))) {
            item[count++] = (struct ifd_weight){.data = value->data.data,
                                                .size = value->data.size,
                                                .value = v,
                                                .readers = readers[v]};
        }
    }
    for (uint32_t i = 0; i < scope->other_count; i++) {
        item[count++] = (struct ifd_weight){.data = scope->others[i].data,
                                            .size = scope->others[i].size,
                                            .value = IFD_NONE,
                                            .readers = UINT32_MAX};
    }
    qsort(item, count, sizeof(*item), compare_weights);
    *weights =
        (struct ifd_weights){.graph = graph, .item = item, .count = keep_releasable(item, count)};
    for (uint32_t i = 0; i < weights->count; i++) {
        if (item[i].readers == 0) {
            release(weights, &item[i]);
        }
    }
    return IFD_OK;
}

void ifd_weights_release(void *context, const void *data)
{
    struct ifd_weights *weights = context;
    const struct ifd_weight key = {.data = data};
    const struct ifd_weight *item =
        bsearch(&key, weights->item, weights->count, sizeof(key), compare_weights);
    if (item) {
        release(weights, item);
    }
}

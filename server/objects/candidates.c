/* Keeps candidates in a heap, suppresses by overlap. */
#include "server/objects/candidates_impl.h"

#include <stdlib.h>

/* More than crowded pictures have; bounds the time that a hostile threshold takes. */
#define CANDIDATES_MAX 4096

enum ifd_code ifd_candidates_init(struct ifd_candidates *candidates, struct ifd_arena *arena,
                                  struct ifd_err *err)
{
    const size_t bytes = CANDIDATES_MAX * sizeof(struct ifd_candidate);
    *candidates = (struct ifd_candidates){.at = ifd_arena_take_room(arena, bytes),
                                          .capacity = CANDIDATES_MAX};
    return candidates->at ? IFD_OK : ifd_arena_fail(arena, bytes, err);
}

static bool is_better(const struct ifd_candidate *a, const struct ifd_candidate *b)
{
    if (a->score != b->score) {
        return a->score > b->score;
    }
    return a->place != b->place ? a->place < b->place : a->index < b->index;
}

/* Restores the heap below at; the worst candidate is on top. */
static void sift_down(struct ifd_candidates *heap, size_t at)
{
    for (;;) {
        size_t worst = at, left = 2 * at + 1;
        for (size_t child = left; child < heap->count && child <= left + 1; child++) {
            worst = is_better(&heap->at[worst], &heap->at[child]) ? child : worst;
        }
        if (worst == at) {
            return;
        }
        const struct ifd_candidate moved = heap->at[at];
        heap->at[at] = heap->at[worst];
        heap->at[worst] = moved;
        at = worst;
    }
}

void ifd_candidates_add(struct ifd_candidates *candidates, const struct ifd_object_options *options,
                        const struct ifd_candidate *candidate)
{
    const float *box = candidate->box;
    const bool has_extent = box[2] > box[0] && box[3] > box[1] && isfinite(box[0]) &&
                            isfinite(box[1]) && isfinite(box[2]) && isfinite(box[3]);
    if (!(candidate->score >= options->threshold) || !isfinite(candidate->score) || !has_extent ||
        !ifd_options_want(options, candidate->index)) {
        return;
    }
    if (candidates->count < candidates->capacity) {
        candidates->at[candidates->count++] = *candidate;
        const bool is_full = candidates->count == candidates->capacity;
        for (size_t at = is_full ? candidates->count / 2 : 0; at-- > 0;) {
            sift_down(candidates, at);
        }
    } else if (is_better(candidate, &candidates->at[0])) {
        candidates->at[0] = *candidate;
        sift_down(candidates, 0);
    }
}

static int by_rank(const void *a, const void *b)
{
    return is_better(a, b) ? -1 : 1;
}

static float overlap(const float *a, const float *b)
{
    const float x0 = a[0] > b[0] ? a[0] : b[0], x1 = a[2] < b[2] ? a[2] : b[2];
    const float y0 = a[1] > b[1] ? a[1] : b[1], y1 = a[3] < b[3] ? a[3] : b[3];
    if (x1 <= x0 || y1 <= y0) {
        return 0;
    }
    const float common = (x1 - x0) * (y1 - y0);
    const float both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]);
    return common / (both - common);
}

/* Moves the best of each group of overlapping boxes to the front; at most top of them. */
static size_t suppress(struct ifd_candidate *at, size_t count, float iou, size_t top)
{
    size_t kept = 0;
    for (size_t i = 0; i < count && kept < top; i++) {
        bool is_new = true;
        for (size_t k = 0; k < kept && is_new; k++) {
            is_new = at[k].index != at[i].index || overlap(at[k].box, at[i].box) <= iou;
        }
        if (is_new) {
            at[kept++] = at[i];
        }
    }
    return kept;
}

static float clip(double x, uint32_t most)
{
    return !(x > 0) ? 0 : x > most ? (float)most : (float)x;
}

/* False if nothing of the box lies in the picture. */
static bool map_box(const struct ifd_picture_view *view, const float *box, float *ret)
{
    for (int corner = 0; corner < 4; corner += 2) {
        double x = 0, y = 0;
        ifd_picture_view_to_picture(view, (double)box[corner], (double)box[corner + 1], &x, &y);
        ret[corner] = clip(x, view->width);
        ret[corner + 1] = clip(y, view->height);
    }
    return ret[2] > ret[0] && ret[3] > ret[1];
}

static enum ifd_code map_keypoints(const struct ifd_decoding *decoding, ifd_keypoints_fn keypoints,
                                   const struct ifd_candidate *candidate, uint32_t count,
                                   struct ifd_object *object, struct ifd_err *err)
{
    struct ifd_keypoint *point = ifd_arena_take_array(decoding->arena, count, sizeof(*point));
    if (!point) {
        return ifd_arena_fail(decoding->arena, count * sizeof(*point), err);
    }
    keypoints(decoding, candidate, point);
    ifd_keypoints_map(decoding->view, point, count);
    object->keypoint = point;
    object->keypoint_count = count;
    return IFD_OK;
}

void ifd_keypoints_map(const struct ifd_picture_view *view, struct ifd_keypoint *point,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        double x = 0, y = 0;
        ifd_picture_view_to_picture(view, (double)point[i].x, (double)point[i].y, &x, &y);
        point[i].x = isfinite((float)x) ? (float)x : 0;
        point[i].y = isfinite((float)y) ? (float)y : 0;
        point[i].score = isfinite(point[i].score) ? point[i].score : 0;
    }
}

enum ifd_code ifd_candidates_finish(struct ifd_candidates *candidates,
                                    const struct ifd_decoding *decoding, bool is_final,
                                    ifd_keypoints_fn keypoints, uint32_t keypoint_count,
                                    struct ifd_err *err)
{
    const struct ifd_object_options *options = decoding->options;
    struct ifd_objects *ret = decoding->ret;
    qsort(candidates->at, candidates->count, sizeof(*candidates->at), by_rank);
    const size_t count = suppress(candidates->at, candidates->count,
                                  is_final ? INFINITY : options->iou, options->top_k);
    ret->object = ifd_arena_take_array(decoding->arena, count, sizeof(*ret->object));
    if (!ret->object) {
        return ifd_arena_fail(decoding->arena, count * sizeof(*ret->object), err);
    }
    for (size_t i = 0; i < count; i++) {
        const struct ifd_candidate *candidate = &candidates->at[i];
        struct ifd_object *object = &ret->object[ret->object_count];
        *object = (struct ifd_object){
            .index = candidate->index, .score = candidate->score, .has_box = true};
        if (!map_box(decoding->view, candidate->box, object->box)) {
            continue;
        }
        ret->object_count++;
        enum ifd_code code =
            keypoints ? map_keypoints(decoding, keypoints, candidate, keypoint_count, object, err)
                      : IFD_OK;
        if (code) {
            return code;
        }
    }
    return IFD_OK;
}

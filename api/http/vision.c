/* /v1/vision: which model answers whom. vision_answer.c has the form of its answers. */
#include "api/http/vision.h"

#include <string.h>

#include "api/http/handlers.h"
#include "api/http/media_type.h"
#include "api/http/multipart.h"
#include "engine/base/str.h"

/* ---- models ---- */

static bool finds_faces_only(const struct ifd_meaning *meaning)
{
    return meaning->label_count == 1 && ifd_str_equal_nocase(ifd_str(meaning->label[0]), "face");
}

static bool can_answer(const struct ifd_meaning *meaning)
{
    return meaning && (meaning->task == IFD_TASK_DETECTION || meaning->task == IFD_TASK_KEYPOINTS ||
                       meaning->task == IFD_TASK_CLASSIFICATION);
}

struct search {
    struct ifd_http_call *call;
    bool wants_faces;
    const char *best; /* in the arena; NULL: none yet */
    enum ifd_code code;
};

static void consider(void *arg, const struct ifd_index_row *row)
{
    struct search *search = arg;
    struct ifd_http_call *call = search->call;
    struct ifd_model_ref *ref = NULL;
    if (row->state != IFD_MODEL_READY || (search->best && strcmp(row->name, search->best) >= 0) ||
        ifd_http_ops(call)->acquire(ifd_http_service(call), ifd_str(row->name), 0, &ref, NULL)) {
        return;
    }
    const struct ifd_meaning *meaning = ifd_http_ops(call)->describe(ref)->meaning;
    if (meaning && meaning->task == IFD_TASK_DETECTION &&
        finds_faces_only(meaning) == search->wants_faces) {
        search->best = ifd_arena_text(call->core.arena, row->name, strlen(row->name));
        search->code = search->best ? IFD_OK : IFD_NOMEM;
    }
    ifd_http_ops(call)->release(ifd_http_service(call), ref);
}

enum ifd_code ifd_vision_choose(struct ifd_http_call *call, struct ifd_err *err)
{
    const bool wants_faces = call->route->kind == IFD_ROUTE_FACE;
    const char *set = wants_faces ? call->vision_face : call->vision_detection;
    if (call->route->kind == IFD_ROUTE_CUSTOM) {
        return IFD_OK;
    }
    if (set && set[0] != '\0') {
        call->core.model = ifd_str(set);
        return IFD_OK;
    }
    struct search search = {.call = call, .wants_faces = wants_faces};
    ifd_http_ops(call)->index(ifd_http_service(call), true, consider, &search);
    if (search.code != IFD_OK) {
        return ifd_fail(err, search.code, "no memory for the name of a model");
    }
    if (!search.best) {
        return ifd_fail(err, IFD_NOT_FOUND, "no model that finds %s is ready; name one with %s",
                        wants_faces ? "faces" : "objects",
                        wants_faces ? "--vision-face" : "--vision-detection");
    }
    call->core.model = ifd_str(search.best);
    return IFD_OK;
}

struct listing {
    struct ifd_http_call *call;
    struct ifd_json_out out;
    struct ifd_str last; /* a model has a row for each version, one after the other */
};

static void list_model(void *arg, const struct ifd_index_row *row)
{
    struct listing *listing = arg;
    struct ifd_http_call *call = listing->call;
    struct ifd_model_ref *ref = NULL;
    if (row->state != IFD_MODEL_READY ||
        (listing->last.data && ifd_str_equal(listing->last, row->name)) ||
        ifd_http_ops(call)->acquire(ifd_http_service(call), ifd_str(row->name), 0, &ref, NULL)) {
        return;
    }
    if (can_answer(ifd_http_ops(call)->describe(ref)->meaning)) {
        ifd_json_put_text(&listing->out, row->name);
    }
    listing->last = ifd_str(row->name);
    ifd_http_ops(call)->release(ifd_http_service(call), ref);
}

void ifd_handle_vision_list(struct ifd_http_call *call)
{
    struct listing listing = {.call = call};
    ifd_json_out_init(&listing.out, call->exchange->arena);
    ifd_json_begin(&listing.out, '{');
    ifd_json_member_bool(&listing.out, "success", true);
    ifd_json_key(&listing.out, "models");
    ifd_json_begin(&listing.out, '[');
    ifd_http_ops(call)->index(ifd_http_service(call), true, list_model, &listing);
    ifd_json_end(&listing.out, ']');
    ifd_json_end(&listing.out, '}');
    ifd_http_json(call, 200, &listing.out);
}

/* ---- tokens ---- */

enum ifd_code ifd_vision_key(const struct ifd_http_call *call, struct ifd_str *ret,
                             struct ifd_err *err)
{
    static const char scheme[] = "Bearer ";
    const size_t lead = sizeof(scheme) - 1;
    const struct ifd_str type = call->exchange->header(call->exchange, "Content-Type");
    struct ifd_multipart form;
    struct ifd_part part = {.is_file = false};
    bool is_there = ifd_media_type_is(type, "multipart/form-data");
    enum ifd_code code = is_there ? ifd_multipart_begin(type, call->body, &form, err) : IFD_OK;
    while (code == IFD_OK && is_there && !ifd_str_equal(part.name, "api_key")) {
        code = ifd_multipart_next(&form, &part, &is_there, err);
    }
    if (code != IFD_OK || !is_there || part.content.size == 0) {
        return code;
    }
    char *text = ifd_arena_take(call->core.arena, lead + part.content.size);
    if (!text) {
        return ifd_arena_fail(call->core.arena, lead + part.content.size, err);
    }
    memcpy(text, scheme, lead);
    memcpy(text + lead, part.content.data, part.content.size);
    *ret = (struct ifd_str){.data = text, .size = lead + part.content.size};
    return IFD_OK;
}

/* ---- inferences ---- */

enum ifd_code ifd_vision_check(const struct ifd_http_infer *infer, struct ifd_err *err)
{
    return can_answer(infer->core.desc->meaning)
               ? IFD_OK
               : ifd_fail(err, IFD_INVALID,
                          "model '%s' finds neither objects nor classes in a picture",
                          infer->core.desc->name);
}

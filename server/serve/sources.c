/* The line of frames. */
#include "server/serve/sources.h"

#include <string.h>

#include "engine/base/clock.h"
#include "server/serve/service_impl.h"

/* ---- the line ---- */

static struct ifd_infer_request *find(const struct ifd_sources *sources, struct ifd_str source)
{
    struct ifd_infer_request *at = sources->first;
    while (at && (at->source.size != source.size ||
                  memcmp(at->source.data, source.data, source.size) != 0)) {
        at = at->turn.next;
    }
    return at;
}

/* Lets the neighbours of request's place point to by, or, if it is NULL, to each other. */
static void put_in_place(struct ifd_sources *sources, const struct ifd_infer_request *request,
                         struct ifd_infer_request *by)
{
    struct ifd_infer_request *previous = request->turn.previous, *next = request->turn.next;
    *(previous ? &previous->turn.next : &sources->first) = by ? by : next;
    *(next ? &next->turn.previous : &sources->last) = by ? by : previous;
}

static void end_waiting(struct ifd_sources *sources, struct ifd_infer_request *request)
{
    put_in_place(sources, request, NULL);
    request->turn.is_waiting = false;
    sources->waiting--;
}

static void refuse(struct ifd_sources *sources, struct ifd_infer_request *request,
                   enum ifd_code code)
{
    struct ifd_err err = {0};
    end_waiting(sources, request);
    request->turn.done(request->turn.arg, ifd_service_explain(code, &err), &err);
}

/* done may end the turn before it returns: then the loop goes on, not the call within. */
static void give_turns(struct ifd_sources *sources)
{
    if (sources->is_giving) {
        return;
    }
    sources->is_giving = true;
    while (sources->first && sources->turns < sources->most_turns) {
        struct ifd_infer_request *request = sources->first;
        end_waiting(sources, request);
        request->turn.is_taken = true;
        request->turn.waited_ns = ifd_monotonic_ns() - request->turn.entered_ns;
        sources->turns++;
        request->turn.done(request->turn.arg, IFD_OK, NULL);
    }
    sources->is_giving = false;
}

static void replace(struct ifd_sources *sources, struct ifd_infer_request *old,
                    struct ifd_infer_request *request)
{
    struct ifd_err err = {0};
    const struct ifd_str source = request->source;
    request->turn.previous = old->turn.previous;
    request->turn.next = old->turn.next;
    request->turn.is_waiting = true;
    put_in_place(sources, old, request);
    old->turn.is_waiting = false;
    old->turn.done(old->turn.arg,
                   ifd_fail(&err, IFD_EXISTS,
                            "skipped: a newer frame of source '%.*s' came before this one ran",
                            (int)source.size, source.data),
                   &err);
}

void ifd_sources_enter(struct ifd_sources *sources, struct ifd_infer_request *request,
                       uint64_t deadline_ns, ifd_control_fn done, void *arg)
{
    struct ifd_infer_request *old = find(sources, request->source);
    request->turn = (struct ifd_turn){
        .entered_ns = ifd_monotonic_ns(), .deadline_ns = deadline_ns, .done = done, .arg = arg};
    if (old) {
        replace(sources, old, request);
        return;
    }
    if (sources->waiting >= sources->most_waiting) {
        struct ifd_err err = {0};
        done(arg,
             ifd_fail(&err, IFD_BUSY, "frames of %u sources wait, the model's maximum",
                      sources->waiting),
             &err);
        return;
    }
    request->turn.is_waiting = true;
    request->turn.previous = sources->last;
    *(sources->last ? &sources->last->turn.next : &sources->first) = request;
    sources->last = request;
    sources->waiting++;
    give_turns(sources);
}

void ifd_sources_leave(struct ifd_sources *sources, struct ifd_infer_request *request)
{
    if (request->turn.is_waiting) {
        end_waiting(sources, request);
    } else if (request->turn.is_taken) {
        request->turn.is_taken = false;
        sources->turns--;
        give_turns(sources);
    }
}

/* ---- the end of waiting ---- */

void ifd_sources_expire(struct ifd_sources *sources, uint64_t now_ns)
{
    /* Frames that replace others keep their place, so deadlines are in no order. What done calls
     * may change the line: it is walked anew. */
    struct ifd_infer_request *at = sources->first;
    while (at) {
        const bool is_late = at->turn.deadline_ns > 0 && now_ns >= at->turn.deadline_ns;
        if (is_late) {
            refuse(sources, at, IFD_DEADLINE);
        }
        at = is_late ? sources->first : at->turn.next;
    }
}

void ifd_sources_clear(struct ifd_sources *sources)
{
    while (sources->first) {
        refuse(sources, sources->first, IFD_UNAVAILABLE);
    }
}

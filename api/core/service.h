/** What the API may ask of the server: models, their descriptions, inference, control. The API
 *  knows no engine and no thread; the server implements this in server/serve/service.c, tests in
 *  tests/support/fake_service.c.
 *
 *  Everything here is called on, and calls back on, the loop thread. Nothing blocks: what takes
 *  time has a callback. Strings and descriptions that a call returns live as long as the thing they
 *  describe is held. */
#ifndef INFERD_API_CORE_SERVICE_H
#define INFERD_API_CORE_SERVICE_H

#include <stdatomic.h>

#include "api/core/outcome.h"
#include "engine/base/arena.h"
#include "inferd/status.h"
#include "inferd/types.h"
#include "server/model/desc.h"
#include "server/model/picture.h"

struct ifd_service;   /* the server's own */
struct ifd_model_ref; /* a model version, pinned: it stays loaded until released */

/** A row of the repository index. version 0: the model has no version (reason says why). */
struct ifd_index_row {
    const char *name;
    int64_t version;
    enum ifd_model_state state;
    const char *reason;  /* "" if there is none */
    const char *pending; /* what the model waits for; NULL: nothing */
    /* Loads of this content that failed in a row, and seconds until the next one, even while older
     * content serves. IFD_RETRY_NEVER: no load before the content changes or a client asks. */
    uint32_t attempts; /* 0: none failed */
    uint64_t retry_secs;
};
#define IFD_RETRY_NEVER UINT64_MAX
typedef void (*ifd_index_fn)(void *arg, const struct ifd_index_row *row);

/** A backend that computes nothing at present, and why. */
typedef void (*ifd_missing_fn)(void *arg, const char *name, const char *reason);

/* ---- inference ---- */

struct ifd_infer_request;
typedef void (*ifd_control_fn)(void *arg, enum ifd_code code, const struct ifd_err *err);

/** The turn of a request that is a frame of a source: the service's own, from line_up on. */
struct ifd_turn {
    struct ifd_infer_request *previous, *next; /* requests that wait */
    bool is_waiting, is_taken;
    uint64_t entered_ns, waited_ns; /* when it began to wait; until its turn */
    uint64_t deadline_ns;           /* 0: none */
    ifd_control_fn done;
    void *arg;
};

/** One inference. The caller (api/core/infer.c) fills it in the request's arena and keeps it until
 *  done() or cancel. */
struct ifd_infer_request {
    struct ifd_model_ref *model;
    struct ifd_arena *arena; /* of the HTTP request; workers do not touch it */

    /** In the model's order of inputs; data == NULL for an optional input that is absent. Shapes
     *  include the batch dimension. The memory stays until done(), and after done() with OK until
     *  release_outputs(): outputs may lie in it (identity). dtype, shape and bytes were checked
     *  against the description. */
    struct ifd_tensor *input;

    /** In the model's order of outputs. wanted[i] false: not returned. The service fills output[i]
     *  before done(): memory of the service that stays until release(). */
    struct ifd_tensor *output;
    const bool *wanted;
    int64_t batch; /* 1 for models without a batch dimension */

    const char *id; /* "" if none */
    /** For models that keep state between requests; size 0: of no sequence. */
    struct ifd_str sequence_id;
    bool sequence_start, sequence_end;
    /** Camera whose frame this is; size 0: none. The text stays as the inputs do. */
    struct ifd_str source;
    struct ifd_turn turn;
    uint64_t priority;    /* 0 = the model's default */
    uint64_t timeout_us;  /* 0 = none given */
    uint64_t received_ns; /* monotonic: when the request's headers were complete */
    uint64_t handled_ns;  /* monotonic: when its body was complete; timeouts count from here */
    uint64_t started_ns;  /* monotonic: when its run began; the service sets it before done() */

    /** Of a measured run, which no other request shares: room for the time of each step of the
     *  plan. Written before done(). NULL: not measured. */
    uint64_t *step_ns;
    uint32_t step_count;

    /** The client is gone: set by the caller, read by threads that work for the request. */
    atomic_bool is_abandoned;

    /** Called once, on the loop thread, if submit() returns OK: before it does or later. code and
     *  err tell how it went. */
    void (*done)(struct ifd_infer_request *request, enum ifd_code code, const struct ifd_err *err);
    void *owner; /* the caller's own */

    void *service_private; /* the service's own */
};

/** Most bytes of a source's name. */
#define IFD_SOURCE_BYTES_MAX 128

/** How an inference ended, and when it passed each stage (monotonic; 0: not reached). */
struct ifd_request_end {
    enum ifd_outcome outcome;
    bool is_frame, is_replaced; /* of a source; by a newer one */
    uint64_t received_ns;       /* headers complete */
    uint64_t handled_ns;        /* body complete */
    uint64_t waited_ns;  /* of the time from handled_ns to decoded_ns: a frame's for its turn */
    uint64_t decoded_ns; /* ready to be queued */
    uint64_t done_ns;    /* the result came back */
    uint64_t encoded_ns; /* the answer was ready to be sent */
    uint64_t ended_ns;   /* it was sent, or given up */
};

/* ---- control ---- */

/** A file in a load request: "file:1/model.tflite". */
struct ifd_load_file {
    struct ifd_str path; /* below the model's folder */
    struct ifd_bytes content;
};
struct ifd_load_request {
    struct ifd_str model;
    struct ifd_str config; /* JSON text that overrides the repository's, or {NULL,0} */
    const struct ifd_load_file *file;
    uint32_t file_count;
};

/** Counters of one model version, as Triton's statistics have them (ns and counts since the version
 *  became ready). */
struct ifd_duration_stat {
    uint64_t count, ns;
};
/** Executions of one size. */
struct ifd_batch_stat {
    struct ifd_duration_stat compute_input, compute_infer, compute_output;
};
struct ifd_model_stats {
    const char *name;
    const char *version_text;
    uint64_t last_inference_ms; /* since 1970, 0 = never */
    uint64_t inference_count, execution_count;
    struct ifd_duration_stat success, fail, queue, compute_input, compute_infer, compute_output,
        cache_hit, cache_miss;
    struct ifd_batch_stat *batch; /* of 1, 2, … samples; sizes that did not run have count 0 */
    uint32_t batch_count;         /* larger batches are not reported */
};
typedef void (*ifd_stats_fn)(void *arg, const struct ifd_model_stats *stats);

/** What the log writes. */
struct ifd_log_settings {
    bool info, warning, error;
    uint32_t verbose_level; /* 0: only these */
    bool is_iso8601;        /* what a client asked for; times are always ISO 8601 */
};

/* ---- the table ---- */

struct ifd_server_info {
    const char *name;         /* "inferd", or what --id says */
    const char *version;      /* of this program */
    const char *control_mode; /* how models come: "none", "explicit" or "poll" */
    const char *const *extensions;
    uint32_t extension_count;
};

struct ifd_service_ops {
    const struct ifd_server_info *(*info)(struct ifd_service *service);

    bool (*is_live)(struct ifd_service *service);
    /** OK, or UNAVAILABLE with the reason (starting, stopping, a model that failed under
     *  --strict-readiness). */
    enum ifd_code (*is_ready)(struct ifd_service *service, struct ifd_err *why_not);

    /** Calls fn for each backend that is not there or has lost its device. May be NULL: all are
     *  there. */
    void (*missing_backends)(struct ifd_service *service, ifd_missing_fn fn, void *arg);

    /** Pins a version: version 0 = what the version policy serves (the latest ready one). NOT_FOUND
     *  (unknown model, unknown version, no version ready: text starts with "Request for unknown
     *  model"), UNAVAILABLE (version known, not ready). */
    enum ifd_code (*acquire)(struct ifd_service *service, struct ifd_str name, int64_t version,
                             struct ifd_model_ref **ret_ref, struct ifd_err *err);
    void (*release)(struct ifd_service *service, struct ifd_model_ref *ref);
    const struct ifd_model_desc *(*describe)(const struct ifd_model_ref *ref);

    /** An inference request that names a pinned version begins; ends, sent or not, exactly once.
     *  For statistics; may be NULL. */
    void (*begun)(struct ifd_service *service, struct ifd_model_ref *ref);
    /** Its body is nearly complete: submit will follow soon. At most once; may be NULL. */
    void (*coming)(struct ifd_service *service, struct ifd_model_ref *ref);
    void (*ended)(struct ifd_service *service, struct ifd_model_ref *ref,
                  const struct ifd_request_end *end);

    /** A frame of a source waits for its turn, before its pictures are decoded. Sources take turns;
     *  of each source the newest frame waits. done() comes on the loop thread, at once or later.
     *  Errors: EXISTS (a newer frame of its source came), DEADLINE, BUSY (too many wait),
     *  UNAVAILABLE (stopping). NULL: there are no turns. */
    void (*line_up)(struct ifd_service *service, struct ifd_infer_request *request,
                    ifd_control_fn done, void *arg);
    /** Its turn is over, or it no longer waits: then done() will not be called. May be called
     *  again. */
    void (*leave_line)(struct ifd_service *service, struct ifd_infer_request *request);

    /** Queues a request. Not OK (BUSY: queue full; UNAVAILABLE: shutting down; TOO_LARGE; INVALID)
     *  means that done() will not be called. */
    enum ifd_code (*submit)(struct ifd_service *service, struct ifd_infer_request *request,
                            struct ifd_err *err);
    /** The client is gone: done() will not be called any more; the request's memory may go when
     *  this returns, except the inputs if this returns false: then the caller must wait for done(),
     *  which comes with CANCELLED or a result. */
    bool (*cancel)(struct ifd_service *service, struct ifd_infer_request *request);
    /** Gives the output memory back, after the answer was sent. */
    void (*release_outputs)(struct ifd_service *service, struct ifd_infer_request *request);

    void (*index)(struct ifd_service *service, bool only_ready, ifd_index_fn fn, void *arg);
    /** Reads which models there are now; index reports them after done. NULL: index is always
     *  current. */
    void (*refresh)(struct ifd_service *service, ifd_control_fn done, void *arg);

    /** NULL unless info's control_mode is "explicit"; the API answers that it is not allowed. */
    void (*load)(struct ifd_service *service, const struct ifd_load_request *request,
                 ifd_control_fn done, void *arg);
    void (*unload)(struct ifd_service *service, struct ifd_str model, bool dependents,
                   ifd_control_fn done, void *arg);

    void (*log_settings)(struct ifd_service *service, struct ifd_log_settings *ret);
    void (*set_log)(struct ifd_service *service, const struct ifd_log_settings *settings);

    /** Statistics of one model (version 0: all its versions), or of all models (name {NULL,0}). May
     *  be NULL. */
    enum ifd_code (*stats)(struct ifd_service *service, struct ifd_str name, int64_t version,
                           ifd_stats_fn fn, void *arg, struct ifd_err *err);

    /** Makes request a measured run on zeros: sets inputs, step_ns and step_count, in its arena.
     *  Errors: UNSUPPORTED (the model has no steps, or only a request can say how large an input
     *  is), NOMEM. NULL: nothing can be measured. */
    enum ifd_code (*prepare_profile)(struct ifd_service *service, struct ifd_infer_request *request,
                                     struct ifd_err *err);
    /** Writes a JSON object: graph, steps and memory of a version that prepare_profile took.
     *  Thread: any. */
    enum ifd_code (*write_plan)(const struct ifd_model_ref *ref, ifd_sink_fn sink, void *context,
                                struct ifd_err *err);

    /** Decodes count regions of a picture of request (by its first bytes, or a frame as its source
     *  says), resizes and normalises each into its sample, whose dtype and shape are those of the
     *  input's one sample, and fills its view. done() comes once on the loop thread, at once or
     *  later; picture must stay until then. Errors: also DEADLINE (the request's), UNAVAILABLE
     *  (stopping), CANCELLED (request->is_abandoned). */
    void (*decode_image)(struct ifd_service *service, const struct ifd_infer_request *request,
                         struct ifd_picture *picture, size_t count, ifd_control_fn done, void *arg);

    /** Reads a sound for an input: samples at its rate, in arena. Thread: any. */
    enum ifd_code (*read_sound)(struct ifd_service *service, const struct ifd_sound_source *source,
                                const struct ifd_tensor_info *input, struct ifd_arena *arena,
                                float **ret, size_t *ret_count, struct ifd_err *err);

    /** Sets an option of an answer with objects from a parameter of a request: as ifd_object_option
     *  of server/objects/objects.h. The model's meaning is known. Thread: any. */
    enum ifd_code (*object_option)(struct ifd_service *service, const struct ifd_model_desc *desc,
                                   struct ifd_str name, struct ifd_str value,
                                   struct ifd_arena *arena, struct ifd_object_options *ret,
                                   struct ifd_err *err);
    /** What the outputs of sample index of a request mean, which ran with count samples. view: of
     *  the picture that was the sample. Results lie in the request's arena. Thread: any. */
    enum ifd_code (*find_objects)(struct ifd_service *service, const struct ifd_model_desc *desc,
                                  const struct ifd_infer_request *request, size_t index,
                                  size_t count, const struct ifd_picture_view *view,
                                  const struct ifd_object_options *options, struct ifd_objects *ret,
                                  struct ifd_err *err);

    /** The mask of what was found as a palette PNG, in the request's arena. Thread: any. */
    enum ifd_code (*encode_mask)(struct ifd_service *service,
                                 const struct ifd_infer_request *request,
                                 const struct ifd_objects *found, struct ifd_bytes *ret,
                                 struct ifd_err *err);
    /** The picture of a request, with what was found in it or in count regions of it drawn on it;
     *  in the request's arena. Thread: any; it takes long. */
    enum ifd_code (*draw_objects)(struct ifd_service *service, const struct ifd_model_desc *desc,
                                  struct ifd_infer_request *request,
                                  const struct ifd_picture_source *source,
                                  const struct ifd_objects *found, size_t count,
                                  enum ifd_drawing drawing, struct ifd_bytes *ret,
                                  struct ifd_err *err);

    /** Calls work(arg) on a thread beside the loop, then done(arg) on the loop thread; without
     *  work, and with CANCELLED, if request was abandoned before; with DEADLINE, if it has one and
     *  no thread was free until then. False: neither; the caller works itself. For work that would
     *  block the loop. May be NULL. */
    bool (*offload)(struct ifd_service *service, const struct ifd_infer_request *request,
                    bool has_deadline, void (*work)(void *arg), ifd_control_fn done, void *arg);

    /** request->is_abandoned was set: done() of what waits for a thread comes soon, of what runs as
     *  soon as it can be interrupted. NULL if decode_image and offload never wait. */
    void (*withdraw)(struct ifd_service *service);
};

#endif

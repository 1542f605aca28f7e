/** Shared by the files behind service.h:
 *
 *  service.c          requests become jobs, jobs answers; life
 *  service_level.c    priority levels: policy, bound and deadline of a request
 *  service_models.c   which models there are, loading and unloading
 *  service_server.c   name, health and log of the server
 *  service_tasks.c    pictures and large JSON, on other threads
 *  service_objects.c  what outputs mean, sounds; thread: any
 *  service_profile.c  a measured run, the plan
 *
 *  The functions are those of struct ifd_service_ops (api/core/service.h). Thread: loop only. */
#ifndef INFERD_SERVER_SERVE_SERVICE_IMPL_H
#define INFERD_SERVER_SERVE_SERVICE_IMPL_H

#include "server/serve/ahead.h"
#include "server/serve/service.h"

struct service_job;

struct ifd_service {
    struct ifd_service_options options;
    struct ifd_server_info info;
    struct service_job *spare;
    uint32_t spare_count;
    uint32_t deadlines; /* jobs and pictures with a deadline: the timer checks them */
    struct ifd_timer *expire;
    bool has_pushed; /* the pool has not been woken for the last pushes */
    struct ifd_ahead ahead;
    bool is_stopping, is_iso8601;
    atomic_bool is_cancelling; /* read by threads that decode pictures */
};

/* ---- service.c ---- */

/** Writes the text of IFD_DEADLINE, IFD_UNAVAILABLE (stopping) or IFD_CANCELLED into err. Returns
 *  code. */
enum ifd_code ifd_service_explain(enum ifd_code code, struct ifd_err *err);
/** Starts the timer that checks deadlines, if there are any. */
void ifd_service_watch_deadlines(struct ifd_service *service);

/* ---- service_level.c ---- */

/** The level of a priority (0: the default), from 0 on. INVALID: the model has no such priority. */
IFD_NODISCARD enum ifd_code ifd_service_level(const struct ifd_model_desc *desc, uint64_t priority,
                                              uint32_t *ret_level, struct ifd_err *err);

/** What a level's policy says of a request. */
struct service_terms {
    struct ifd_queue_bound *bound; /* of the level alone; NULL: none */
    uint64_t deadline_ns;          /* monotonic; 0: none */
    bool is_default; /* deadline_ns is the server's default, of a wait that begins now */
    bool rejects;    /* at the deadline; else the request is taken last */
};
struct service_terms ifd_service_terms(const struct ifd_service *service,
                                       const struct ifd_infer_request *request, uint32_t level);

/** Time at which a request is answered IFD_DEADLINE unless its run has begun; if *ret_is_default,
 *  unless the wait is over that begins now. 0: never. Monotonic. */
uint64_t ifd_service_deadline(const struct ifd_service *service,
                              const struct ifd_infer_request *request, bool *ret_is_default);

/* ---- service_models.c ---- */

IFD_NODISCARD enum ifd_code ifd_service_acquire(struct ifd_service *service, struct ifd_str name,
                                                int64_t version, struct ifd_model_ref **ret_ref,
                                                struct ifd_err *err);
void ifd_service_release(struct ifd_service *service, struct ifd_model_ref *ref);
const struct ifd_model_desc *ifd_service_describe(const struct ifd_model_ref *ref);
void ifd_service_index(struct ifd_service *service, bool only_ready, ifd_index_fn fn, void *arg);
IFD_NODISCARD enum ifd_code ifd_service_stats(struct ifd_service *service, struct ifd_str name,
                                              int64_t version, ifd_stats_fn fn, void *arg,
                                              struct ifd_err *err);
void ifd_service_load(struct ifd_service *service, const struct ifd_load_request *request,
                      ifd_control_fn done, void *arg);
void ifd_service_unload(struct ifd_service *service, struct ifd_str model, bool dependents,
                        ifd_control_fn done, void *arg);
void ifd_service_refresh(struct ifd_service *service, ifd_control_fn done, void *arg);

/* ---- service_server.c ---- */

const struct ifd_server_info *ifd_service_info(struct ifd_service *service);
bool ifd_service_is_live(struct ifd_service *service);
void ifd_service_missing_backends(struct ifd_service *service, ifd_missing_fn fn, void *arg);
enum ifd_code ifd_service_is_ready(struct ifd_service *service, struct ifd_err *why_not);
void ifd_service_log_settings(struct ifd_service *service, struct ifd_log_settings *ret);
void ifd_service_set_log(struct ifd_service *service, const struct ifd_log_settings *settings);

/* ---- service_tasks.c ---- */

void ifd_service_decode_image(struct ifd_service *service, const struct ifd_infer_request *request,
                              struct ifd_picture *picture, size_t count, ifd_control_fn done,
                              void *arg);
bool ifd_service_offload(struct ifd_service *service, const struct ifd_infer_request *request,
                         bool has_deadline, void (*work)(void *arg), ifd_control_fn done,
                         void *arg);
void ifd_service_withdraw(struct ifd_service *service);

/* ---- service_objects.c ---- */

IFD_NODISCARD enum ifd_code ifd_service_read_sound(struct ifd_service *service,
                                                   const struct ifd_sound_source *source,
                                                   const struct ifd_tensor_info *input,
                                                   struct ifd_arena *arena, float **ret,
                                                   size_t *ret_count, struct ifd_err *err);

IFD_NODISCARD enum ifd_code ifd_service_object_option(struct ifd_service *service,
                                                      const struct ifd_model_desc *desc,
                                                      struct ifd_str name, struct ifd_str value,
                                                      struct ifd_arena *arena,
                                                      struct ifd_object_options *ret,
                                                      struct ifd_err *err);
IFD_NODISCARD enum ifd_code ifd_service_find_objects(struct ifd_service *service,
                                                     const struct ifd_model_desc *desc,
                                                     const struct ifd_infer_request *request,
                                                     size_t index, size_t count,
                                                     const struct ifd_picture_view *view,
                                                     const struct ifd_object_options *options,
                                                     struct ifd_objects *ret, struct ifd_err *err);
IFD_NODISCARD enum ifd_code ifd_service_encode_mask(struct ifd_service *service,
                                                    const struct ifd_infer_request *request,
                                                    const struct ifd_objects *found,
                                                    struct ifd_bytes *ret, struct ifd_err *err);
IFD_NODISCARD enum ifd_code ifd_service_draw_objects(struct ifd_service *service,
                                                     const struct ifd_model_desc *desc,
                                                     struct ifd_infer_request *request,
                                                     const struct ifd_picture_source *source,
                                                     const struct ifd_objects *found, size_t count,
                                                     enum ifd_drawing drawing,
                                                     struct ifd_bytes *ret, struct ifd_err *err);

/* ---- service_profile.c ---- */

IFD_NODISCARD enum ifd_code ifd_service_prepare_profile(struct ifd_service *service,
                                                        struct ifd_infer_request *request,
                                                        struct ifd_err *err);
IFD_NODISCARD enum ifd_code ifd_service_write_plan(const struct ifd_model_ref *ref,
                                                   ifd_sink_fn sink, void *context,
                                                   struct ifd_err *err);

#endif

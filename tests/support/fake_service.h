/** A service without engine and threads, for tests of api/: models that compute in a line or two,
 *  answers that come when the test says so.
 *
 *  Models: simple (versions 1 and 3: sum and difference of INT32 [-1,16], batch ≤ 8), classify
 *  (FP32 [-1,10] with labels zero … nine, batch ≤ 8), identity (FP32 [-1]), strings (BYTES [-1],
 *  optional BOOL FLAG), id_<TYPE> (identity of every data type, [-1], as id_INT8), picture (UINT8
 *  [2,2,3] with labels, batch ≤ 4; takes pictures), broken (never loads). A "picture" is "FAKE", or
 *  "BMKE" (which begins like a BMP), and one byte, which fills the tensor. Thread: one at a
 *  time. */
#ifndef INFERD_TESTS_SUPPORT_FAKE_SERVICE_H
#define INFERD_TESTS_SUPPORT_FAKE_SERVICE_H

#include "api/core/service.h"

#define FAKE_MODELS_MAX  32
#define FAKE_JOBS_MAX    32
#define FAKE_SOURCES_MAX 4

struct ifd_model_ref {
    struct ifd_model_desc desc;
    bool is_ready;
};

struct fake_job {
    struct ifd_infer_request *request; /* an inference, or … */
    ifd_control_fn done;               /* … a control call or a picture */
    void (*work)(void *arg);           /* … or work beside the loop */
    void *arg;
    enum ifd_code code;
    const char *reason;
};

struct ifd_service {
    const struct ifd_alloc *alloc; /* of outputs */
    struct ifd_model_ref model[FAKE_MODELS_MAX];
    uint32_t model_count;
    struct fake_job job[FAKE_JOBS_MAX];
    uint32_t job_count;
    int held_refs, held_outputs, held_turns; /* must be 0 at the end */

    struct ifd_server_info info;

    /* what the test wants */
    const char *control_mode;    /* for messages; the table of functions decides what is possible */
    enum ifd_code refuse_submit; /* not OK: submit() answers this */
    enum ifd_code fail_run;      /* not OK: done() is called with this */
    enum ifd_code refuse_turn;   /* not OK: a frame's done() is called with this */
    bool is_not_ready;
    bool cancel_waits;    /* cancel() answers false */
    bool offloads;        /* offload() takes work */
    uint32_t withdrawals; /* calls of withdraw() */

    struct ifd_log_settings log;

    /* what the test may look at */
    char last_id[64], last_config[256], last_camera[64];
    uint64_t last_priority, last_timeout_us;
    uint32_t last_file_count;
    uint8_t last_file[16];
    struct ifd_picture_source last_source[FAKE_SOURCES_MAX]; /* of pictures */
    uint32_t source_count, decode_count;
    float last_threshold; /* of objects */
    bool last_dependents;
    uint32_t offload_count;
    uint64_t offload_timeout_us; /* of the last request; UINT64_MAX: it waits without a deadline */
    bool last_in_place;          /* the first input was used where the body was received */
    const uint8_t *body;         /* set by the loopback */
    size_t body_size;
};

void fake_service_init(struct ifd_service *fake, const struct ifd_alloc *alloc);
/** Expects that everything was given back. */
void fake_service_finish(struct ifd_service *fake);
const struct ifd_service_ops *fake_service_ops(void);
/** The same without load, unload, stats and profile. */
const struct ifd_service_ops *fake_service_ops_without_control(void);
/** Ends what waits longest; false if nothing does. */
bool fake_service_step(struct ifd_service *fake);
/** Ends everything that waits. */
void fake_service_run(struct ifd_service *fake);

#endif

/** A small C client for inferd, and for any server that speaks the Open Inference Protocol (v2)
 *  over HTTP. It needs libcurl and jansson and nothing else of the project. A client holds one
 *  kept-alive connection and answers one call at a time.
 *
 *  Ownership: what a function returns through ret_* belongs to the caller until the matching
 *             destroy or free. Strings and data that are passed in are only read during the call.
 *  Errors:    a function that can fail returns a code and, if err is not NULL, fills it with a
 *             sentence: the server's "error" text if the server refused. ret_* is written only on
 *             IFD_CLIENT_OK.
 *  Threads:   one thread at a time uses a client; different clients are independent. There is no
 *             global state besides libcurl's own, which libcurl 7.84 and later initialises safely
 *             from any thread. */
#ifndef INFERD_CLIENTS_C_INFERD_CLIENT_H
#define INFERD_CLIENTS_C_INFERD_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default) /* the library is compiled with -fvisibility=hidden */
#endif

#if defined(__GNUC__)
#define IFD_CLIENT_NODISCARD __attribute__((warn_unused_result))
#else
#define IFD_CLIENT_NODISCARD
#endif

/** The kind of an error, for programs; struct ifd_client_err has a sentence for people. */
enum ifd_client_code {
    IFD_CLIENT_OK = 0,
    IFD_CLIENT_INVALID,   /**< wrong arguments; nothing was sent */
    IFD_CLIENT_NOMEM,     /**< out of memory */
    IFD_CLIENT_TRANSPORT, /**< no answer: not reachable, time-out, connection lost */
    IFD_CLIENT_REFUSED,   /**< the server answered with an error; http_status says which */
    IFD_CLIENT_PROTOCOL,  /**< the answer breaks the protocol or is larger than the limit */
};

struct ifd_client_err {
    enum ifd_client_code code;
    int http_status; /**< 0 when no answer came */
    char text[512];  /**< always terminated; cut if longer */
};

struct ifd_client;

struct ifd_client_options {
    const char *url;         /**< "http://HOST:PORT" or "unix:/path/to/socket" */
    const char *token;       /**< sent with every call; NULL: none */
    long connect_timeout_ms; /**< 0: 5 s */
    long timeout_ms;         /**< for one whole call; 0: none */
    size_t max_answer_bytes; /**< 0: 1 GiB */
    /** Called once a second or more often while a call lasts, with the seconds that it has taken so
     *  far. Thread: that of the call. It must not use the client. NULL: none. */
    void (*waits)(void *arg, double seconds);
    void *waits_arg;
};

/** Makes a client. Nothing is sent yet: the first call connects. */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_create(
    const struct ifd_client_options *options, struct ifd_client **ret_client,
    struct ifd_client_err *err);
/** Closes the connection. Accepts NULL. */
void ifd_client_destroy(struct ifd_client *client);

/** Frees a text that a function below returned. Accepts NULL. */
void ifd_client_text_free(char *text);

/** OK if the server answers that it is alive. */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_live(struct ifd_client *client,
                                                          struct ifd_client_err *err);

/** OK if the server (model NULL) or a model is ready; REFUSED with the server's reason if not.
 *
 *  version: NULL lets the server choose, here and in every function below. */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_ready(struct ifd_client *client,
                                                           const char *model, const char *version,
                                                           struct ifd_client_err *err);

/** The metadata of the server (model NULL) or of a model, as JSON text. */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_metadata(struct ifd_client *client,
                                                              const char *model,
                                                              const char *version, char **ret_json,
                                                              struct ifd_client_err *err);

/** The configuration of a model, as JSON text. */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_config(struct ifd_client *client,
                                                            const char *model, const char *version,
                                                            char **ret_json,
                                                            struct ifd_client_err *err);

/** The models in the server's repository, as JSON text; with ready_only those that are ready. */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_index(struct ifd_client *client,
                                                           bool ready_only, char **ret_json,
                                                           struct ifd_client_err *err);

/** Counters of all models (model NULL) or of one, as JSON text. */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_stats(struct ifd_client *client,
                                                           const char *model, const char *version,
                                                           char **ret_json,
                                                           struct ifd_client_err *err);

/** The settings of the server's log, as JSON text. settings: a JSON object of changes, or NULL;
 *  servers take changes where they take load. */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_log(struct ifd_client *client,
                                                         const char *settings, char **ret_json,
                                                         struct ifd_client_err *err);

/** Loads a model, or reloads it if its files changed; returns when it serves. config: JSON that
 *  replaces the model's config file, or NULL. By default servers take this only on their admin
 *  socket ("unix:/path"). */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_load(struct ifd_client *client,
                                                          const char *model, const char *config,
                                                          struct ifd_client_err *err);
/** Stops serving a model; requests that were accepted before are still answered. */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_unload(struct ifd_client *client,
                                                            const char *model,
                                                            struct ifd_client_err *err);

/** A tensor: row-major, little-endian, without padding. A BYTES element is a 32-bit little-endian
 *  length and its bytes (see ifd_client_bytes_next). */
struct ifd_client_tensor {
    const char *name;
    const char *datatype; /**< "FP32", "UINT8", "BYTES", … as the protocol names them */
    const int64_t *shape;
    size_t rank;
    const void *data;
    size_t data_bytes;
};

/** An output to ask for. */
struct ifd_client_wanted {
    const char *name;
    unsigned top_count; /**< 0: the tensor; k: the k largest, as BYTES "value:index:label" */
};

enum ifd_client_encoding {
    IFD_CLIENT_BINARY, /**< tensors as bytes behind the JSON: small and exact */
    IFD_CLIENT_JSON,   /**< tensors as readable JSON; no FP16, BF16, NaN or infinity */
};

struct ifd_client_request {
    const char *model;
    const char *version;
    const char *id; /**< may be NULL */
    enum ifd_client_encoding encoding;
    const struct ifd_client_tensor *inputs;
    size_t input_count;
    const struct ifd_client_wanted *outputs; /**< NULL: all outputs */
    size_t output_count;
};

struct ifd_client_result;

/** Sends one inference request and waits for the answer. */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_infer(struct ifd_client *client,
                                                           const struct ifd_client_request *request,
                                                           struct ifd_client_result **ret_result,
                                                           struct ifd_client_err *err);

/** Sends an encoded picture or sound as the model's one input; the server decodes and scales it.
 *  Where the server knows what the model means, the answer is that (ifd_client_result_text) and has
 *  no outputs.
 *
 *  content_type: as "image/jpeg", or "audio/wav" for a model of sound. */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_infer_image(
    struct ifd_client *client, const char *model, const char *version, const char *content_type,
    const void *data, size_t data_bytes, struct ifd_client_result **ret_result,
    struct ifd_client_err *err);

/** The same with a frame of a source, as a camera. If a newer frame of the source comes while this
 *  one waits on the server, this one is REFUSED with http_status 409. Other content types, as
 *  "video/x-raw; format=YUYV; width=640; height=480", are the server's to know. */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_infer_frame(
    struct ifd_client *client, const char *model, const char *version, const char *source,
    const char *content_type, const void *data, size_t data_bytes,
    struct ifd_client_result **ret_result, struct ifd_client_err *err);

/** Frees the result and everything that its tensors point to. Accepts NULL. */
void ifd_client_result_destroy(struct ifd_client_result *result);

/** The model version that answered; "" if the server did not say. */
const char *ifd_client_result_version(const struct ifd_client_result *result);

/** JSON of an answer without outputs: classes, objects, segments or windows; "" of
 *  others. Valid until the result is destroyed. */
const char *ifd_client_result_text(const struct ifd_client_result *result);

/** The outputs in the order of the answer; valid until the result is destroyed. */
size_t ifd_client_result_output_count(const struct ifd_client_result *result);
const struct ifd_client_tensor *ifd_client_result_output(const struct ifd_client_result *result,
                                                         size_t index);

/** Returns the next element of a BYTES tensor; start with *offset = 0. False behind the last
 *  element, or if a length exceeds the rest. The text is not terminated. */
IFD_CLIENT_NODISCARD bool ifd_client_bytes_next(const struct ifd_client_tensor *tensor,
                                                size_t *offset, const char **ret_text,
                                                size_t *ret_text_bytes);

/** Bytes of one element of a datatype; 0 for BYTES and for unknown names. */
size_t ifd_client_datatype_bytes(const char *datatype);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif

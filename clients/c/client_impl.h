/** Shared by the files of the client. Not for users. */
#ifndef INFERD_CLIENTS_C_CLIENT_IMPL_H
#define INFERD_CLIENTS_C_CLIENT_IMPL_H

#include "inferd_client.h"

#include <jansson.h>

/** Fills err (which may be NULL) and returns code. */
enum ifd_client_code ifd_client_fail(struct ifd_client_err *err, enum ifd_client_code code,
                                     const char *format, ...) __attribute__((format(printf, 3, 4)));

/** A byte buffer that grows up to a limit; data is always followed by a NUL that does not count. */
struct ifd_client_buf {
    char *data;
    size_t size, capacity, limit;
};
bool ifd_client_buf_add(struct ifd_client_buf *buf, const void *data, size_t size);
void ifd_client_buf_finish(struct ifd_client_buf *buf);

/** A request for the transport. body NULL and post false: GET. */
struct ifd_client_call {
    bool post;
    const char *path;         /**< behind the URL, already escaped */
    const char *content_type; /**< of the body; NULL without one */
    size_t json_bytes;        /**< not 0: the Inference-Header-Content-Length of the body */
    const void *body;
    size_t body_bytes;
};

struct ifd_client_answer {
    struct ifd_client_buf body;
    size_t json_bytes; /**< length of the JSON at the start of body */
};

/** Sends call. OK only for status 200; otherwise err holds the server's text. The caller finishes
 *  ret_answer->body. */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_send(struct ifd_client *client,
                                                          const struct ifd_client_call *call,
                                                          struct ifd_client_answer *ret_answer,
                                                          struct ifd_client_err *err);

/** root ("/v2/models/"), NAME[/versions/V], tail and query, with the names escaped. Freed with
 *  ifd_client_text_free. */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_model_path(
    struct ifd_client *client, const char *root, const char *model, const char *version,
    const char *tail, const char *query, char **ret_path, struct ifd_client_err *err);
/** "?name=value" with the value escaped. Freed with ifd_client_text_free. */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_query(struct ifd_client *client,
                                                           const char *name, const char *value,
                                                           char **ret_query,
                                                           struct ifd_client_err *err);

/** A tensor's bytes as a flat JSON array. */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_data_to_json(
    const struct ifd_client_tensor *tensor, json_t **ret_array, struct ifd_client_err *err);

/** A flat JSON array as a tensor's bytes, added to buf. */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_data_from_json(const char *name,
                                                                    const char *datatype,
                                                                    json_t *array,
                                                                    struct ifd_client_buf *buf,
                                                                    struct ifd_client_err *err);

#endif

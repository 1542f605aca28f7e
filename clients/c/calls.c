/* The calls that carry no tensors. */
#include "client_impl.h"

#include <stdlib.h>
#include <string.h>

/* Sends call; returns the body as text, or drops it if ret_text is NULL. */
static enum ifd_client_code send_for_text(struct ifd_client *client,
                                          const struct ifd_client_call *call, char **ret_text,
                                          struct ifd_client_err *err)
{
    struct ifd_client_answer answer = {0};
    enum ifd_client_code code = ifd_client_send(client, call, &answer, err);
    if (code == IFD_CLIENT_OK && ret_text) {
        *ret_text = answer.body.data;
        answer.body.data = NULL;
    }
    ifd_client_buf_finish(&answer.body);
    return code;
}

static enum ifd_client_code get_of_model(struct ifd_client *client, const char *model,
                                         const char *version, const char *tail, char **ret_text,
                                         struct ifd_client_err *err)
{
    char *path = NULL;
    enum ifd_client_code code =
        ifd_client_model_path(client, "/v2/models/", model, version, tail, "", &path, err);
    if (code == IFD_CLIENT_OK) {
        code = send_for_text(client, &(struct ifd_client_call){.path = path}, ret_text, err);
    }
    free(path);
    return code;
}

enum ifd_client_code ifd_client_live(struct ifd_client *client, struct ifd_client_err *err)
{
    return send_for_text(client, &(struct ifd_client_call){.path = "/v2/health/live"}, NULL, err);
}

enum ifd_client_code ifd_client_ready(struct ifd_client *client, const char *model,
                                      const char *version, struct ifd_client_err *err)
{
    if (!model) {
        return send_for_text(client, &(struct ifd_client_call){.path = "/v2/health/ready"}, NULL,
                             err);
    }
    return get_of_model(client, model, version, "/ready", NULL, err);
}

enum ifd_client_code ifd_client_metadata(struct ifd_client *client, const char *model,
                                         const char *version, char **ret_json,
                                         struct ifd_client_err *err)
{
    if (!model) {
        return send_for_text(client, &(struct ifd_client_call){.path = "/v2"}, ret_json, err);
    }
    return get_of_model(client, model, version, "", ret_json, err);
}

enum ifd_client_code ifd_client_config(struct ifd_client *client, const char *model,
                                       const char *version, char **ret_json,
                                       struct ifd_client_err *err)
{
    return get_of_model(client, model, version, "/config", ret_json, err);
}

enum ifd_client_code ifd_client_index(struct ifd_client *client, bool ready_only, char **ret_json,
                                      struct ifd_client_err *err)
{
    static const char only_ready[] = "{\"ready\":true}";
    struct ifd_client_call call = {.post = true, .path = "/v2/repository/index"};
    if (ready_only) {
        call.content_type = "application/json";
        call.body = only_ready;
        call.body_bytes = sizeof(only_ready) - 1;
    }
    return send_for_text(client, &call, ret_json, err);
}

enum ifd_client_code ifd_client_stats(struct ifd_client *client, const char *model,
                                      const char *version, char **ret_json,
                                      struct ifd_client_err *err)
{
    if (!model) {
        return send_for_text(client, &(struct ifd_client_call){.path = "/v2/models/stats"},
                             ret_json, err);
    }
    return get_of_model(client, model, version, "/stats", ret_json, err);
}

enum ifd_client_code ifd_client_log(struct ifd_client *client, const char *settings,
                                    char **ret_json, struct ifd_client_err *err)
{
    const struct ifd_client_call call = {.post = settings != NULL,
                                         .path = "/v2/logging",
                                         .content_type = settings ? "application/json" : NULL,
                                         .body = settings,
                                         .body_bytes = settings ? strlen(settings) : 0};
    return send_for_text(client, &call, ret_json, err);
}

static enum ifd_client_code control(struct ifd_client *client, const char *model, const char *tail,
                                    const char *body, struct ifd_client_err *err)
{
    char *path = NULL;
    enum ifd_client_code code =
        ifd_client_model_path(client, "/v2/repository/models/", model, NULL, tail, "", &path, err);
    if (code == IFD_CLIENT_OK) {
        const struct ifd_client_call call = {.post = true,
                                             .path = path,
                                             .content_type = body ? "application/json" : NULL,
                                             .body = body,
                                             .body_bytes = body ? strlen(body) : 0};
        code = send_for_text(client, &call, NULL, err);
    }
    free(path);
    return code;
}

enum ifd_client_code ifd_client_load(struct ifd_client *client, const char *model,
                                     const char *config, struct ifd_client_err *err)
{
    if (!config) {
        return control(client, model, "/load", NULL, err);
    }
    json_t *root = json_pack("{s:{s:s}}", "parameters", "config", config);
    char *body = root ? json_dumps(root, JSON_COMPACT) : NULL;
    enum ifd_client_code code =
        body ? control(client, model, "/load", body, err)
             : ifd_client_fail(err, IFD_CLIENT_INVALID, "the config is not UTF-8");
    free(body);
    json_decref(root);
    return code;
}

enum ifd_client_code ifd_client_unload(struct ifd_client *client, const char *model,
                                       struct ifd_client_err *err)
{
    return control(client, model, "/unload", NULL, err);
}

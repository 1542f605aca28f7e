/* The connection: one libcurl handle and its URL, through which all calls go. */
#include "client_impl.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    DEFAULT_CONNECT_TIMEOUT_MS = 5000,
    DEFAULT_MAX_ANSWER_BYTES = 1 << 30,
    FIRST_BUFFER_BYTES = 4096,
};

static const char json_length_header[] = "Inference-Header-Content-Length";

struct ifd_client {
    CURL *curl;
    char *base;          /* scheme and host, without a slash at the end */
    char *name;          /* the URL or path of the caller, for messages */
    char *authorization; /* a header line; NULL: none */
    bool is_socket;      /* name is the path of one */
    size_t max_answer_bytes;
    void (*waits)(void *arg, double seconds); /* ifd_client_options' */
    void *waits_arg;
    struct timespec sent;
};

enum ifd_client_code ifd_client_fail(struct ifd_client_err *err, enum ifd_client_code code,
                                     const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        err->code = code;
        err->http_status = 0;
        vsnprintf(err->text, sizeof(err->text), format, args);
        va_end(args);
    }
    return code;
}

bool ifd_client_buf_add(struct ifd_client_buf *buf, const void *data, size_t size)
{
    if (size >= buf->limit || buf->size >= buf->limit - size) {
        return false;
    }
    size_t needed = buf->size + size + 1;
    if (needed > buf->capacity) {
        size_t capacity = buf->capacity != 0 ? buf->capacity : FIRST_BUFFER_BYTES;
        while (capacity < needed) {
            capacity *= 2;
        }
        char *grown = realloc(buf->data, capacity);
        if (!grown) {
            return false;
        }
        buf->data = grown;
        buf->capacity = capacity;
    }
    if (size != 0) {
        memcpy(buf->data + buf->size, data, size);
    }
    buf->size += size;
    buf->data[buf->size] = '\0';
    return true;
}

void ifd_client_buf_finish(struct ifd_client_buf *buf)
{
    free(buf->data);
    *buf = (struct ifd_client_buf){0};
}

static char *text_copy(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes);
    if (copy) {
        memcpy(copy, text, bytes);
    }
    return copy;
}

/* The characters of a token (RFC 6750, b64token). None ends a header line. */
static bool is_token(const char *text)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "-._~+/";
    size_t length = strspn(text, allowed);
    return length != 0 && strspn(text + length, "=") == strlen(text + length);
}

static char *authorization_of(const char *token)
{
    static const char start[] = "Authorization: Bearer ";
    size_t bytes = sizeof(start) + strlen(token);
    char *line = malloc(bytes);
    if (line) {
        snprintf(line, bytes, "%s%s", start, token);
    }
    return line;
}

void ifd_client_text_free(char *text)
{
    free(text);
}

static int tell_wait(void *context, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                     curl_off_t up)
{
    const struct ifd_client *client = context;
    struct timespec now;
    (void)down_total, (void)down, (void)up_total, (void)up;
    clock_gettime(CLOCK_MONOTONIC, &now);
    client->waits(client->waits_arg, (double)(now.tv_sec - client->sent.tv_sec) +
                                         (double)(now.tv_nsec - client->sent.tv_nsec) / 1e9);
    return 0;
}

static bool set_options(struct ifd_client *client, const struct ifd_client_options *options,
                        const char *socket_path)
{
    long connect_ms =
        options->connect_timeout_ms != 0 ? options->connect_timeout_ms : DEFAULT_CONNECT_TIMEOUT_MS;
    CURL *curl = client->curl;
    return curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, connect_ms) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, options->timeout_ms) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket_path) == CURLE_OK &&
           (!client->waits ||
            (curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L) == CURLE_OK &&
             curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, tell_wait) == CURLE_OK &&
             curl_easy_setopt(curl, CURLOPT_XFERINFODATA, client) == CURLE_OK));
}

enum ifd_client_code ifd_client_create(const struct ifd_client_options *options,
                                       struct ifd_client **ret_client, struct ifd_client_err *err)
{
    if (!options->url || options->url[0] == '\0') {
        return ifd_client_fail(err, IFD_CLIENT_INVALID, "no URL given");
    }
    if (options->token && !is_token(options->token)) {
        return ifd_client_fail(err, IFD_CLIENT_INVALID,
                               "the token is empty or has a character that tokens may not have");
    }
    static const char unix_scheme[] = "unix:";
    const char *socket_path = NULL;
    const char *url = options->url;
    if (strncmp(url, unix_scheme, sizeof(unix_scheme) - 1) == 0) {
        socket_path = url + sizeof(unix_scheme) - 1;
        url = "http://localhost";
    }
    struct ifd_client *client = calloc(1, sizeof(*client));
    if (!client) {
        return ifd_client_fail(err, IFD_CLIENT_NOMEM, "out of memory");
    }
    client->max_answer_bytes =
        options->max_answer_bytes != 0 ? options->max_answer_bytes : DEFAULT_MAX_ANSWER_BYTES;
    client->is_socket = socket_path != NULL;
    client->waits = options->waits;
    client->waits_arg = options->waits_arg;
    client->base = text_copy(url);
    client->name = text_copy(socket_path ? socket_path : url);
    client->authorization = options->token ? authorization_of(options->token) : NULL;
    client->curl = curl_easy_init();
    if (!client->base || !client->name || !client->curl ||
        (options->token && !client->authorization) || !set_options(client, options, socket_path)) {
        ifd_client_destroy(client);
        return ifd_client_fail(err, IFD_CLIENT_NOMEM, "libcurl could not be set up");
    }
    size_t length = strlen(client->base);
    while (length != 0 && client->base[length - 1] == '/') {
        client->base[--length] = '\0';
    }
    *ret_client = client;
    return IFD_CLIENT_OK;
}

void ifd_client_destroy(struct ifd_client *client)
{
    if (client) {
        curl_easy_cleanup(client->curl);
        free(client->base);
        free(client->name);
        free(client->authorization);
        free(client);
    }
}

/* Collected by libcurl's callbacks. */
struct receipt {
    struct ifd_client_buf body;
    size_t json_bytes;
    bool has_json_bytes, is_bad_header, is_over_limit;
};

static size_t take_body(char *data, size_t unit, size_t count, void *context)
{
    struct receipt *receipt = context;
    size_t size = unit * count;
    if (!ifd_client_buf_add(&receipt->body, data, size)) {
        receipt->is_over_limit = true;
        return 0;
    }
    return size;
}

static size_t take_header(char *line, size_t unit, size_t count, void *context)
{
    struct receipt *receipt = context;
    size_t size = unit * count, name_bytes = sizeof(json_length_header) - 1;
    if (size > name_bytes && line[name_bytes] == ':' &&
        curl_strnequal(line, json_length_header, name_bytes)) {
        char number[24] = {0}; /* the line is not terminated */
        size_t number_bytes = size - name_bytes - 1;
        if (number_bytes < sizeof(number)) {
            memcpy(number, line + name_bytes + 1, number_bytes);
        }
        char *end = NULL;
        errno = 0;
        unsigned long long value = strtoull(number, &end, 10);
        receipt->is_bad_header = errno != 0 || end == number || value > SIZE_MAX;
        receipt->has_json_bytes = !receipt->is_bad_header;
        receipt->json_bytes = (size_t)value;
    }
    return size;
}

static struct curl_slist *append_header(struct curl_slist *list, const char *line, bool *io_ok)
{
    struct curl_slist *longer = *io_ok ? curl_slist_append(list, line) : NULL;
    *io_ok = longer != NULL;
    return longer ? longer : list;
}

static struct curl_slist *make_headers(const struct ifd_client *client,
                                       const struct ifd_client_call *call, bool *ret_ok)
{
    char line[160];
    bool ok = true;
    struct curl_slist *list = append_header(NULL, "Accept: application/json, */*;q=0.5", &ok);
    if (call->content_type) {
        snprintf(line, sizeof(line), "Content-Type: %s", call->content_type);
        list = append_header(list, line, &ok);
    }
    if (call->json_bytes != 0) {
        snprintf(line, sizeof(line), "%s: %zu", json_length_header, call->json_bytes);
        list = append_header(list, line, &ok);
    }
    if (client->authorization) {
        list = append_header(list, client->authorization, &ok);
    }
    *ret_ok = ok;
    return list;
}

static bool prepare(struct ifd_client *client, const struct ifd_client_call *call, const char *url,
                    struct curl_slist *headers, struct receipt *receipt, char *curl_text)
{
    CURL *curl = client->curl;
    bool ok = curl_easy_setopt(curl, CURLOPT_URL, url) == CURLE_OK &&
              curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers) == CURLE_OK &&
              curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, curl_text) == CURLE_OK &&
              curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
              curl_easy_setopt(curl, CURLOPT_WRITEDATA, receipt) == CURLE_OK &&
              curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header) == CURLE_OK &&
              curl_easy_setopt(curl, CURLOPT_HEADERDATA, receipt) == CURLE_OK;
    if (!ok || !call->post) {
        return ok && curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L) == CURLE_OK;
    }
    const char *body = call->body ? call->body : "";
    return curl_easy_setopt(curl, CURLOPT_POST, 1L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_bytes) ==
               CURLE_OK;
}

/* Fails with the server's "error" text, or with the status if the body has none. */
static enum ifd_client_code refused(const struct receipt *receipt, long status,
                                    struct ifd_client_err *err)
{
    const char *text = NULL;
    json_t *root =
        receipt->body.data ? json_loadb(receipt->body.data, receipt->body.size, 0, NULL) : NULL;
    if (root) {
        text = json_string_value(json_object_get(root, "error"));
    }
    if (text) {
        ifd_client_fail(err, IFD_CLIENT_REFUSED, "%s", text);
    } else {
        ifd_client_fail(err, IFD_CLIENT_REFUSED, "the server answered status %ld without a reason",
                        status);
    }
    if (err) {
        err->http_status = (int)status;
    }
    json_decref(root);
    return IFD_CLIENT_REFUSED;
}

/* Of a socket libcurl would say that "localhost port 80" failed; the system says why. */
static const char *reason_of(const struct ifd_client *client, CURLcode result,
                             const char *curl_text)
{
    long number = 0;
    if (result == CURLE_COULDNT_CONNECT && client->is_socket &&
        curl_easy_getinfo(client->curl, CURLINFO_OS_ERRNO, &number) == CURLE_OK && number != 0) {
        return strerror((int)number);
    }
    return curl_text[0] != '\0' ? curl_text : curl_easy_strerror(result);
}

static enum ifd_client_code judge(struct ifd_client *client, const struct receipt *receipt,
                                  CURLcode result, const char *curl_text,
                                  struct ifd_client_err *err)
{
    if (receipt->is_over_limit) {
        return ifd_client_fail(err, IFD_CLIENT_PROTOCOL, "answer exceeds %zu bytes",
                               client->max_answer_bytes);
    }
    if (result == CURLE_OUT_OF_MEMORY) {
        return ifd_client_fail(err, IFD_CLIENT_NOMEM, "out of memory");
    }
    if (result != CURLE_OK) {
        const bool is_no_url =
            result == CURLE_URL_MALFORMAT || result == CURLE_UNSUPPORTED_PROTOCOL;
        return ifd_client_fail(err, is_no_url ? IFD_CLIENT_INVALID : IFD_CLIENT_TRANSPORT, "%s: %s",
                               client->name, reason_of(client, result, curl_text));
    }
    long status = 0;
    curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) {
        return refused(receipt, status, err);
    }
    if (receipt->is_bad_header ||
        (receipt->has_json_bytes && receipt->json_bytes > receipt->body.size)) {
        return ifd_client_fail(err, IFD_CLIENT_PROTOCOL,
                               "answer of %zu bytes has a wrong %s header", receipt->body.size,
                               json_length_header);
    }
    return IFD_CLIENT_OK;
}

enum ifd_client_code ifd_client_send(struct ifd_client *client, const struct ifd_client_call *call,
                                     struct ifd_client_answer *ret_answer,
                                     struct ifd_client_err *err)
{
    struct receipt receipt = {.body.limit = client->max_answer_bytes};
    char curl_text[CURL_ERROR_SIZE] = "";
    size_t url_bytes = strlen(client->base) + strlen(call->path) + 1;
    char *url = malloc(url_bytes);
    bool ok = false;
    struct curl_slist *headers = make_headers(client, call, &ok);
    enum ifd_client_code code = IFD_CLIENT_NOMEM;
    if (url && ok) {
        snprintf(url, url_bytes, "%s%s", client->base, call->path);
        ok = prepare(client, call, url, headers, &receipt, curl_text) &&
             ifd_client_buf_add(&receipt.body, "", 0);
    }
    if (!url || !ok) {
        ifd_client_fail(err, code, "out of memory");
        goto out;
    }
    clock_gettime(CLOCK_MONOTONIC, &client->sent);
    code = judge(client, &receipt, curl_easy_perform(client->curl), curl_text, err);
    if (code == IFD_CLIENT_OK) {
        ret_answer->json_bytes = receipt.has_json_bytes ? receipt.json_bytes : receipt.body.size;
        ret_answer->body = receipt.body;
        receipt.body = (struct ifd_client_buf){0};
    }
out:
    /* The handle outlives this call: nothing of this frame may stay in it. */
    curl_easy_setopt(client->curl, CURLOPT_ERRORBUFFER, NULL);
    curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, NULL);
    curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, NULL);
    curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, NULL);
    curl_easy_setopt(client->curl, CURLOPT_HEADERDATA, NULL);
    ifd_client_buf_finish(&receipt.body);
    curl_slist_free_all(headers);
    free(url);
    return code;
}

enum ifd_client_code ifd_client_model_path(struct ifd_client *client, const char *root,
                                           const char *model, const char *version, const char *tail,
                                           const char *query, char **ret_path,
                                           struct ifd_client_err *err)
{
    if (model[0] == '\0' || (version && version[0] == '\0')) {
        return ifd_client_fail(err, IFD_CLIENT_INVALID, "the name of a model or version is empty");
    }
    char *name = curl_easy_escape(client->curl, model, 0);
    char *number = curl_easy_escape(client->curl, version ? version : "", 0);
    char *path = NULL;
    if (name && number) {
        size_t bytes = strlen(root) + strlen(name) + strlen(number) + strlen(tail) + strlen(query) +
                       sizeof("/versions/");
        path = malloc(bytes);
        if (path) {
            snprintf(path, bytes, "%s%s%s%s%s%s", root, name, version ? "/versions/" : "", number,
                     tail, query);
        }
    }
    curl_free(name);
    curl_free(number);
    if (!path) {
        return ifd_client_fail(err, IFD_CLIENT_NOMEM, "out of memory");
    }
    *ret_path = path;
    return IFD_CLIENT_OK;
}

enum ifd_client_code ifd_client_query(struct ifd_client *client, const char *name,
                                      const char *value, char **ret_query,
                                      struct ifd_client_err *err)
{
    char *escaped = curl_easy_escape(client->curl, value, 0);
    const size_t bytes = escaped ? strlen(name) + strlen(escaped) + sizeof("?=") : 0;
    char *query = escaped ? malloc(bytes) : NULL;
    if (query) {
        snprintf(query, bytes, "?%s=%s", name, escaped);
    }
    curl_free(escaped);
    if (!query) {
        return ifd_client_fail(err, IFD_CLIENT_NOMEM, "out of memory");
    }
    *ret_query = query;
    return IFD_CLIENT_OK;
}

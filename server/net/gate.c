/* Checks of the header that the HTTP library leaves out. */
#include "server/net/gate.h"

#include "engine/base/str.h"

#include <string.h>
#include <strings.h>

/* Characters of a token (RFC 9110), as in field names. */
static bool is_token(struct ifd_str text)
{
    /* bit c % 32 of word c / 32 */
    static const uint32_t allowed[8] = {0, 0x03ff6cfa, 0xc7fffffe, 0x57ffffff};
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if ((allowed[c / 32] >> c % 32 & 1) == 0) {
            return false;
        }
    }
    return text.size > 0;
}

/* Characters of host and port (RFC 3986). May be empty if there is no authority. */
static bool is_host(struct ifd_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool is_alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_alnum && (c == '\0' || !strchr("-._~!$&'()*+,;=%:[]", c))) {
            return false;
        }
    }
    return true;
}

static bool has_control(struct ifd_str text)
{
    const uint64_t ones = 0x0101010101010101u, high = ones << 7;
    size_t i = 0;
    for (; text.size - i >= sizeof(uint64_t); i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, text.data + i, sizeof(word));
        /* Sets the high bit of bytes below 0x20 and of 0x7f. Tabs, and bytes that a borrow reached,
         * are checked below. */
        if (((word - ones * 0x20) | ((word ^ ones * 0x7f) - ones)) & ~word & high) {
            break;
        }
    }
    for (; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return true;
        }
    }
    return false;
}

/* Visible ASCII without a fragment: clients never send '#'. */
static bool is_target(struct ifd_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c <= 0x20 || c >= 0x7f || c == '#') {
            return false;
        }
    }
    return text.size > 0;
}

struct ifd_str ifd_gate_origin(struct ifd_str target)
{
    const struct ifd_str scheme = ifd_str("http://");
    if (target.size <= scheme.size || strncasecmp(target.data, scheme.data, scheme.size) != 0) {
        return target;
    }
    struct ifd_str rest = {.data = target.data + scheme.size, .size = target.size - scheme.size};
    const char *slash = memchr(rest.data, '/', rest.size);
    size_t authority = slash ? (size_t)(slash - rest.data) : 0;
    if (!is_target((struct ifd_str){.data = rest.data, .size = authority})) {
        return target;
    }
    return (struct ifd_str){.data = slash, .size = rest.size - authority};
}

const char *ifd_gate_request_line(struct ifd_gate *gate, const char *method, struct ifd_str url,
                                  struct ifd_str origin, const char *version, int *ret_status)
{
    gate->is_torn = method + strlen(method) + 1 != url.data || url.data + url.size + 1 != version;
    gate->next = version + strlen(version) + 2;
    *ret_status = 400;
    if (!is_token(ifd_str(method))) {
        return "the method has a character that is not allowed";
    }
    if (!is_target(origin)) {
        return "the request target has a character that is not allowed";
    }
    /* The other forms are for proxies (authority) and for the whole server (*). */
    if (origin.data[0] != '/') {
        return "the request target must start with a slash";
    }
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0) {
        *ret_status = 505;
        return "only HTTP/1.1 and HTTP/1.0 are supported";
    }
    return NULL;
}

/* The library overwrote both characters of a line end. */
static bool was_line_end(const char *at)
{
    return at[0] == '\0' && at[1] == '\0';
}

/* Between name and value: one separator and blanks. */
static bool is_adjacent(struct ifd_str name, struct ifd_str value)
{
    const char *at = name.data + name.size + 1;
    while (at < value.data && (*at == ' ' || *at == '\t')) {
        at++;
    }
    return at == value.data;
}

void ifd_gate_end(struct ifd_gate *gate, const char *end)
{
    gate->is_torn = gate->is_torn || gate->next + 2 != end || !was_line_end(gate->next - 2) ||
                    !was_line_end(gate->next);
}

void ifd_gate_field(struct ifd_gate *gate, struct ifd_str name, struct ifd_str value)
{
    gate->fields++;
    if (gate->next) {
        gate->is_torn = gate->is_torn || name.data != gate->next || !is_adjacent(name, value) ||
                        !was_line_end(gate->next - 2);
        gate->next = value.data + value.size + 2;
    }
    if (has_control(value)) {
        gate->is_malformed = true;
    }
    if (ifd_str_equal_nocase(name, "content-length")) {
        gate->content_length++;
        gate->content_length_value = value;
    } else if (ifd_str_equal_nocase(name, "transfer-encoding")) {
        gate->transfer_encoding++;
        gate->is_chunked = ifd_str_equal_nocase(ifd_str_trim(value), "chunked");
    } else if (ifd_str_equal_nocase(name, "host")) {
        gate->host++;
        gate->has_odd_host = gate->has_odd_host || !is_host(ifd_str_trim(value));
    } else if (ifd_str_equal_nocase(name, "content-type")) {
        gate->content_type++;
    } else if (ifd_str_equal_nocase(name, "content-encoding")) {
        gate->content_encoding++;
    } else if (ifd_str_equal_nocase(name, "inference-header-content-length")) {
        gate->header_length++;
    } else if (ifd_str_equal_nocase(name, "authorization")) {
        gate->authorization++;
    } else if (ifd_str_equal_nocase(name, "expect")) {
        gate->expect++;
        gate->expect_is_continue = ifd_str_equal_nocase(ifd_str_trim(value), "100-continue");
    } else if (!is_token(name)) {
        gate->is_malformed = true;
    }
}

const char *ifd_gate_check(const struct ifd_gate *gate, bool is_http_1_1, int *ret_status)
{
    uint64_t length = 0;
    *ret_status = 400;
    if (gate->fields > IFD_GATE_FIELDS_MAX) {
        *ret_status = 431;
        return "more than 64 header fields";
    }
    if (gate->is_malformed) {
        return "a header field has a character that is not allowed";
    }
    if (gate->is_torn) {
        return "the header has a line that does not end with CR LF, continues the one before, or "
               "holds a NUL";
    }
    if (gate->content_length > 1 || gate->transfer_encoding > 1) {
        return "Content-Length or Transfer-Encoding given more than once";
    }
    if (gate->content_length > 0 && gate->transfer_encoding > 0) {
        return "both Content-Length and Transfer-Encoding given";
    }
    if (gate->content_length > 0 && !ifd_str_u64(gate->content_length_value, &length)) {
        return "Content-Length is not a number";
    }
    if (gate->transfer_encoding > 0 && !gate->is_chunked) {
        *ret_status = 501;
        return "only the transfer encoding \"chunked\" is supported";
    }
    if (gate->transfer_encoding > 0 && !is_http_1_1) {
        return "HTTP/1.0 knows no Transfer-Encoding";
    }
    if (gate->host > 1 || (is_http_1_1 && gate->host == 0)) {
        return "exactly one Host header is needed";
    }
    if (gate->has_odd_host) {
        return "the Host header has a character that is not allowed";
    }
    if (gate->content_type > 1 || gate->content_encoding > 1 || gate->header_length > 1 ||
        gate->authorization > 1) {
        return "Content-Type, Content-Encoding, Inference-Header-Content-Length or Authorization "
               "given more than once";
    }
    if (gate->expect > 0 && (gate->expect > 1 || !gate->expect_is_continue)) {
        *ret_status = 417;
        return "only \"Expect: 100-continue\" is supported";
    }
    return NULL;
}

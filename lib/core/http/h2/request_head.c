// SPDX-License-Identifier: Apache-2.0
/*
 * Checks and writes the head of http/h2/request_head.h. Nothing is written that could be read as another field or line:
 * names and values are checked before, by the classes of bytes that the parser has.
 */
#include "http/h2/request_head.h"

#include "http/message/parse.h"

#include <assert.h>

static void put_str(struct mk__h2_request_head *h, struct mk_str s)
{
    assert(h->len <= h->pseudo_at && h->pseudo_at <= h->size);
    if (s.len > h->pseudo_at - h->len) {
        h->too_large = true;
        return;
    }
    if (s.len)
        memcpy(h->data + h->len, s.p, s.len);
    h->len += (uint32_t)s.len;
}

/* Copies a value to the end of the buffer, where it stays until the head is read. */
static struct mk_str keep_value(struct mk__h2_request_head *h, struct mk_str s)
{
    if (s.len > h->pseudo_at - h->len) {
        h->too_large = true;
        return MK_STR("");
    }
    h->pseudo_at -= (uint32_t)s.len;
    if (s.len)
        memcpy(h->data + h->pseudo_at, s.p, s.len);
    return mk_str(h->data + h->pseudo_at, s.len);
}

static void put_field(struct mk__h2_request_head *h, struct mk_str name, struct mk_str value)
{
    put_str(h, name);
    put_str(h, MK_STR(": "));
    put_str(h, value);
    put_str(h, MK_STR("\r\n"));
}

static void begin_head(struct mk__h2_request_head *h)
{
    bool extended = h->protocol.len != 0, connect = mk_str_eq(h->method, MK_STR("CONNECT")) && !extended;
    assert(!h->begun);
    h->begun = true;
    put_str(h, extended ? MK_STR("GET") : h->method);
    put_str(h, MK_STR(" "));
    put_str(h, connect ? h->authority : h->path);
    put_str(h, MK_STR(" HTTP/1.1\r\n"));
    h->line_too_large = h->too_large;
    if (h->authority.len)
        put_field(h, MK_STR("host"), h->authority);
    if (extended) {
        put_field(h, MK_STR("connection"), MK_STR("upgrade"));
        put_field(h, MK_STR("upgrade"), h->protocol);
    }
}

void mk__h2_request_head_init(struct mk__h2_request_head *h, char *data, uint32_t size)
{
    *h = (struct mk__h2_request_head){.data = data, .size = size, .pseudo_at = size, .length = -1};
}

/* ── pseudo-header fields ── */

enum { METHOD = 1, SCHEME = 2, PATH = 4, AUTHORITY = 8, PROTOCOL = 16 };

static const struct {
    struct mk_str name;
    size_t offset;
    uint8_t bit;
    bool (*is_valid)(struct mk_str value);
} pseudo[] = {
    {MK_STR(":method"), offsetof(struct mk__h2_request_head, method), METHOD, mk__parse_is_token},
    {MK_STR(":scheme"), offsetof(struct mk__h2_request_head, scheme), SCHEME, mk__parse_is_target},
    {MK_STR(":path"), offsetof(struct mk__h2_request_head, path), PATH, mk__parse_is_target},
    {MK_STR(":authority"), offsetof(struct mk__h2_request_head, authority), AUTHORITY, mk__parse_is_target},
    {MK_STR(":protocol"), offsetof(struct mk__h2_request_head, protocol), PROTOCOL, mk__parse_is_token},
};

/* They come before all other fields, each of them once. Only :authority may be empty. */
static void add_pseudo(struct mk__h2_request_head *h, struct mk_str name, struct mk_str value)
{
    size_t i = 0;
    while (i < MK_COUNT_OF(pseudo) && !mk_str_eq(name, pseudo[i].name))
        i++;
    bool is_expected = i < MK_COUNT_OF(pseudo) && !(h->seen & pseudo[i].bit) && !h->begun;
    if (!is_expected || (!pseudo[i].is_valid(value) && (value.len || pseudo[i].bit != AUTHORITY))) {
        h->malformed = true;
        return;
    }
    h->seen |= pseudo[i].bit;
    *(struct mk_str *)(void *)((char *)h + pseudo[i].offset) = keep_value(h, value);
}

/* ── other fields ── */

/* Fields of an HTTP/1 connection: section 8.2.2. */
static bool is_of_connection(struct mk_str name)
{
    static const struct mk_str names[] = {MK_STR("connection"), MK_STR("transfer-encoding"), MK_STR("keep-alive"),
                                          MK_STR("upgrade"), MK_STR("proxy-connection")};
    for (size_t i = 0; i < MK_COUNT_OF(names); i++)
        if (mk_str_eq(name, names[i]))
            return true;
    return false;
}

bool mk__h2_request_head_is_valid_field(struct mk_str name, struct mk_str value)
{
    if (!mk__parse_is_lower_token(name) || !mk__parse_is_value(value) || is_of_connection(name))
        return false;
    return !mk_str_eq(name, MK_STR("te")) || mk_str_ieq(value, MK_STR("trailers"));
}

/* Reads Content-Length, which may come once. What follows a CONNECT is no body. */
static void read_length(struct mk__h2_request_head *h, struct mk_str value)
{
    uint64_t length = 0;
    h->malformed |= h->length >= 0 || !mk_str_u64(value, INT64_MAX, &length);
    h->length = mk_str_eq(h->method, MK_STR("CONNECT")) ? -1 : (int64_t)length;
}

static void add_field(struct mk__h2_request_head *h, struct mk_str name, struct mk_str value)
{
    h->malformed |= !mk__h2_request_head_is_valid_field(name, value);
    if (mk_str_eq(name, MK_STR("content-length")))
        read_length(h, value);
    if (h->malformed)
        return;
    if (!h->begun)
        begin_head(h);
    h->has_host |= mk_str_eq(name, MK_STR("host"));
    /* Host repeats the authority (RFC 9113 section 8.3.1); if it differs, the parser refuses the two hosts. */
    if (h->authority.len && mk_str_eq(name, MK_STR("host")) && mk_str_ieq(value, h->authority))
        return;
    put_field(h, name, value);
}

void mk__h2_request_head_add(struct mk__h2_request_head *h, const struct mk__hpack_field *field)
{
    bool is_pseudo = mk_str_starts(field->name, MK_STR(":"));
    if (h->too_large || h->malformed)
        return;
    if (field->cut && !is_pseudo && !h->begun)
        begin_head(h);
    h->too_large |= field->cut;
    if (h->too_large)
        return;
    if (is_pseudo)
        add_pseudo(h, field->name, field->value);
    else
        add_field(h, field->name, field->value);
}

/* ── the whole head ── */

static bool is_http(struct mk_str scheme)
{
    return mk_str_ieq(scheme, MK_STR("http")) || mk_str_ieq(scheme, MK_STR("https"));
}

bool mk__h2_request_head_is_well_formed(const struct mk__h2_request_head *h)
{
    bool is_connect = mk_str_eq(h->method, MK_STR("CONNECT")), extended = h->seen & PROTOCOL;
    if (h->malformed || h->too_large)
        return !h->malformed;
    if (is_connect && !extended)
        return h->seen == (METHOD | AUTHORITY);
    if (extended && (!is_connect || !h->authority.len))
        return false;
    if (!(h->seen & METHOD) || !(h->seen & SCHEME) || !(h->seen & PATH) || !(h->authority.len || h->has_host))
        return false;
    bool is_asterisk = mk_str_eq(h->method, MK_STR("OPTIONS")) && mk_str_eq(h->path, MK_STR("*"));
    return !is_http(h->scheme) || is_asterisk || mk_str_starts(h->path, MK_STR("/"));
}

/* Returns whether the target is a path or `*` (OPTIONS), with a scheme that is served. CONNECT has neither. */
static bool is_valid_target(const struct mk__h2_request_head *h)
{
    bool is_served = !h->scheme.len || is_http(h->scheme);
    bool is_asterisk = mk_str_eq(h->method, MK_STR("OPTIONS")) && mk_str_eq(h->path, MK_STR("*"));
    if (mk_str_eq(h->method, MK_STR("CONNECT")) && !h->protocol.len)
        return true;
    return is_served && (is_asterisk || mk_str_starts(h->path, MK_STR("/")));
}

int mk__h2_request_head_end(struct mk__h2_request_head *h, bool body, struct mk_str *ret_head)
{
    if (!h->begun)
        begin_head(h);
    bool is_tunnel = mk_str_eq(h->method, MK_STR("CONNECT")); /* a tunnel has no body */
    if (body && h->length < 0 && !is_tunnel)
        put_field(h, MK_STR("transfer-encoding"), MK_STR("chunked"));
    put_str(h, MK_STR("\r\n"));
    *ret_head = mk_str(h->data, h->too_large ? 0 : h->len);
    return h->line_too_large ? 414 : h->too_large ? 431 : is_valid_target(h) ? 0 : 400;
}

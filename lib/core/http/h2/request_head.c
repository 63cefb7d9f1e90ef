// SPDX-License-Identifier: Apache-2.0
/*
 * Writes the head of http/h2/request_head.h. nghttp2 has checked before which fields are allowed and that none contains
 * a line break; the parser checks it again.
 */
#include "http/h2/request_head.h"

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
    h->fields++;
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
    *h = (struct mk__h2_request_head){.data = data, .size = size, .pseudo_at = size};
}

static bool keep_pseudo(struct mk__h2_request_head *h, struct mk_str name, struct mk_str value)
{
    if (!mk_str_starts(name, MK_STR(":")))
        return false;
    const struct {
        struct mk_str name;
        struct mk_str *to;
    } pseudo[] = {{MK_STR(":method"), &h->method},
                  {MK_STR(":scheme"), &h->scheme},
                  {MK_STR(":path"), &h->path},
                  {MK_STR(":authority"), &h->authority},
                  {MK_STR(":protocol"), &h->protocol}};
    for (size_t i = 0; i < MK_COUNT_OF(pseudo); i++)
        if (mk_str_eq(name, pseudo[i].name))
            *pseudo[i].to = keep_value(h, value);
    return true;
}

void mk__h2_request_head_add(struct mk__h2_request_head *h, struct mk_str name, struct mk_str value)
{
    h->bytes_in += name.len + value.len;
    if (h->too_large || keep_pseudo(h, name, value))
        return;
    if (!h->begun)
        begin_head(h);
    /* Host repeats the authority (RFC 9113 section 8.3.1); if it differs, the parser refuses the two hosts. */
    if (h->authority.len && mk_str_eq(name, MK_STR("host")) && mk_str_ieq(value, h->authority))
        return;
    h->has_length |= mk_str_eq(name, MK_STR("content-length"));
    put_field(h, name, value);
}

/* Returns whether the target is a path or `*` (OPTIONS), with a scheme that is served. CONNECT has neither. */
static bool is_valid_target(const struct mk__h2_request_head *h)
{
    bool is_served = !h->scheme.len || mk_str_ieq(h->scheme, MK_STR("http")) || mk_str_ieq(h->scheme, MK_STR("https"));
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
    if (body && !h->has_length && !is_tunnel)
        put_field(h, MK_STR("transfer-encoding"), MK_STR("chunked"));
    put_str(h, MK_STR("\r\n"));
    *ret_head = mk_str(h->data, h->too_large ? 0 : h->len);
    return h->line_too_large ? 414 : h->too_large ? 431 : is_valid_target(h) ? 0 : 400;
}

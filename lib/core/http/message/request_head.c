// SPDX-License-Identifier: Apache-2.0
/*
 * Interprets request heads (http/message/request_head.h). Rejects what two servers could interpret differently: two
 * lengths, a length together with a transfer coding, a coding that is not chunked.
 */
#include "http/message/request_head.h"

#include <assert.h>

/* Returns the number of lines of a field; `*ret_last` is the last one. */
static unsigned count_field(const struct mk_head_parser *p, const struct mk_field *fields, enum mk_header_id id,
                            const struct mk_field **ret_last)
{
    unsigned n = 0;
    if (!(p->seen & 1u << id))
        return 0;
    for (unsigned i = 0; i < p->n_fields; i++) {
        if (fields[i].id != id)
            continue;
        *ret_last = &fields[i];
        n++;
    }
    return n;
}

static void remember_host(struct mk__host_memo *memo, const char *base, struct mk_span value, struct mk_span name)
{
    if (!memo || value.len > sizeof(memo->value))
        return;
    memcpy(memo->value, base + value.at, value.len);
    memo->len = (uint8_t)value.len;
    memo->name = (struct mk_span){(uint16_t)(name.at - value.at), name.len};
}

/* HTTP/1.1 needs exactly one valid Host; the authority of the target takes precedence (RFC 9112 section 3.2). */
static int read_host(const struct mk_head_parser *p, const struct mk_field *fields, const char *base,
                     struct mk_str authority, struct mk__host_memo *memo, struct mk__request_head *head)
{
    const struct mk_field *field = NULL;
    struct mk__uri_host_port host = {0};
    unsigned n = count_field(p, fields, MK_HEADER_HOST, &field);

    if (n > 1 || (n == 0 && p->minor > 0))
        return -400;
    if (n && !authority.len && memo && field->value.len && field->value.len == memo->len &&
        memcmp(memo->value, base + field->value.at, memo->len) == 0) {
        head->host = (struct mk_span){(uint16_t)(field->value.at + memo->name.at), memo->name.len};
        return 0;
    }
    if (n && mk__uri_split_authority(mk_span_str(base, field->value), &host) < 0)
        return -400;
    if (authority.len && mk__uri_split_authority(authority, &host) < 0)
        return -400;
    assert(!host.name.len || (host.name.p >= base && host.name.p + host.name.len <= base + p->head_len));
    if (!host.name.len)
        return 0;
    head->host = (struct mk_span){(uint16_t)(host.name.p - base), (uint16_t)host.name.len};
    if (!authority.len)
        remember_host(memo, base, field->value, head->host);
    return 0;
}

static int read_target(const struct mk_head_parser *p, const struct mk_field *fields, const char *base,
                       struct mk__host_memo *memo, struct mk__request_head *head)
{
    struct mk__uri_parts t;
    if (mk__uri_split_target(mk_span_str(base, p->method_name), mk_span_str(base, p->target), &t) < 0)
        return -400;
    head->asterisk = t.form == MK__URI_ASTERISK;
    /* not the constant "/" of an absolute form without a path, for which len stays 0 */
    if (t.path.p >= base && t.path.p < base + p->head_len)
        head->path = (struct mk_span){(uint16_t)(t.path.p - base), (uint16_t)t.path.len};
    assert(!t.has_query || (t.query.p >= base && t.query.p + t.query.len <= base + p->head_len));
    head->has_query = t.has_query;
    if (t.has_query)
        head->query = (struct mk_span){(uint16_t)(t.query.p - base), (uint16_t)t.query.len};
    return read_host(p, fields, base, t.authority, memo, head);
}

/* Empty elements are rejected: recipients may skip them, but some take the whole list for another coding. */
static bool has_empty_element(struct mk_str list)
{
    bool is_empty = true;
    for (size_t i = 0; i < list.len; i++) {
        if (list.p[i] == ',' && is_empty)
            return true;
        is_empty = list.p[i] == ',' || (is_empty && (list.p[i] == ' ' || list.p[i] == '\t'));
    }
    return is_empty;
}

/*
 * chunked must occur once, as the last coding (RFC 9112 section 6.1); others are not implemented. Returns 0, -400,
 * -501.
 */
static int read_codings(const struct mk_head_parser *p, const struct mk_field *fields, const char *base)
{
    unsigned chunked = 0, others = 0;
    bool last = false;
    for (unsigned i = 0; i < p->n_fields; i++) {
        if (fields[i].id != MK_HEADER_TRANSFER_ENCODING)
            continue;
        struct mk_str rest = mk_span_str(base, fields[i].value), coding;
        if (has_empty_element(rest))
            return -400;
        while (mk_str_next(&rest, &coding)) {
            last = mk_str_ieq(coding, MK_STR("chunked"));
            chunked += last;
            others += !last;
        }
    }
    if (chunked > 1 || (chunked && !last) || chunked + others == 0)
        return -400;
    return others ? -501 : 0;
}

static int read_framing(const struct mk_head_parser *p, const struct mk_field *fields, const char *base,
                        struct mk__request_head *head)
{
    const struct mk_field *length = NULL;
    unsigned lengths = count_field(p, fields, MK_HEADER_CONTENT_LENGTH, &length);

    if (p->seen & 1u << MK_HEADER_TRANSFER_ENCODING) {
        if (lengths || p->minor == 0)
            return -400;
        head->body = MK__BODY_CHUNKED;
        return read_codings(p, fields, base);
    }
    if (lengths == 0)
        return 0;
    if (lengths > 1 || !mk_str_u64(mk_span_str(base, length->value), INT64_MAX, &head->body_bytes))
        return -400;
    if (head->body_bytes)
        head->body = MK__BODY_LENGTH;
    return 0;
}

static void read_connection(const struct mk_head_parser *p, const struct mk_field *fields, const char *base,
                            struct mk__request_head *head)
{
    bool close = false, keep = false;
    if (p->seen & 1u << MK_HEADER_CONNECTION) {
        for (unsigned i = 0; i < p->n_fields; i++) {
            if (fields[i].id != MK_HEADER_CONNECTION)
                continue;
            struct mk_str rest = mk_span_str(base, fields[i].value), option;
            while (mk_str_next(&rest, &option)) {
                close |= mk_str_ieq(option, MK_STR("close"));
                keep |= mk_str_ieq(option, MK_STR("keep-alive"));
            }
        }
    }
    head->keep_alive = !close && (keep || p->minor > 0);
}

/* 100-continue is the only expectation; it is ignored in HTTP/1.0 (RFC 9110 section 10.1.1). Returns 0 or -417. */
static int read_expectation(const struct mk_head_parser *p, const struct mk_field *fields, const char *base,
                            struct mk__request_head *head)
{
    const struct mk_field *field = NULL;
    unsigned n = count_field(p, fields, MK_HEADER_EXPECT, &field);
    if (n == 0)
        return 0;
    if (n > 1 || !mk_str_ieq(mk_span_str(base, field->value), MK_STR("100-continue")))
        return -417;
    head->expects_continue = p->minor > 0 && head->body != MK__BODY_NONE;
    return 0;
}

int mk__request_head_read(const struct mk_head_parser *p, const struct mk_field *fields, const char *base,
                          struct mk__host_memo *memo, struct mk__request_head *ret_head)
{
    *ret_head = (struct mk__request_head){.body = MK__BODY_NONE};
    int err = read_framing(p, fields, base, ret_head);
    if (err == 0)
        err = read_target(p, fields, base, memo, ret_head);
    if (err == 0)
        err = read_expectation(p, fields, base, ret_head);
    if (err == 0)
        read_connection(p, fields, base, ret_head);
    return err;
}

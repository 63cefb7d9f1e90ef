// SPDX-License-Identifier: Apache-2.0
/*
 * The parser of responses (<monkey/response_parser.h>): the status line, what the fields say of framing and connection,
 * and the body. Field lines are read by http/message/parse.c, as those of requests are.
 */
#include "http/message/parse.h"

#include <assert.h>
#include <errno.h>

void mk_response_parser_init(struct mk_response_parser *p, const struct mk_response_limits *limits,
                             enum mk_response_to to)
{
    *p = (struct mk_response_parser){.limits = limits, .to = (uint8_t)to};
}

void mk_response_parser_next(struct mk_response_parser *p)
{
    assert(p->status < 200 && p->status != 101);
    mk_response_parser_init(p, p->limits, p->to);
}

/* ── the head ── */

/* HTTP/1.x SP status SP reason; the reason may be empty or missing (RFC 9112 section 4). */
static int read_status_line(struct mk_response_parser *p, struct mk_str line)
{
    const char *at = line.p;
    if (line.len < 12 || memcmp(at, "HTTP/1.", 7) != 0 || !mk_is_digit(at[7]) || at[8] != ' ')
        return -EINVAL;
    if (at[9] < '1' || at[9] > '5' || !mk_is_digit(at[10]) || !mk_is_digit(at[11]) || (line.len > 12 && at[12] != ' '))
        return -EINVAL;
    p->minor = p->head.minor = (uint8_t)(at[7] - '0');
    p->status = p->head.status = (uint16_t)((at[9] - '0') * 100 + (at[10] - '0') * 10 + (at[11] - '0'));
    return mk_str_has_control(mk_str(at + 12, line.len - 12)) ? -EINVAL : 0;
}

/* Finds the end of the status line, and reads it. Returns 0, MK_AGAIN, -EINVAL or -EMSGSIZE. */
static int parse_status_line(struct mk_response_parser *p, struct mk_str head)
{
    struct mk_head_parser *h = &p->head;
    size_t len = head.len < p->limits->head_bytes_max ? head.len : p->limits->head_bytes_max;
    const char *lf = memchr(head.p + h->seen_len, '\n', len - h->seen_len);
    if (!lf) {
        h->seen_len = (uint16_t)len;
        return len == p->limits->head_bytes_max ? -EMSGSIZE : MK_AGAIN;
    }
    size_t end = (size_t)(lf - head.p);
    if (end == 0 || lf[-1] != '\r')
        return -EINVAL; /* a bare LF */
    h->phase = MK__PARSE_FIELDS;
    h->seen_len = h->line_at = (uint16_t)(end + 1);
    return read_status_line(p, mk_str(head.p, end - 1));
}

static int read_length(struct mk_response_parser *p, struct mk_str value)
{
    if (p->has_length || !mk_str_u64(value, INT64_MAX, &p->length))
        return -EINVAL;
    p->has_length = true;
    return 0;
}

/* No request asks for another coding (RFC 9112 section 7.4), and HTTP/1.0 has none (section 6.1). */
static int read_coding(struct mk_response_parser *p, struct mk_str value)
{
    if (p->body == MK_RESPONSE_BODY_CHUNKED || p->minor == 0 || !mk_str_ieq(value, MK_STR("chunked")))
        return -EINVAL;
    p->body = MK_RESPONSE_BODY_CHUNKED;
    return 0;
}

static int read_upgrade(struct mk_response_parser *p, struct mk_str value)
{
    p->has_upgrade = true;
    return value.len ? 0 : -EINVAL;
}

/* The fields about the message itself; of Connection see read_connection(). */
static const struct {
    uint8_t id;
    int (*read)(struct mk_response_parser *p, struct mk_str value);
} readers[] = {
    {MK_HEADER_CONTENT_LENGTH, read_length},
    {MK_HEADER_TRANSFER_ENCODING, read_coding},
    {MK_HEADER_UPGRADE, read_upgrade},
};

static int read_fields(struct mk_response_parser *p, const struct mk_field *fields, const char *base)
{
    for (unsigned r = 0; r < MK_COUNT_OF(readers); r++) {
        for (unsigned i = 0; p->head.seen & 1u << readers[r].id && i < p->n_fields; i++) {
            int err = fields[i].id == readers[r].id ? readers[r].read(p, mk_span_str(base, fields[i].value)) : 0;
            if (err < 0)
                return err;
        }
    }
    return 0;
}

/* Tells whether the connection persists (RFC 9112 section 9.3). */
static bool read_connection(const struct mk_response_parser *p, const struct mk_field *fields, const char *base)
{
    bool close = false, keep = p->minor > 0;
    for (unsigned i = 0; p->head.seen & 1u << MK_HEADER_CONNECTION && i < p->n_fields; i++) {
        if (fields[i].id != MK_HEADER_CONNECTION)
            continue;
        close |= mk_str_list_has(mk_span_str(base, fields[i].value), MK_STR("close"));
        keep |= mk_str_list_has(mk_span_str(base, fields[i].value), MK_STR("keep-alive"));
    }
    return keep && !close;
}

static bool has_no_body(const struct mk_response_parser *p)
{
    return p->status < 200 || p->status == 204 || p->status == 304 || p->to == MK_RESPONSE_TO_HEAD ||
           (p->to == MK_RESPONSE_TO_CONNECT && p->status < 300);
}

/* Finds how the body ends (RFC 9112 section 6.3). Returns 0 or -EINVAL. */
static int end_head(struct mk_response_parser *p, const struct mk_field *fields, const char *base)
{
    p->head_bytes = p->head.head_len;
    p->n_fields = p->head.n_fields;
    int err = read_fields(p, fields, base);
    if (err < 0)
        return err;
    bool is_chunked = p->body == MK_RESPONSE_BODY_CHUNKED;
    if (is_chunked && p->has_length)
        return -EINVAL;
    p->has_length = p->has_length && p->status >= 200; /* an interim response has no content, whatever it says */
    p->keep_alive = read_connection(p, fields, base);
    if (has_no_body(p))
        p->body = MK_RESPONSE_BODY_NONE;
    else if (p->has_length)
        p->body = p->length ? MK_RESPONSE_BODY_LENGTH : MK_RESPONSE_BODY_NONE;
    else if (!is_chunked)
        p->body = MK_RESPONSE_BODY_UNTIL_END;
    p->left = p->body == MK_RESPONSE_BODY_LENGTH ? p->length : 0;
    p->keep_alive = p->keep_alive && p->body != MK_RESPONSE_BODY_UNTIL_END;
    if (p->body == MK_RESPONSE_BODY_CHUNKED)
        mk_chunked_init(&p->chunked, &p->limits->chunked);
    p->is_done = p->status >= 200 && p->body == MK_RESPONSE_BODY_NONE;
    return 0;
}

int mk_response_parser_head(struct mk_response_parser *p, struct mk_field *fields, struct mk_str head)
{
    assert(!p->head_bytes && head.len >= p->head.seen_len);
    const struct mk__parse_limits limits = {
        .head_bytes_max = p->limits->head_bytes_max,
        .fields_max = p->limits->fields_max,
    };
    if (p->head.phase == MK__PARSE_START) {
        int r = parse_status_line(p, head);
        if (r != 0)
            return r;
    }
    int r = mk__parse_head(&p->head, fields, &limits, head);
    if (r < 0)
        return r == -431 ? -EMSGSIZE : -EINVAL;
    return r == 0 ? end_head(p, fields, head.p) : r;
}

/* ── the body ── */

static ssize_t decode_chunks(struct mk_response_parser *p, const char *in, size_t len, struct mk_str *ret_body)
{
    ssize_t n = mk_chunked_decode(&p->chunked, in, len, ret_body);
    p->is_done = p->chunked.done;
    return n;
}

ssize_t mk_response_parser_body(struct mk_response_parser *p, const char *in, size_t len, struct mk_str *ret_body)
{
    assert(p->head_bytes && !p->is_done);
    if (p->body == MK_RESPONSE_BODY_CHUNKED)
        return decode_chunks(p, in, len, ret_body);
    size_t n = p->body == MK_RESPONSE_BODY_LENGTH && len > p->left ? (size_t)p->left : len;
    *ret_body = mk_str(in, n);
    if (n)
        mk_response_parser_skip(p, n);
    return (ssize_t)n;
}

uint64_t mk_response_parser_skippable(const struct mk_response_parser *p)
{
    switch (p->body) {
    case MK_RESPONSE_BODY_LENGTH:
        return p->left;
    case MK_RESPONSE_BODY_CHUNKED:
        return mk_chunked_skippable(&p->chunked);
    case MK_RESPONSE_BODY_UNTIL_END:
        return p->is_done ? 0 : UINT64_MAX;
    default:
        return 0;
    }
}

void mk_response_parser_skip(struct mk_response_parser *p, uint64_t n)
{
    assert(n <= mk_response_parser_skippable(p));
    if (p->body == MK_RESPONSE_BODY_CHUNKED)
        mk_chunked_skip(&p->chunked, n);
    if (p->body != MK_RESPONSE_BODY_LENGTH)
        return;
    p->left -= n;
    p->is_done = p->left == 0;
}

int mk_response_parser_end(struct mk_response_parser *p)
{
    if (p->is_done)
        return 0;
    if (!p->head_bytes || p->body != MK_RESPONSE_BODY_UNTIL_END)
        return -EPIPE;
    p->is_done = true;
    return 0;
}

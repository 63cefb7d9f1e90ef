// SPDX-License-Identifier: Apache-2.0
/*
 * The parser of responses, and of the heads of scripts (<monkey/base/response_parser.h>): the status line, the field
 * lines, what they say of framing and connection, and the body. Field lines that are well-formed are read by
 * http/message/parse.c, as those of requests are. The others are malformed; RFC 9112 lets a recipient of a response
 * recover from some faults.
 */
#include "http/message/parse.h"

#include <assert.h>
#include <errno.h>

enum { EXCERPT_BYTES = 60 };

void mk_response_parser_init(struct mk_response_parser *p, const struct mk_response_limits *limits,
                             enum mk_response_to to)
{
    *p = (struct mk_response_parser){.limits = limits, .to = (uint8_t)to};
}

void mk_response_parser_next(struct mk_response_parser *p)
{
    assert(p->status < 200 && p->status != 101);
    bool expects_body = p->expects_body;
    mk_response_parser_init(p, p->limits, p->to);
    p->expects_body = expects_body;
}

/* ── faults ── */

int mk_response_fault_set(struct mk_response_fault *fault, const char *text, unsigned number, struct mk_span line)
{
    *fault = (struct mk_response_fault){text, line, (uint16_t)number};
    return -EINVAL;
}

void mk_response_fault_describe(const struct mk_response_fault *f, const char *head, struct mk_buf *out)
{
    if (!f->number) {
        mk_buf_addf(out, "%s", f->text);
        return;
    }
    struct mk_str line = mk_span_str(head, f->line);
    mk_buf_addf(out, "line %u of its head, \"", f->number);
    for (size_t i = 0; i < line.len && i < EXCERPT_BYTES; i++)
        mk_buf_addf(out, line.p[i] < ' ' || line.p[i] > '~' ? "%%%02X" : "%c", (unsigned char)line.p[i]);
    mk_buf_addf(out, "%s\": %s", line.len > EXCERPT_BYTES ? "..." : "", f->text);
}

/* ── field lines ── */

/* Reads name, blanks, ":" and value (RFC 9112 section 5.1). Returns NULL, or what is wrong. */
static const char *read_line(struct mk_field *field, const char *head, struct mk_str line)
{
    const char *colon = memchr(line.p, ':', line.len);
    if (line.p[0] == ' ' || line.p[0] == '\t')
        return "it is folded, or begins with a blank";
    if (!colon)
        return "it has no colon";
    struct mk_str name = mk_str_trim(mk_str(line.p, (size_t)(colon - line.p)));
    if (!mk_str_is_token(name))
        return "its name is empty, or has a byte that no name has";
    if (mk_str_has_control(line))
        return "it has a control byte";
    struct mk_str value = mk_str_trim(mk_str(colon + 1, (size_t)(line.p + line.len - colon - 1)));
    field->name = (struct mk_span){(uint16_t)(name.p - head), (uint16_t)name.len};
    field->value = (struct mk_span){(uint16_t)(value.p - head), (uint16_t)value.len};
    field->id = mk__parse_header_id(name);
    return NULL;
}

/* Takes the line that ends at `end`, with its CR or without. Returns 0 (it ends the head), MK_AGAIN or an error. */
static int take_line(struct mk_head_parser *p, struct mk_field *fields, unsigned fields_max, struct mk_str head,
                     size_t end, struct mk_response_fault *fault)
{
    struct mk_str line = mk_str(head.p + p->line_at, end - p->line_at);
    line.len -= line.len && line.p[line.len - 1] == '\r';
    if (!line.len) {
        p->phase = MK__PARSE_DONE;
        p->head_len = (uint16_t)(end + 1);
        return 0;
    }
    if (p->n_fields == fields_max)
        return -EMSGSIZE;
    struct mk_field *field = &fields[p->n_fields];
    const char *text = read_line(field, head.p, line);
    if (text)
        return mk_response_fault_set(fault, text, p->n_fields + 1, (struct mk_span){p->line_at, (uint16_t)line.len});
    p->seen |= 1u << field->id;
    p->n_fields++;
    p->seen_len = p->line_at = (uint16_t)(end + 1);
    return MK_AGAIN;
}

int mk_response_fields(struct mk_head_parser *p, struct mk_field *fields, const struct mk_response_limits *limits,
                       struct mk_str head, struct mk_response_fault *fault)
{
    size_t len = head.len < limits->head_bytes_max ? head.len : limits->head_bytes_max;
    int r = MK_AGAIN;
    assert(p->phase != MK__PARSE_DONE && p->line_at <= p->seen_len && p->seen_len <= len);
    while (r == MK_AGAIN) {
        if (p->seen_len == p->line_at) {
            mk__parse_fields(p, fields, limits->fields_max, mk_str(head.p, len));
            p->seen_len = p->line_at;
        }
        const char *lf = p->seen_len < len ? memchr(head.p + p->seen_len, '\n', len - p->seen_len) : NULL;
        if (!lf) {
            p->seen_len = (uint16_t)len;
            return len == limits->head_bytes_max ? -EMSGSIZE : MK_AGAIN;
        }
        r = take_line(p, fields, limits->fields_max, head, (size_t)(lf - head.p), fault);
    }
    return r;
}

/* ── the head ── */

/*
 * Reads HTTP/1.x SP status SP reason; the reason may be empty or missing (RFC 9112 section 4). Returns 0, MK_AGAIN,
 * -EINVAL or -EMSGSIZE.
 */
static int read_status_line(struct mk_response_parser *p, struct mk_str head)
{
    struct mk_head_parser *h = &p->head;
    size_t len = head.len < p->limits->head_bytes_max ? head.len : p->limits->head_bytes_max;
    const char *lf = memchr(head.p + h->seen_len, '\n', len - h->seen_len);
    if (!lf) {
        h->seen_len = (uint16_t)len;
        return len == p->limits->head_bytes_max ? -EMSGSIZE : MK_AGAIN;
    }
    struct mk_str line = mk_str(head.p, (size_t)(lf - head.p));
    h->phase = MK__PARSE_FIELDS;
    h->seen_len = h->line_at = (uint16_t)(line.len + 1);
    line.len -= line.len && lf[-1] == '\r';
    const char *at = line.p;
    if (line.len < 12 || memcmp(at, "HTTP/1.", 7) != 0 || !mk_is_digit(at[7]) || at[8] != ' ' || at[9] < '1' ||
        at[9] > '9' || !mk_is_digit(at[10]) || !mk_is_digit(at[11]) || (line.len > 12 && at[12] != ' ') ||
        mk_str_has_control(mk_str_after(line, 12)))
        return mk_response_fault_set(&p->fault, "it is no status line of HTTP/1", 1,
                                     (struct mk_span){0, (uint16_t)line.len});
    p->minor = h->minor = (uint8_t)(at[7] - '0');
    p->status = h->status = (uint16_t)((at[9] - '0') * 100 + (at[10] - '0') * 10 + (at[11] - '0'));
    return 0;
}

static const char *read_length(struct mk_response_parser *p, struct mk_str value)
{
    if (p->has_length)
        return "it has a Content-Length before";
    p->has_length = mk_str_u64(value, INT64_MAX, &p->length);
    return p->has_length ? NULL : "its Content-Length is no number";
}

/* No request asks for another coding (RFC 9112 section 7.4), and HTTP/1.0 has none (section 6.1). */
static const char *read_coding(struct mk_response_parser *p, struct mk_str value)
{
    if (p->has_length)
        return "it has a Content-Length, too";
    if (p->minor == 0)
        return "HTTP/1.0 has no Transfer-Encoding";
    if (p->body == MK_RESPONSE_BODY_CHUNKED || !mk_str_ieq(value, MK_STR("chunked")))
        return "its Transfer-Encoding is not chunked alone";
    p->body = MK_RESPONSE_BODY_CHUNKED;
    return NULL;
}

static const char *read_upgrade(struct mk_response_parser *p, struct mk_str value)
{
    p->has_upgrade |= value.len > 0;
    return NULL;
}

/* The fields about the message itself, in the order in which they are read; of Connection see read_connection(). */
static const struct {
    uint8_t id;
    const char *(*read)(struct mk_response_parser *p, struct mk_str value); /* returns NULL or what is wrong */
} readers[] = {
    {MK_HEADER_CONTENT_LENGTH, read_length},
    {MK_HEADER_TRANSFER_ENCODING, read_coding},
    {MK_HEADER_UPGRADE, read_upgrade},
};

static int read_fields(struct mk_response_parser *p, const struct mk_field *fields, const char *base)
{
    for (unsigned r = 0; r < MK_COUNT_OF(readers); r++) {
        for (unsigned i = 0; p->head.seen & 1u << readers[r].id && i < p->n_fields; i++) {
            bool is_read = fields[i].id == readers[r].id;
            const struct mk_span name = fields[i].name, value = fields[i].value;
            const char *fault = is_read ? readers[r].read(p, mk_span_str(base, value)) : NULL;
            if (fault)
                return mk_response_fault_set(&p->fault, fault, i + 2,
                                             (struct mk_span){name.at, (uint16_t)(value.at + value.len - name.at)});
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

/* Finds how the body ends (RFC 9112 section 6.3). Returns 0 or -EINVAL. */
static int end_head(struct mk_response_parser *p, const struct mk_field *fields, const char *base)
{
    p->head_bytes = p->head.head_len;
    p->n_fields = p->head.n_fields;
    int err = read_fields(p, fields, base);
    if (err < 0)
        return err;
    bool is_chunked = p->body == MK_RESPONSE_BODY_CHUNKED;
    bool is_tunnel = p->status == 101 || (p->to == MK_RESPONSE_TO_CONNECT && p->status / 100 == 2);
    bool has_none =
        p->status < 200 || p->status == 204 || p->status == 304 || p->to == MK_RESPONSE_TO_HEAD || is_tunnel;
    p->expects_body |= has_none && !is_tunnel && (is_chunked || p->length > 0);
    p->has_length = p->has_length && p->status >= 200; /* an interim response has no content, whatever it says */
    if (has_none)
        p->body = MK_RESPONSE_BODY_NONE;
    else if (p->has_length)
        p->body = p->length ? MK_RESPONSE_BODY_LENGTH : MK_RESPONSE_BODY_NONE;
    else if (!is_chunked)
        p->body = MK_RESPONSE_BODY_UNTIL_END;
    p->left = p->body == MK_RESPONSE_BODY_LENGTH ? p->length : 0;
    p->keep_alive = read_connection(p, fields, base) && p->body != MK_RESPONSE_BODY_UNTIL_END;
    if (p->body == MK_RESPONSE_BODY_CHUNKED) {
        mk_chunked_init(&p->chunked, &p->limits->chunked);
        p->chunked.recovers = true;
    }
    p->is_done = p->status >= 200 && p->body == MK_RESPONSE_BODY_NONE;
    return 0;
}

int mk_response_parser_head(struct mk_response_parser *p, struct mk_field *fields, struct mk_str head)
{
    assert(!p->head_bytes && head.len >= p->head.seen_len);
    int r = p->head.phase == MK__PARSE_START ? read_status_line(p, head) : 0;
    if (r != 0)
        return r;
    r = mk_response_fields(&p->head, fields, p->limits, head, &p->fault);
    p->fault.number += r == -EINVAL; /* the status line */
    return r == 0 ? end_head(p, fields, head.p) : r;
}

/* ── the body ── */

static ssize_t decode_chunks(struct mk_response_parser *p, const char *in, size_t len, struct mk_str *ret_body)
{
    ssize_t n = mk_chunked_decode(&p->chunked, in, len, ret_body);
    p->is_done = p->chunked.done;
    if (n == -EINVAL)
        mk_response_fault_set(&p->fault, mk_chunked_fault(&p->chunked), 0, (struct mk_span){0});
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

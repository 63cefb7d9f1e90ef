// SPDX-License-Identifier: Apache-2.0
/*
 * The parser of answers. A head is parsed line by line: in place where the whole line is in the piece, otherwise from a
 * copy of its first bytes. Of the fields only those that frame the message are read.
 */
#include "answer.h"

#include <errno.h>

static const struct mk__chunked_limits chunk_limits = {
    .line_bytes_max = 4096,
    .ext_bytes_total_max = 64 * 1024,
    .trailer_bytes_max = 64 * 1024,
    .trailer_count_max = 1000,
};

void answer_init(struct answer *a, bool to_head)
{
    a->state = ANSWER_STATUS_LINE;
    a->to_head = to_head;
    a->close = a->has_length = a->chunked = a->http10 = a->keep_alive = false;
    a->status = a->line_len = 0;
    a->head_bytes = 0;
    a->length = a->left = a->body_bytes = a->total_bytes = 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* `HTTP/1.1 200 OK`; the reason may be empty or missing. */
static bool parse_status_line(struct answer *a, struct mk_str line)
{
    const char *p = line.p;
    if (line.len < 12 || memcmp(p, "HTTP/1.", 7) != 0 || (p[7] != '0' && p[7] != '1') || p[8] != ' ')
        return false;
    if (p[9] < '1' || p[9] > '9' || !is_digit(p[10]) || !is_digit(p[11]) || (line.len > 12 && p[12] != ' '))
        return false;
    a->http10 = p[7] == '0';
    a->status = (uint16_t)((p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0'));
    a->state = ANSWER_HEADER;
    return a->status != 101; /* no request asks for another protocol */
}

static bool parse_length(struct answer *a, struct mk_str value)
{
    uint64_t n = 0;
    if (!value.len || value.len > 18)
        return false;
    for (size_t i = 0; i < value.len; i++) {
        if (!is_digit(value.p[i]))
            return false;
        n = n * 10 + (uint64_t)(value.p[i] - '0');
    }
    bool differs = a->has_length && a->length != n;
    a->has_length = true;
    a->length = n;
    return !differs;
}

static bool parse_coding(struct answer *a, struct mk_str value)
{
    bool again = a->chunked;
    a->chunked = true;
    return !again && mk_str_ieq(value, MK_STR("chunked")); /* no other coding was asked for */
}

static bool parse_connection(struct answer *a, struct mk_str value)
{
    struct mk_str element;
    while (mk_str_next(&value, &element)) {
        a->close |= mk_str_ieq(element, MK_STR("close"));
        a->keep_alive |= mk_str_ieq(element, MK_STR("keep-alive"));
    }
    return true;
}

/* The fields that frame a message; their lengths differ from each other. */
static const struct field {
    struct mk_str name;
    bool (*parse)(struct answer *a, struct mk_str value);
} fields[] = {
    {{"content-length", 14}, parse_length},
    {{"transfer-encoding", 17}, parse_coding},
    {{"connection", 10}, parse_connection},
};

static const struct field *find_field(struct mk_str name)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (mk_str_ieq(fields[i].name, name))
            return &fields[i];
    return NULL;
}

/* `line` holds at most ANSWER_LINE_MAX bytes of a longer line. */
static bool parse_field(struct answer *a, struct mk_str line, bool is_cut)
{
    const char *colon = memchr(line.p, ':', line.len);
    if (!colon || colon == line.p || line.p[0] == ' ' || line.p[0] == '\t' || colon[-1] == ' ' || colon[-1] == '\t')
        return false;
    const struct field *field = find_field(mk_str(line.p, (size_t)(colon - line.p)));
    if (!field)
        return true;
    return !is_cut && field->parse(a, mk_str_trim(mk_str(colon + 1, line.len - (size_t)(colon + 1 - line.p))));
}

static bool end_head(struct answer *a)
{
    if (a->status < 200) {
        bool framed = a->has_length || a->chunked;
        a->state = ANSWER_STATUS_LINE;
        a->close = a->keep_alive = false;
        return !framed;
    }
    a->close |= a->http10 && !a->keep_alive;
    if (a->to_head || a->status == 204 || a->status == 304) {
        a->state = ANSWER_DONE;
        return true;
    }
    if (a->has_length && a->chunked)
        return false;
    if (a->chunked) {
        mk__chunked_init(&a->chunks, &chunk_limits);
        a->state = ANSWER_CHUNKS;
    } else if (a->has_length) {
        a->left = a->length;
        a->state = a->left ? ANSWER_LENGTH : ANSWER_DONE;
    } else {
        a->close = true;
        a->state = ANSWER_UNTIL_END;
    }
    return true;
}

/* `line` is without its CRLF, and has at most ANSWER_LINE_MAX bytes. */
static bool parse_line(struct answer *a, struct mk_str line, bool is_cut)
{
    if (a->state == ANSWER_STATUS_LINE)
        return parse_status_line(a, line);
    return line.len ? parse_field(a, line, is_cut) : end_head(a);
}

/* Keeps the beginning of a line whose end is not here yet. */
static void keep_line(struct answer *a, const char *in, size_t len)
{
    size_t room = sizeof(a->line) - a->line_len;
    if (len <= room) {
        memcpy(a->line + a->line_len, in, len);
        a->line_len += (uint16_t)len;
        return;
    }
    memcpy(a->line + a->line_len, in, room);
    a->line_len = sizeof(a->line);
    a->line[sizeof(a->line) - 1] = in[len - 1]; /* the last byte so far, which must be a CR before the LF */
}

/* Parses a line of the head, or keeps it. Returns the bytes used, or -EINVAL. */
static ssize_t take_line(struct answer *a, const char *in, size_t len)
{
    const char *lf = memchr(in, '\n', len);
    size_t used = lf ? (size_t)(lf - in) + 1 : len;
    a->head_bytes += (uint32_t)used;
    if (a->head_bytes > ANSWER_HEAD_MAX)
        return -EINVAL;
    struct mk_str line = {in, used - 1};
    if (a->line_len || !lf) {
        keep_line(a, in, lf ? used - 1 : used);
        if (!lf)
            return (ssize_t)used;
        line = mk_str(a->line, a->line_len);
        a->line_len = 0;
    }
    if (!line.len || line.p[line.len - 1] != '\r')
        return -EINVAL; /* a bare LF */
    line.len--;
    bool is_cut = line.len >= ANSWER_LINE_MAX - 1;
    if (is_cut)
        line.len = ANSWER_LINE_MAX - 1;
    return parse_line(a, line, is_cut) ? (ssize_t)used : -EINVAL;
}

static ssize_t take_body(struct answer *a, const char *in, size_t len, struct mk_str *ret_body)
{
    if (a->state == ANSWER_CHUNKS) {
        ssize_t n = mk__chunked_decode(&a->chunks, in, len, ret_body);
        if (n < 0)
            return -EINVAL;
        if (a->chunks.done)
            a->state = ANSWER_DONE;
        a->body_bytes += ret_body->len;
        return n;
    }
    size_t n = a->state == ANSWER_LENGTH && len > a->left ? (size_t)a->left : len;
    *ret_body = mk_str(in, n);
    a->body_bytes += n;
    if (a->state == ANSWER_LENGTH && !(a->left -= n))
        a->state = ANSWER_DONE;
    return (ssize_t)n;
}

ssize_t answer_parse(struct answer *a, const char *in, size_t len, struct mk_str *ret_body)
{
    ssize_t n = 0;
    size_t used = 0;
    *ret_body = MK_STR_NONE;
    while (used < len && a->state <= ANSWER_HEADER && n >= 0) {
        n = take_line(a, in + used, len - used);
        used += n < 0 ? 0 : (size_t)n;
    }
    if (n >= 0 && used < len && a->state < ANSWER_DONE) {
        n = take_body(a, in + used, len - used, ret_body);
        used += n < 0 ? 0 : (size_t)n;
    }
    a->total_bytes += used;
    if (n >= 0 && a->state != ANSWER_MALFORMED)
        return (ssize_t)used;
    a->state = ANSWER_MALFORMED;
    return -EINVAL;
}

void answer_skip(struct answer *a, uint64_t n)
{
    a->left -= n;
    a->body_bytes += n;
    a->total_bytes += n;
    if (!a->left)
        a->state = ANSWER_DONE;
}

int answer_end(struct answer *a)
{
    if (a->state != ANSWER_UNTIL_END)
        return -EPIPE;
    a->state = ANSWER_DONE;
    return 0;
}

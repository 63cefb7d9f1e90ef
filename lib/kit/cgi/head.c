// SPDX-License-Identifier: Apache-2.0
/*
 * Parses the head of a script's response (<monkey/cgi.h>). Fields are those of RFC 9110; lines may end with LF alone,
 * since scripts write what the system's newline is.
 */
#include <monkey/cgi.h>

#include <assert.h>
#include <errno.h>

void mk_cgi_head_init(struct mk_cgi_head *h, const struct mk_cgi_head_limits *limits)
{
    *h = (struct mk_cgi_head){.limits = limits, .status = 200};
}

/* ── what the server itself reads ── */

/* Three digits from 200 to 599, and a reason, which is not used. */
static int read_status(struct mk_cgi_head *h, struct mk_str value, struct mk_span at)
{
    uint64_t status;
    (void)at;
    if (h->has_status || value.len < 3 || (value.len > 3 && value.p[3] != ' ' && value.p[3] != '\t') ||
        !mk_str_u64(mk_str(value.p, 3), 599, &status) || status < 200)
        return -EBADMSG;
    h->has_status = true;
    h->status = (uint16_t)status;
    return 0;
}

static int read_location(struct mk_cgi_head *h, struct mk_str value, struct mk_span at)
{
    if (h->location.len || !value.len)
        return -EBADMSG;
    h->location = at;
    return 0;
}

static int read_length(struct mk_cgi_head *h, struct mk_str value, struct mk_span at)
{
    (void)at;
    if (h->has_length || !mk_str_u64(value, INT64_MAX, &h->length))
        return -EBADMSG;
    h->has_length = true;
    return 0;
}

static int read_type(struct mk_cgi_head *h, struct mk_str value, struct mk_span at)
{
    (void)value;
    (void)at;
    if (h->has_type)
        return -EBADMSG;
    h->has_type = true;
    return 0;
}

/* The framing is the server's: what such a script sends as its body is not the body. */
static int refuse_coding(struct mk_cgi_head *h, struct mk_str value, struct mk_span at)
{
    (void)h;
    (void)value;
    (void)at;
    return -EBADMSG;
}

static const struct {
    struct mk_str name;
    int (*read)(struct mk_cgi_head *h, struct mk_str value, struct mk_span at);
} readers[] = {
    {MK_STR_INIT("Status"), read_status},
    {MK_STR_INIT("Location"), read_location},
    {MK_STR_INIT("Content-Type"), read_type},
    {MK_STR_INIT("Content-Length"), read_length},
    {MK_STR_INIT("Transfer-Encoding"), refuse_coding},
};

static int read_field(struct mk_cgi_head *h, struct mk_str name, struct mk_str value, struct mk_span at)
{
    for (size_t i = 0; i < MK_COUNT_OF(readers); i++)
        if (mk_str_ieq(readers[i].name, name))
            return readers[i].read(h, value, at);
    return 0;
}

/* ── lines ── */

static struct mk_span get_span(struct mk_str head, struct mk_str part)
{
    return (struct mk_span){(uint16_t)(part.p - head.p), (uint16_t)part.len};
}

static int parse_line(struct mk_cgi_head *h, struct mk_field *fields, struct mk_str head, struct mk_str line)
{
    const char *colon = memchr(line.p, ':', line.len);
    if (h->n_fields == 0 && mk_str_starts(line, MK_STR("HTTP/")))
        return -EPROTO;
    if (!colon || mk_str_has_control(line))
        return -EINVAL;
    struct mk_str name = mk_str(line.p, (size_t)(colon - line.p));
    struct mk_str value = mk_str_trim(mk_str(colon + 1, line.len - name.len - 1));
    if (!mk_str_is_token(name)) /* also a folded line, which begins with a blank */
        return -EINVAL;
    if (h->n_fields == h->limits->fields_max)
        return -EMSGSIZE;
    fields[h->n_fields++] = (struct mk_field){get_span(head, name), get_span(head, value), MK_HEADER_OTHER};
    return read_field(h, name, value, get_span(head, value));
}

static int end_head(struct mk_cgi_head *h, size_t bytes)
{
    if (h->n_fields == 0)
        return -EINVAL;
    if (h->location.len && !h->has_status)
        h->status = 302;
    h->head_bytes = (uint16_t)bytes;
    return 0;
}

int mk_cgi_head_parse(struct mk_cgi_head *h, struct mk_field *fields, struct mk_str head)
{
    assert(!h->head_bytes && head.len >= h->seen_bytes);
    size_t len = head.len < h->limits->bytes_max ? head.len : h->limits->bytes_max;
    while (h->seen_bytes < len) {
        const char *lf = memchr(head.p + h->seen_bytes, '\n', len - h->seen_bytes);
        h->seen_bytes = (uint16_t)(lf ? (size_t)(lf + 1 - head.p) : len);
        if (!lf)
            break;
        struct mk_str line = mk_str(head.p + h->line_at, (size_t)(lf - head.p) - h->line_at);
        line.len -= line.len && line.p[line.len - 1] == '\r';
        h->line_at = h->seen_bytes;
        if (!line.len)
            return end_head(h, h->seen_bytes);
        int err = parse_line(h, fields, head, line);
        if (err < 0)
            return err;
    }
    return len == h->limits->bytes_max ? -EMSGSIZE : MK_AGAIN;
}

const char *mk_cgi_head_error(int err)
{
    switch (err) {
    case -EPROTO:
        return "its output begins with \"HTTP/\", as that of a non-parsed header script, which is not supported: it "
               "must begin with header fields, such as Status and Content-Type";
    case -EMSGSIZE:
        return "the head of its response is too long, or has no empty line behind the header fields";
    case -EBADMSG:
        return "a header field of its response cannot be used: Status must be from 200 to 599, Status, Location, "
               "Content-Type and Content-Length may stand once, and Transfer-Encoding may not";
    default:
        return "its output does not begin with header fields and an empty line, such as Content-Type: text/plain";
    }
}

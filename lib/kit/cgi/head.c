// SPDX-License-Identifier: Apache-2.0
/*
 * Parses the head of a script's response (<monkey/kit/cgi.h>): what its fields mean to the server. The lines are read
 * as those of HTTP responses are, by mk_response_fields().
 */
#include <monkey/kit/cgi.h>

#include <assert.h>
#include <errno.h>

void mk_cgi_head_init(struct mk_cgi_head *h, const struct mk_response_limits *limits)
{
    *h = (struct mk_cgi_head){.limits = limits, .status = 200};
}

/* ── what the server itself reads ── */

/* Three digits from 200 to 999, and a reason, which is not used. */
static const char *read_status(struct mk_cgi_head *h, struct mk_str value, struct mk_span at)
{
    uint64_t status;
    (void)at;
    if (h->has_status)
        return "it has a Status before";
    if (value.len < 3 || (value.len > 3 && value.p[3] != ' ' && value.p[3] != '\t') ||
        !mk_str_u64(mk_str(value.p, 3), 999, &status) || status < 200)
        return "a Status is from 200 to 599, and a reason";
    h->has_status = true;
    h->status = (uint16_t)status;
    return NULL;
}

static const char *read_location(struct mk_cgi_head *h, struct mk_str value, struct mk_span at)
{
    if (h->location.len)
        return "it has a Location before";
    h->location = at;
    return value.len ? NULL : "its Location is empty";
}

static const char *read_length(struct mk_cgi_head *h, struct mk_str value, struct mk_span at)
{
    (void)at;
    if (h->has_length)
        return "it has a Content-Length before";
    h->has_length = mk_str_u64(value, INT64_MAX, &h->length);
    return h->has_length ? NULL : "its Content-Length is no number";
}

static const char *read_type(struct mk_cgi_head *h, struct mk_str value, struct mk_span at)
{
    bool is_second = h->has_type;
    (void)value;
    (void)at;
    h->has_type = true;
    return is_second ? "it has a Content-Type before" : NULL;
}

/* The framing is the server's: what such a script sends as its body is not the body. */
static const char *refuse_coding(struct mk_cgi_head *h, struct mk_str value, struct mk_span at)
{
    (void)h;
    (void)value;
    (void)at;
    return "Transfer-Encoding is the server's";
}

static const struct {
    struct mk_str name;
    const char *(*read)(struct mk_cgi_head *h, struct mk_str value, struct mk_span at); /* returns what is wrong */
} readers[] = {
    {MK_STR_INIT("Status"), read_status},
    {MK_STR_INIT("Location"), read_location},
    {MK_STR_INIT("Content-Type"), read_type},
    {MK_STR_INIT("Content-Length"), read_length},
    {MK_STR_INIT("Transfer-Encoding"), refuse_coding},
};

static const char *read_field(struct mk_cgi_head *h, const struct mk_field *field, const char *head)
{
    for (size_t i = 0; i < MK_COUNT_OF(readers); i++)
        if (mk_str_ieq(readers[i].name, mk_span_str(head, field->name)))
            return readers[i].read(h, mk_span_str(head, field->value), field->value);
    return NULL;
}

/* ── the head ── */

static const char no_fields[] = "its output does not begin with header fields and an empty line, such as "
                                "Content-Type: text/plain";

/* All lines are there. */
static int end_head(struct mk_cgi_head *h, const struct mk_field *fields, const char *head)
{
    if (h->lines.n_fields == 0)
        return mk_response_fault_set(&h->fault, no_fields, 1, (struct mk_span){0});
    for (unsigned i = 0; i < h->lines.n_fields; i++) {
        const char *text = read_field(h, &fields[i], head);
        struct mk_span name = fields[i].name, value = fields[i].value;
        if (text)
            return mk_response_fault_set(&h->fault, text, i + 1,
                                         (struct mk_span){name.at, (uint16_t)(value.at + value.len - name.at)});
    }
    if (h->location.len && !h->has_status)
        h->status = 302;
    h->n_fields = h->lines.n_fields;
    h->head_bytes = h->lines.head_len;
    return 0;
}

int mk_cgi_head_parse(struct mk_cgi_head *h, struct mk_field *fields, struct mk_str head)
{
    assert(!h->head_bytes);
    int r = mk_response_fields(&h->lines, fields, h->limits, head, &h->fault);
    if (r == 0)
        return end_head(h, fields, head.p);
    if (r == -EINVAL && h->lines.n_fields == 0 && mk_str_starts(head, MK_STR("HTTP/")))
        h->fault.text = "its output begins with \"HTTP/\", as that of a non-parsed header script, which is not "
                        "supported: it must begin with header fields, such as Status and Content-Type";
    else if (r == -EINVAL && h->lines.n_fields == 0)
        h->fault.text = no_fields;
    return r;
}

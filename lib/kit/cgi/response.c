// SPDX-License-Identifier: Apache-2.0
/*
 * The response of a script (<monkey/kit/cgi.h>): its head, and lines of error output.
 */
#include "cgi.h"

#include <monkey/kit/cgi.h>
#include <monkey/request.h>

#include <assert.h>
#include <errno.h>

/* ── headers that are not passed on ── */

/* Of one connection (RFC 9110 section 7.6), in both directions. */
static const struct mk_str of_connection[] = {
    MK_STR_INIT("Connection"),       MK_STR_INIT("Keep-Alive"),
    MK_STR_INIT("Proxy-Connection"), MK_STR_INIT("TE"),
    MK_STR_INIT("Trailer"),          MK_STR_INIT("Transfer-Encoding"),
    MK_STR_INIT("HTTP2-Settings"),   MK_STR_INIT("Upgrade"),
};

/* Content-Length and Content-Type have variables of another name, Host comes from the target. */
static const struct mk_str not_for_scripts[] = {
    MK_STR_INIT("Content-Length"), MK_STR_INIT("Content-Type"),        MK_STR_INIT("Host"),
    MK_STR_INIT("Expect"),         MK_STR_INIT("Proxy-Authorization"), MK_STR_INIT("Proxy"),
};

static const struct mk_str not_for_clients[] = {
    MK_STR_INIT("Status"),
    MK_STR_INIT("X-Sendfile"),
    MK_STR_INIT("X-LIGHTTPD-send-file"),
    MK_STR_INIT("Proxy-Authenticate"),
};

static bool is_listed(struct mk_str name, const struct mk_str *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (mk_str_ieq(names[i], name))
            return true;
    return false;
}

static bool is_of_connection(struct mk_str name, struct mk_str connection)
{
    return is_listed(name, of_connection, MK_COUNT_OF(of_connection)) ||
           (connection.len && mk_str_list_has(connection, name));
}

bool mk__cgi_header_reaches_script(struct mk_str name, struct mk_str connection, bool pass_authorization)
{
    /* a variable shows only these without being taken for another name */
    return mk_str_is_name(name, "-") && !is_of_connection(name, connection) &&
           !is_listed(name, not_for_scripts, MK_COUNT_OF(not_for_scripts)) &&
           (pass_authorization || !mk_str_ieq(name, MK_STR("Authorization")));
}

bool mk__cgi_header_reaches_client(struct mk_str name)
{
    return !mk_response_header_reserved(name) && !is_of_connection(name, MK_STR("")) &&
           !is_listed(name, not_for_clients, MK_COUNT_OF(not_for_clients)) && !mk_str_istarts(name, MK_STR("X-Accel-"));
}

/*
 * ── the head ──
 *
 * Parses the head of a script's response (<monkey/kit/cgi.h>): what its fields mean to the server. The lines are read
 * as those of HTTP responses are, by mk_response_fields().
 */

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

/* ── CGI heads where HTTP heads are expected ── */

int mk_cgi_parse_response(struct mk_cgi_head *h, struct mk_response_parser *p, struct mk_field *fields,
                          struct mk_str head)
{
    if (!h->limits)
        mk_cgi_head_init(h, p->limits);
    int result = mk_cgi_head_parse(h, fields, head);
    p->fault = h->fault;
    if (result != 0)
        return result;
    p->status = h->status;
    p->head_bytes = h->head_bytes;
    p->n_fields = h->n_fields;
    /* what the head says of the body (RFC 3875 section 6.3) */
    bool has_none = p->to == MK_RESPONSE_TO_HEAD || h->status == 204 || h->status == 304;
    p->has_length = h->has_length;
    p->length = p->left = h->length;
    p->body = has_none ? MK_RESPONSE_BODY_NONE : h->has_length ? MK_RESPONSE_BODY_LENGTH : MK_RESPONSE_BODY_UNTIL_END;
    p->is_done = has_none || (h->has_length && !h->length);
    return 0;
}

/*
 * ── passing it on ──
 *
 * Passes the head of a script's response to the client (<monkey/kit/cgi.h>). The strings are those of one copy of the
 * head in the arena of the request.
 */

enum { RESPONSE_HEADERS_MAX = 128 }; /* of mk_response_header(), with those that the server adds */

struct mk_str mk_cgi_find_local_redirect(const struct mk_cgi_head *h, struct mk_str head)
{
    struct mk_str location = mk_span_str(head.p, h->location);
    bool is_path = location.len && location.p[0] == '/' && (location.len == 1 || location.p[1] != '/');
    return is_path && !h->has_status ? location : MK_STR_NONE;
}

/* Tells whether a field Connection names another one, which belongs to the connection then. */
static bool is_named(const struct mk_cgi_head *h, const struct mk_field *fields, struct mk_str head, struct mk_str name)
{
    for (unsigned i = 0; i < h->n_fields; i++)
        if (fields[i].id == MK_HEADER_CONNECTION && mk_str_list_has(mk_span_str(head.p, fields[i].value), name))
            return true;
    return false;
}

int mk_cgi_pass_header(struct mk_request *req, struct mk_str name, struct mk_str value)
{
    if (mk_str_ieq(name, MK_STR("Date"))) /* a malformed one is replaced by the server's */
        return mk_response_set_date(req, value) == -ENOMEM ? -ENOMEM : 0;
    return mk__cgi_header_reaches_client(name) ? mk_response_header_ref(req, name, value) : 0;
}

int mk_cgi_pass_head(struct mk_request *req, const struct mk_cgi_head *h, const struct mk_field *fields,
                     struct mk_str head)
{
    head = mk_arena_dup(mk_request_arena(req), mk_str(head.p, h->head_bytes));
    if (!head.p)
        return -ENOMEM;
    int err = mk_response_set_status(req, h->status);
    for (unsigned i = 0; i < h->n_fields && err >= 0; i++) {
        struct mk_str name = mk_span_str(head.p, fields[i].name);
        if (!is_named(h, fields, head, name))
            err = mk_cgi_pass_header(req, name, mk_span_str(head.p, fields[i].value));
    }
    if (err == -ENOMEM && h->n_fields >= RESPONSE_HEADERS_MAX)
        return -ENOBUFS;
    if (err >= 0 && h->has_length && h->status != 204 && h->status != 304)
        err = mk_response_set_length(req, h->length);
    return err;
}

/* ── lines of error output for the log ── */

static void write_line(const struct mk_cgi_stderr *s, struct mk_str text)
{
    static const char format[] = "%s: %.*s"; /* one, so that both have the same limit */
    if (s->req)
        mk_request_log_text(s->req, MK_LOG_WARN, format, s->prefix, MK_STR_ARG(text));
    else
        mk_host_log_text(s->host, MK_LOG_WARN, format, s->prefix, MK_STR_ARG(text));
}

/* Tells whether a line has more than blanks and control bytes, of which nothing would be left in the log. */
static bool has_text(struct mk_str line)
{
    size_t i = 0;
    while (i < line.len && ((unsigned char)line.p[i] <= ' ' || line.p[i] == 0x7f))
        i++;
    return i < line.len;
}

static void end_line(struct mk_cgi_stderr *s)
{
    if (has_text(mk_str(s->line, s->len)))
        write_line(s, mk_str(s->line, s->len));
    s->len = 0;
    s->is_truncated = false;
}

void mk_cgi_stderr_add(struct mk_cgi_stderr *s, struct mk_str bytes)
{
    while (bytes.len) {
        const char *lf = memchr(bytes.p, '\n', bytes.len);
        size_t n = lf ? (size_t)(lf - bytes.p) : bytes.len, room = sizeof(s->line) - s->len;
        size_t taken = n < room ? n : room;
        memcpy(s->line + s->len, bytes.p, taken);
        s->len = (uint16_t)(s->len + taken);
        s->is_truncated |= taken < n;
        if (lf && s->len && s->line[s->len - 1] == '\r' && !s->is_truncated)
            s->len--;
        if (lf && s->len)
            end_line(s);
        bytes = mk_str(bytes.p + n + (lf != NULL), bytes.len - n - (lf != NULL));
    }
}

void mk_cgi_stderr_end(struct mk_cgi_stderr *s)
{
    if (s->len)
        end_line(s);
}

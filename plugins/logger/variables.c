// SPDX-License-Identifier: Apache-2.0
/*
 * The values of variables (variables.h).
 */
#include <monkey/plugin.h>

#include "variables.h"

#include <assert.h>

enum { ADDRESS_BYTES = 48 /* of IPv6, 45 at most */ };

/* ── the client ── */

/* Returns the address as text in the request's arena; NONE if it is not known. */
static struct mk_str get_address_text(const struct log_entry *e, struct mk_address address)
{
    struct mk_buf text;
    if (address.family == AF_UNSPEC)
        return MK_STR_NONE;
    char *storage = mk_arena_alloc(mk_request_arena(e->req), ADDRESS_BYTES);
    if (!storage)
        return MK_STR_NONE;
    mk_buf_init_fixed(&text, storage, ADDRESS_BYTES);
    mk_address_print(&address, &text);
    return mk_buf_str(&text);
}

static struct mk_str get_peer(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    return get_address_text(e, mk_request_peer(e->req));
}

static struct mk_str get_client(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    return get_address_text(e, mk_request_client(e->req));
}

static struct mk_str get_user(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    return mk_request_user(e->req);
}

/* ── times ── */

static void put_quote(struct line *l, const struct log_op *op)
{
    if (op->form == LINE_JSON)
        line_put_char(l, '"');
}

static void put_clf(struct line *l, const struct log_entry *e, const struct log_op *op)
{
    (void)e;
    put_quote(l, op);
    line_put(l, mk_str_c(l->clf));
    put_quote(l, op);
}

static void put_iso(struct line *l, const struct log_entry *e, const struct log_op *op)
{
    (void)e;
    put_quote(l, op);
    line_put_iso(l);
    put_quote(l, op);
}

static void put_unix(struct line *l, const struct log_entry *e, const struct log_op *op)
{
    (void)e;
    (void)op;
    line_put_number(l, (uint64_t)l->second);
}

static void put_unix_ms(struct line *l, const struct log_entry *e, const struct log_op *op)
{
    (void)e;
    (void)op;
    line_put_number(l, (uint64_t)l->second * 1000 + l->ms);
}

static bool get_request_time(const struct log_entry *e, uint64_t *ret)
{
    uint64_t began = mk_request_began_us(e->req);
    if (began)
        *ret = mk_loop_now_us(mk_request_loop(e->req)) - began;
    return began;
}

static bool get_first_byte(const struct log_entry *e, uint64_t *ret)
{
    uint64_t began = mk_request_began_us(e->req), answered = mk_response_began_us(e->req);
    if (began && answered)
        *ret = answered - began;
    return began && answered;
}

/* ── the request ── */

static struct mk_str mark_empty_absent(struct mk_str s)
{
    return s.len ? s : MK_STR_NONE;
}

static struct mk_str get_method(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    return mark_empty_absent(mk_request_method_name(e->req));
}

static struct mk_str get_target(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    return mark_empty_absent(mk_request_target(e->req));
}

static struct mk_str get_path(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    return mark_empty_absent(mk_request_path(e->req));
}

static struct mk_str get_query(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    return mk_request_query(e->req);
}

static struct mk_str get_host(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    return mark_empty_absent(mk_request_host(e->req));
}

/* The version is unknown if the head could not be read up to the target. */
static struct mk_str get_protocol(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    if (!mk_request_target(e->req).len)
        return MK_STR_NONE;
    if (mk_request_major(e->req) == 2)
        return MK_STR("HTTP/2.0");
    return mk_request_minor(e->req) ? MK_STR("HTTP/1.1") : MK_STR("HTTP/1.0");
}

static void put_request(struct line *l, const struct log_entry *e, const struct log_op *op)
{
    struct mk_str parts[] = {get_method(e, op), get_target(e, op), get_protocol(e, op)};
    put_quote(l, op);
    if (!parts[0].p)
        line_put_char(l, '-');
    for (unsigned i = 0; i < MK_COUNT_OF(parts) && parts[i].p; i++) {
        if (i)
            line_put_value(l, MK_STR(" "), op->form);
        line_put_value(l, parts[i], op->form);
    }
    put_quote(l, op);
}

static struct mk_str get_referer(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    return mk_request_header(e->req, MK_HEADER_REFERER);
}

static struct mk_str get_agent(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    return mk_request_header(e->req, MK_HEADER_USER_AGENT);
}

static struct mk_str get_traceparent(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    return mk_request_header_by_name(e->req, MK_STR("traceparent"));
}

static struct mk_str get_request_header(const struct log_entry *e, const struct log_op *op)
{
    return mk_request_header_by_name(e->req, op->arg);
}

static struct mk_str get_note(const struct log_entry *e, const struct log_op *op)
{
    return mk_request_get_note(e->req, op->arg);
}

static struct mk_str get_own_note(const struct log_entry *e, const struct log_op *op)
{
    return mk_request_get_note(e->req, mk_str_c(op->variable->name));
}

/* A note with the name of the variable that is a number. */
static void put_own_number(struct line *l, const struct log_entry *e, const struct log_op *op)
{
    uint64_t value;
    if (mk_str_u64(get_own_note(e, op), UINT64_MAX, &value))
        line_put_number(l, value);
    else
        line_put(l, op->form == LINE_JSON ? MK_STR("null") : MK_STR("-"));
}

static struct mk_str get_request_id(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    return mk_request_id(e->req);
}

static bool get_bytes_in(const struct log_entry *e, uint64_t *ret)
{
    *ret = mk_request_bytes_received(e->req);
    return true;
}

static bool get_body_bytes_in(const struct log_entry *e, uint64_t *ret)
{
    *ret = mk_request_bytes_received(e->req) - mk_request_head_bytes(e->req);
    return true;
}

/* ── the response ── */

static bool get_status(const struct log_entry *e, uint64_t *ret)
{
    *ret = (uint64_t)mk_response_get_status(e->req);
    return true;
}

static bool get_bytes_out(const struct log_entry *e, uint64_t *ret)
{
    *ret = mk_response_head_bytes(e->req) + mk_request_bytes_sent(e->req);
    return true;
}

static bool get_body_bytes_out(const struct log_entry *e, uint64_t *ret)
{
    *ret = mk_request_bytes_sent(e->req);
    return true;
}

static struct mk_str get_response_header(const struct log_entry *e, const struct log_op *op)
{
    return mk_response_get_header(e->req, op->arg);
}

static void put_aborted(struct line *l, const struct log_entry *e, const struct log_op *op)
{
    bool is = mk_request_aborted(e->req);
    if (op->form == LINE_JSON)
        line_put(l, is ? MK_STR("true") : MK_STR("false"));
    else
        line_put(l, is ? MK_STR("aborted") : MK_STR("-"));
}

/* ── the connection ── */

static struct mk_str get_listener(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    return mk_request_listener(e->req);
}

/* Returns an empty struct for connections without TLS. */
static struct mk_tls_info get_tls_info(const struct log_entry *e)
{
    struct mk_tls_info found;
    mk_request_tls_info(e->req, &found);
    return found;
}

static struct mk_str get_tls_version(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    return get_tls_info(e).version;
}

static struct mk_str get_tls_cipher(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    return get_tls_info(e).cipher;
}

static struct mk_str get_tls_server_name(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    return mark_empty_absent(get_tls_info(e).server_name);
}

static struct mk_str get_tls_client(const struct log_entry *e, const struct log_op *op)
{
    (void)op;
    return mark_empty_absent(get_tls_info(e).client);
}

static bool get_worker(const struct log_entry *e, uint64_t *ret)
{
    *ret = e->worker;
    return true;
}

const struct log_variable log_variables[] = {
    {.name = "peer", .text = get_peer, .doc = "the address at the other end of the connection"},
    {.name = "client", .text = get_client, .doc = "the address of the client"},
    {.name = "user", .text = get_user, .doc = "the authenticated user"},
    {.name = "time_clf", .put = put_clf, .doc = "when the exchange ended, as 20/Nov/2026:03:36:14 +0000"},
    {.name = "time_iso8601", .put = put_iso, .doc = "as 2026-11-20T03:36:14.123Z"},
    {.name = "time_unix", .put = put_unix, .doc = "in seconds since 1970"},
    {.name = "time_unix_ms", .put = put_unix_ms, .doc = "in milliseconds since 1970"},
    {.name = "request", .put = put_request, .doc = "method, target and protocol"},
    {.name = "method", .text = get_method, .doc = "the method"},
    {.name = "target", .text = get_target, .doc = "the target as the client sent it"},
    {.name = "path", .text = get_path, .doc = "the decoded path"},
    {.name = "query", .text = get_query, .doc = "what follows the question mark"},
    {.name = "host", .text = get_host, .doc = "the requested host, without a port"},
    {.name = "protocol", .text = get_protocol, .doc = "HTTP/1.0, HTTP/1.1 or HTTP/2.0"},
    {.name = "status", .number = get_status, .doc = "the status of the response"},
    {.name = "bytes_in", .number = get_bytes_in, .doc = "bytes of the request"},
    {.name = "body_bytes_in", .number = get_body_bytes_in, .doc = "bytes of its body"},
    {.name = "bytes_out", .number = get_bytes_out, .doc = "bytes of the response"},
    {.name = "body_bytes_out", .number = get_body_bytes_out, .doc = "bytes of its body"},
    {.name = "referer", .text = get_referer, .doc = "the Referer field"},
    {.name = "agent", .text = get_agent, .doc = "the User-Agent field"},
    {.name = "request_time_us",
     .number = get_request_time,
     .doc = "from the first byte of the request to the end, in µs"},
    {.name = "first_byte_us", .number = get_first_byte, .doc = "until the first byte of the response was ready, in µs"},
    {.name = "listener", .text = get_listener, .doc = "the address of the Listen line"},
    {.name = "tls_version", .text = get_tls_version, .doc = "the version of TLS"},
    {.name = "tls_cipher", .text = get_tls_cipher, .doc = "the cipher suite of TLS"},
    {.name = "tls_server_name", .text = get_tls_server_name, .doc = "the host that the client sent by TLS (SNI)"},
    {.name = "tls_client", .text = get_tls_client, .doc = "the subject of a verified client certificate"},
    {.name = "request_id", .text = get_request_id, .doc = "the request ID, as in X-Request-Id"},
    {.name = "traceparent", .text = get_traceparent, .doc = "the field of W3C Trace Context"},
    {.name = "aborted", .put = put_aborted, .doc = "whether the exchange ended before the response was complete"},
    {.name = "worker", .number = get_worker, .doc = "the number of the worker, from 0"},
    {.name = "upstream", .text = get_own_note, .doc = "the server that a request was forwarded to"},
    {.name = "upstream_connect_us", .put = put_own_number, .doc = "how long connecting to it took, in µs"},
    {.name = "upstream_head_us", .put = put_own_number, .doc = "until the head of its response, in µs"},
    {.name = "upstream_us", .put = put_own_number, .doc = "until the end of its response, in µs"},
    {.name = "retries", .put = put_own_number, .doc = "how often the request was forwarded again"},
    {.name = "header_",
     .text = get_request_header,
     .arg = ARG_HEADER,
     .doc = "any header of the request: $header_accept"},
    {.name = "response_", .text = get_response_header, .arg = ARG_HEADER, .doc = "any header of the response"},
    {.name = "note_", .text = get_note, .arg = ARG_NOTE, .doc = "any note of a plugin"},
    {0},
};

static void put_text(struct line *l, struct mk_str text, enum line_form form)
{
    if (form != LINE_JSON) {
        if (text.len)
            line_put_value(l, text, form);
        else
            line_put_char(l, '-');
        return;
    }
    if (!text.p) {
        line_put(l, MK_STR("null"));
        return;
    }
    line_put_char(l, '"');
    line_put_value(l, text, form);
    line_put_char(l, '"');
}

void variables_put(struct line *l, const struct log_entry *e, const struct log_op *op)
{
    const struct log_variable *variable = op->variable;
    uint64_t value;
    assert(variable && (variable->put || variable->text || variable->number));
    if (variable->put)
        variable->put(l, e, op);
    else if (variable->text)
        put_text(l, variable->text(e, op), op->form);
    else if (variable->number(e, &value))
        line_put_number(l, value);
    else
        line_put(l, op->form == LINE_JSON ? MK_STR("null") : MK_STR("-"));
}

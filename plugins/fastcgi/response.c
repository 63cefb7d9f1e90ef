// SPDX-License-Identifier: Apache-2.0
/*
 * Reads responses (response.h).
 */
#include "response.h"

#include "request.h"

#include <errno.h>

/* ── error output ── */

/* What it belongs to may have changed since the last call: the client may have left. */
static void bind_error_output(const struct mk_gateway_call *c, struct mk_cgi_stderr *s)
{
    const struct fastcgi_script *script = c->arg;
    s->prefix = script ? script->log_prefix : c->protocol->name;
    s->req = c->req;
    s->host = c->host;
}

static void add_error_output(struct mk_str bytes, void *ctx)
{
    const struct mk_gateway_call *c = ctx;
    struct fastcgi_response *r = c->state;
    bind_error_output(c, &r->error_output);
    mk_cgi_stderr_add(&r->error_output, bytes);
}

static void end_error_output(const struct mk_gateway_call *c, struct mk_cgi_stderr *s)
{
    bind_error_output(c, s);
    mk_cgi_stderr_end(s);
}

void response_begin(const struct mk_gateway_call *c)
{
    struct fastcgi_response *r = c->state;
    end_error_output(c, &r->error_output);
    memset(r, 0, sizeof(*r));
}

/* ── records ── */

/* Takes the padding of the last record, if it has come; anything else is in excess. */
static void end_records(const struct mk_gateway_call *c, struct fastcgi_response *r, size_t left, bool *ret_has_excess)
{
    size_t padding = r->decoder.reader.padding_left;
    *ret_has_excess = left > padding;
    r->is_kept = c->keeps_conn && left == padding;
}

int response_unwrap(const struct mk_gateway_call *c, char *bytes, size_t *len, bool *ret_has_excess)
{
    struct fastcgi_response *r = c->state;
    struct mk_gateway_call call = *c;
    size_t left;
    int result = mk_fastcgi_decode(&r->decoder, bytes, len, &left, add_error_output, &call);
    if (result != 0)
        end_error_output(c, &r->error_output);
    if (result > 0)
        end_records(c, r, left, ret_has_excess);
    return result;
}

bool response_keeps_conn(const struct mk_gateway_call *c)
{
    const struct fastcgi_response *r = c->state;
    return r->is_kept;
}

/* ── heads ── */

int response_parse_head(const struct mk_gateway_call *c, struct mk_response_parser *p, struct mk_field *fields,
                        struct mk_str bytes)
{
    struct fastcgi_response *r = c->state;
    return mk_cgi_parse_response(&r->head, p, fields, bytes);
}

int response_pass_header(const struct mk_gateway_call *c, struct mk_str name, struct mk_str value)
{
    return mk_cgi_pass_header(c->req, name, value);
}

/* The connection, or the response in it, has ended too early. */
static const char *describe_end(const struct mk_gateway_call *c, const struct fastcgi_response *r)
{
    bool has_head = r->head.head_bytes;
    if (!c->protocol->unwrap)
        return has_head ? "it has closed the connection before the bytes of its Content-Length"
                        : "it has closed the connection before the head of its response was complete";
    if (!mk_fastcgi_has_end(&r->decoder))
        return "it has closed the connection before FCGI_END_REQUEST";
    return has_head ? "its response has ended before the bytes of its Content-Length"
                    : "its response has ended before its head was complete";
}

const char *response_describe_fault(const struct mk_gateway_call *c, int err)
{
    const struct fastcgi_response *r = c->state;
    return r->decoder.fault ? r->decoder.fault : err == -EPIPE ? describe_end(c, r) : NULL;
}

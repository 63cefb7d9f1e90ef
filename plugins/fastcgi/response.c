// SPDX-License-Identifier: Apache-2.0
/*
 * Reads responses (response.h).
 */
#include "response.h"

#include "request.h"

#include <errno.h>

static_assert(sizeof(struct mk_cgi_stderr_rate) <= MK_GATEWAY_THREAD_BYTES, "it is kept for the thread");

/* ── error output ── */

/* What it belongs to may have changed since the last call: the client may have left. */
static void bind_error_output(const struct mk_gateway_call *c, struct mk_cgi_stderr *s)
{
    const struct fastcgi_script *script = c->arg;
    s->prefix = script ? script->log_prefix : c->protocol->name;
    s->req = c->req;
    s->host = c->host;
    s->loop = c->loop;
    s->rate = c->thread;
}

static void add_error_output(const struct mk_gateway_call *c, struct mk_cgi_stderr *s, struct mk_str bytes)
{
    bind_error_output(c, s);
    mk_cgi_stderr_add(s, bytes);
}

static void end_error_output(const struct mk_gateway_call *c, struct mk_cgi_stderr *s)
{
    bind_error_output(c, s);
    mk_cgi_stderr_end(s);
}

/* ── records ── */

static void add_end(struct fastcgi_response *r, struct mk_str bytes)
{
    size_t room = sizeof(r->end) - r->end_len, n = bytes.len < room ? bytes.len : room;
    memcpy(r->end + r->end_len, bytes.p, n);
    r->end_len = (uint8_t)(r->end_len + n);
}

/* The response has ended. Returns 1, -EBUSY, -ENOPROTOOPT or -EINVAL. */
static int read_end(const struct mk_gateway_call *c, struct fastcgi_response *r)
{
    static const int results[] = {[FCGI_COMPLETE] = 1,
                                  [FCGI_CANT_MPX_CONN] = -EBUSY,
                                  [FCGI_OVERLOADED] = -EBUSY,
                                  [FCGI_UNKNOWN_ROLE] = -ENOPROTOOPT};
    unsigned status = r->end[4];
    end_error_output(c, &r->error_output);
    r->fault = r->end_len < FCGI_END_BYTES       ? "its FCGI_END_REQUEST is too short"
               : status >= MK_COUNT_OF(results)  ? "its FCGI_END_REQUEST has an unknown status"
               : results[status] == -ENOPROTOOPT ? "it does not serve requests of responders (FCGI_UNKNOWN_ROLE)"
                                                 : NULL;
    return r->end_len < FCGI_END_BYTES || status >= MK_COUNT_OF(results) ? -EINVAL : results[status];
}

/* Uses a part of a record. Returns the number of bytes of output, which are at `to` then. */
static size_t take_part(const struct mk_gateway_call *c, struct fastcgi_response *r, const struct fcgi_part *part,
                        char *to)
{
    if (part->type == FCGI_STDERR && part->bytes.len)
        add_error_output(c, &r->error_output, part->bytes);
    if (part->type == FCGI_END_REQUEST && part->bytes.len)
        add_end(r, part->bytes);
    if (part->type != FCGI_STDOUT || !part->bytes.len)
        return 0;
    memmove(to, part->bytes.p, part->bytes.len);
    return part->bytes.len;
}

/* Takes the padding of the last record, if it has come; anything else is in excess. */
static void end_records(const struct mk_gateway_call *c, struct fastcgi_response *r, size_t left, bool *ret_has_excess)
{
    *ret_has_excess = left > r->reader.padding_left;
    r->is_kept = c->conf->keep_alive && left == r->reader.padding_left;
}

int response_unwrap(const struct mk_gateway_call *c, char *bytes, size_t *len, bool *ret_has_excess)
{
    struct fastcgi_response *r = c->state;
    struct mk_str in = mk_str(bytes, *len);
    struct fcgi_part part;
    int result = 0;
    *len = 0;
    while (in.len && result == 0) {
        ssize_t n = fcgi_record_read(&r->reader, in, &part);
        if (n < 0) {
            r->fault = r->reader.fault;
            return -EINVAL;
        }
        in = mk_str(in.p + n, in.len - (size_t)n);
        *len += take_part(c, r, &part, bytes + *len);
        if (part.type == FCGI_END_REQUEST && part.is_last)
            result = read_end(c, r);
    }
    if (result > 0)
        end_records(c, r, in.len, ret_has_excess);
    return result;
}

bool response_keeps_conn(const struct mk_gateway_call *c)
{
    const struct fastcgi_response *r = c->state;
    return r->is_kept;
}

/* ── heads ── */

/* Sets what the head says of the body (RFC 3875 section 6.3). */
static void set_body(struct mk_response_parser *p, const struct mk_cgi_head *head)
{
    bool has_none = p->to == MK_RESPONSE_TO_HEAD || head->status == 204 || head->status == 304;
    p->has_length = head->has_length;
    p->length = p->left = head->length;
    p->body = has_none           ? MK_RESPONSE_BODY_NONE
              : head->has_length ? MK_RESPONSE_BODY_LENGTH
                                 : MK_RESPONSE_BODY_UNTIL_END;
    p->is_done = has_none || (head->has_length && !head->length);
}

int response_parse_head(const struct mk_gateway_call *c, struct mk_response_parser *p, struct mk_field *fields,
                        struct mk_str bytes)
{
    struct fastcgi_response *r = c->state;
    r->limits =
        (struct mk_cgi_head_limits){.bytes_max = p->limits->head_bytes_max, .fields_max = p->limits->fields_max};
    if (!r->head.limits)
        mk_cgi_head_init(&r->head, &r->limits);
    r->head.limits = &r->limits; /* the state may have moved */
    int result = mk_cgi_head_parse(&r->head, fields, bytes);
    if (result < 0)
        r->fault = mk_cgi_head_error(result);
    if (result != 0)
        return result == -EPROTO ? -EINVAL : result;
    p->status = r->head.status;
    p->head_bytes = r->head.head_bytes;
    p->n_fields = r->head.n_fields;
    set_body(p, &r->head);
    return 0;
}

int response_pass_header(const struct mk_gateway_call *c, struct mk_str name, struct mk_str value)
{
    return mk_cgi_pass_header(c->req, name, value, MK_STR(""));
}

/* The connection, or the response in it, has ended too early. */
static const char *describe_end(const struct mk_gateway_call *c, const struct fastcgi_response *r)
{
    if (!c->protocol->unwrap)
        return r->head.head_bytes ? "it has closed the connection before the bytes of its Content-Length"
                                  : "it has closed the connection before the head of its response was complete";
    if (r->end_len < FCGI_END_BYTES)
        return "it has closed the connection before FCGI_END_REQUEST";
    return r->head.head_bytes ? "its response has ended before the bytes of its Content-Length"
                              : "its response has ended before its head was complete";
}

const char *response_describe_fault(const struct mk_gateway_call *c, int err)
{
    const struct fastcgi_response *r = c->state;
    return r->fault ? r->fault : err == -EPIPE ? describe_end(c, r) : NULL;
}

// SPDX-License-Identifier: Apache-2.0
#include "fastcgi.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

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

/* Begins, also for a further connection: the last line of error output on the one before may have no end. */
static void begin_response(const struct mk_gateway_call *c)
{
    struct fastcgi_response *r = c->state;
    end_error_output(c, &r->error_output);
    memset(r, 0, sizeof(*r));
}

/* ── records ── */

int response_unwrap(const struct mk_gateway_call *c, char *bytes, size_t *len, bool *ret_has_excess)
{
    struct fastcgi_response *r = c->state;
    struct mk_gateway_call call = *c;
    size_t left;
    int result = mk_fastcgi_decode(&r->decoder, bytes, len, &left, add_error_output, &call);
    if (result != 0)
        end_error_output(c, &r->error_output);
    if (result > 0) { /* the padding of the last record may not have come; anything else is in excess */
        size_t padding = r->decoder.reader.padding_left;
        *ret_has_excess = left > padding;
        r->is_kept = c->keeps_conn && left == padding;
    }
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

static int pass_header(const struct mk_gateway_call *c, struct mk_str name, struct mk_str value)
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

/* ── requests ── */

enum { NETSTRING_PREFIX_BYTES = 8 }; /* the length of what a head may have, and a colon */

static struct mk_cgi_params get_params(const struct mk_gateway_call *c, const struct mk_gateway_body *body)
{
    const struct fastcgi_script *script = c->arg;
    const struct fastcgi_conf *conf = (const struct fastcgi_conf *)c->conf;
    return (struct mk_cgi_params){.script_name = script->name,
                                  .path_info = script->info,
                                  .script_filename = script->filename,
                                  .document_root = script->root,
                                  .has_length = true,
                                  .length = body->kind == MK_GATEWAY_BODY_LENGTH ? body->bytes : 0,
                                  .pass_authorization = conf->pass_authorization,
                                  .extras = &conf->params};
}

/* Returns what mk_gateway_protocol.write_head() does, for a result of mk_cgi_write_variables(). */
static int get_result(const struct mk_buf *out, int err)
{
    if (err == -EINVAL)
        return err;
    return out->err || err < 0 ? -ENOBUFS : 0;
}

/* ── FastCGI ── */

/* Functions of struct mk_gateway_protocol; mk_gateway_call.arg is a struct fastcgi_script. */
static int write_fastcgi(const struct mk_gateway_call *c, const struct mk_gateway_body *body, struct mk_buf *out)
{
    begin_response(c);
    const struct mk_cgi_params params = get_params(c, body);
    size_t at = mk_fastcgi_begin(out, c->keeps_conn);
    int err = mk_cgi_write_variables(c->req, &params, mk_fastcgi_add_pair, out);
    if (err == 0)
        err = mk_fastcgi_end_params(out, at);
    if (body->kind == MK_GATEWAY_BODY_NONE)
        mk_fastcgi_add_header(out, MK_FASTCGI_STDIN, 0);
    return get_result(out, err);
}

static size_t begin_stdin(char to[MK_GATEWAY_FRAME_BYTES], size_t len)
{
    mk_fastcgi_write_header(to, MK_FASTCGI_STDIN, len);
    return MK_FASTCGI_HEADER_BYTES;
}

const struct mk_gateway_frames request_stdin = {
    .piece_max = MK_FASTCGI_CONTENT_MAX,
    .begin = begin_stdin,
    .piece_end = MK_STR_INIT(""),
    .body_end = MK_STR_INIT("\1\5\0\1\0\0\0\0"), /* FCGI_STDIN without content */
};

/* ── SCGI ── */

static void add_text(struct mk_buf *out, struct mk_str text)
{
    mk_buf_adds(out, text);
    mk_buf_addc(out, '\0');
}

/* A NUL would end the value: there is none in any that the server accepts. CONTENT_LENGTH stands before the others. */
static int add_netstring_pair(struct mk_str name, struct mk_str value, void *ctx)
{
    if (value.len && memchr(value.p, '\0', value.len))
        return -EINVAL;
    if (mk_str_eq(name, MK_STR("CONTENT_LENGTH")) || mk_str_eq(name, MK_STR("SCGI")))
        return 0;
    add_text(ctx, name);
    add_text(ctx, value);
    return 0;
}

/* Moves the netstring after its length. */
static void end_netstring(struct mk_buf *out)
{
    char prefix[NETSTRING_PREFIX_BYTES + 1];
    size_t len = out->len - NETSTRING_PREFIX_BYTES;
    int n = snprintf(prefix, sizeof(prefix), "%zu:", len);
    memmove(out->data + n, out->data + NETSTRING_PREFIX_BYTES, len);
    memcpy(out->data, prefix, (size_t)n);
    out->len = len + (size_t)n;
    mk_buf_addc(out, ',');
}

static int write_scgi(const struct mk_gateway_call *c, const struct mk_gateway_body *body, struct mk_buf *out)
{
    begin_response(c);
    const struct mk_cgi_params params = get_params(c, body);
    char length[24];
    int n = snprintf(length, sizeof(length), "%" PRIu64, params.length);
    mk_buf_add(out, "        ", NETSTRING_PREFIX_BYTES);
    add_text(out, MK_STR("CONTENT_LENGTH"));
    add_text(out, mk_str(length, (size_t)n));
    add_text(out, MK_STR("SCGI"));
    add_text(out, MK_STR("1"));
    int err = mk_cgi_write_variables(c->req, &params, add_netstring_pair, out);
    if (err == 0 && !out->err)
        end_netstring(out);
    return get_result(out, err);
}

/* ── the tables of the two protocols ── */

static const char *find_advice(bool is_dial, int err)
{
    static const struct {
        bool is_dial;
        int err;
        const char *text;
    } rows[] = {
        {true, ENOENT,
         "start the server that makes this socket, or correct To; if it is that of Spawn, its "
         "folder was removed: restart this server"},
        {true, ECONNREFUSED, "start the server that listens there, or correct To"},
        {true, EACCES, "let the user of this server write to the socket (listen.owner and listen.group of php-fpm)"},
        {true, ETIMEDOUT,
         "all of its processes may be busy and its queue full: see pm.max_children and listen.backlog "
         "of php-fpm, or set MaxConnections and Queue"},
        {false, ETIMEDOUT,
         "see what it waits for (request_slowlog_timeout and pm.max_children of php-fpm), or raise "
         "ResponseTimeout or ReadTimeout"},
    };
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (rows[i].is_dial == is_dial && rows[i].err == -err)
            return rows[i].text;
    return NULL;
}

const struct mk_gateway_protocol fastcgi_protocol = {
    .name = "fastcgi",
    .state_bytes = sizeof(struct fastcgi_response),
    .needs_length = true,
    .length_frames = &request_stdin,
    .chunked_frames = &request_stdin,
    .abort = MK_STR_INIT("\1\2\0\1\0\0\0\0"), /* FCGI_ABORT_REQUEST */
    .write_head = write_fastcgi,
    .unwrap = response_unwrap,
    .keeps_conn = response_keeps_conn,
    .parse_head = response_parse_head,
    .pass_header = pass_header,
    .describe_fault = response_describe_fault,
    .advise = find_advice,
};

const struct mk_gateway_protocol scgi_protocol = {
    .name = "scgi",
    .state_bytes = sizeof(struct fastcgi_response),
    .needs_length = true,
    .write_head = write_scgi,
    .parse_head = response_parse_head,
    .pass_header = pass_header,
    .describe_fault = response_describe_fault,
    .advise = find_advice,
};

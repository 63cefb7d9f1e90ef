// SPDX-License-Identifier: Apache-2.0
/*
 * Writes requests (request.h).
 */
#include "request.h"

#include <monkey/kit/fastcgi.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

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

int request_write_fastcgi(const struct mk_gateway_call *c, const struct mk_gateway_body *body, struct mk_buf *out)
{
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

int request_write_scgi(const struct mk_gateway_call *c, const struct mk_gateway_body *body, struct mk_buf *out)
{
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

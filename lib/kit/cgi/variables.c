// SPDX-License-Identifier: Apache-2.0
/*
 * The variables of a request for a script (<monkey/kit/cgi.h>): a table of functions, the headers, and those that the
 * configuration sets.
 */
#include "cgi.h"

#include <monkey/kit/cgi.h>
#include <monkey/transport.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

/* ── variables that the configuration sets ── */

static bool is_name(struct mk_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = mk_lower(s.p[i]);
        if (!(c >= 'a' && c <= 'z') && c != '_' && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return s.len > 0;
}

/* `all` may be NULL. */
static bool has_name(const struct mk_cgi_extras *all, struct mk_str name)
{
    const struct mk_cgi_extra *e = all ? all->first : NULL;
    while (e && !mk_str_eq(e->name, name))
        e = e->next;
    return e != NULL;
}

int mk_cgi_parse_extra(const struct mk_conf_value *value, void *extras, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_cgi_extras *all = extras;
    if (value->n < 1 || !is_name(value->words[0]))
        return mk_conf_fail(error, "it takes a name, which has letters, digits and underscores, and a value");
    struct mk_str name = value->words[0];
    if (has_name(all, name))
        return mk_conf_fail(error, "a line before this one has the same name");
    struct mk_cgi_extra *extra = mk_arena_zalloc(arena, sizeof(*extra));
    if (!extra)
        return -ENOMEM;
    extra->name = mk_arena_dup(arena, name);
    if (!extra->name.p)
        return -ENOMEM;
    if (!all->last)
        all->last = &all->first;
    *all->last = extra;
    all->last = &extra->next;
    struct mk_str text = mk_str_trim(mk_str(value->text.p + name.len, value->text.len - name.len));
    return mk_text_parse(text, &extra->value, arena, error);
}

/* ── the variables of a request ── */

enum { TEXT_BYTES = 64, NAME_BYTES_MAX = 200, EXTRA_BYTES_MAX = 8192 };

/* One call of mk_cgi_write_variables(). */
struct writer {
    struct mk_request *req;
    struct mk_cgi_params params;
    mk_cgi_variable_fn fn;
    void *ctx;
    struct mk_address local, client;
    struct mk_str protocol, scheme, https, user;
    struct mk_tls_info tls; /* zeros: none */
    int err;
    char text[TEXT_BYTES]; /* the value that is being written, if it is not kept elsewhere */
};

/* ── values ── */

static struct mk_str print_number(struct writer *w, uint64_t number)
{
    int n = snprintf(w->text, sizeof(w->text), "%" PRIu64, number);
    return mk_str(w->text, (size_t)n);
}

static struct mk_str print_address(struct writer *w, const struct mk_address *address)
{
    struct mk_buf out;
    mk_buf_init_fixed(&out, w->text, sizeof(w->text));
    if (address->family == AF_UNSPEC)
        return MK_STR_NONE;
    mk_address_print(address, &out);
    return mk_buf_str(&out);
}

static struct mk_str mark_empty_absent(struct mk_str s)
{
    return s.len ? s : MK_STR_NONE;
}

/* ── the server ── */

/* Returns the authority that was asked for, with its port: of the absolute form (RFC 9112 section 3.2.2), else Host. */
static struct mk_str get_authority(struct writer *w)
{
    struct mk_str target = mk_request_target(w->req), host = mk_request_header(w->req, MK_HEADER_HOST);
    const char *end = target.len && target.p[0] != '/' ? memmem(target.p, target.len, "://", 3) : NULL;
    if (!end)
        return mark_empty_absent(host.len ? host : mk_request_host(w->req));
    return mk_str_until(mk_str_after(target, (size_t)(end + 3 - target.p)), "/?");
}

static struct mk_str get_server_name(struct writer *w)
{
    struct mk_str host = mk_request_host(w->req);
    return host.len ? host : print_address(w, &w->local);
}

static struct mk_str get_server_addr(struct writer *w)
{
    return print_address(w, &w->local);
}

/* Reads the port after a host; 0: there is none. */
static uint64_t read_port(struct mk_str authority)
{
    uint64_t port = 0;
    const char *colon = authority.len ? memrchr(authority.p, ':', authority.len) : NULL;
    if (colon)
        mk_str_u64(mk_str(colon + 1, authority.len - (size_t)(colon + 1 - authority.p)), 65535, &port);
    return port;
}

/* The port of this server; behind a proxy, or on a Unix socket, the one that the client has used. */
static struct mk_str get_server_port(struct writer *w)
{
    uint64_t port = w->local.port;
    struct mk_address peer = mk_request_peer(w->req);
    if (!port || mk_generation_trusts(mk_worker_generation(mk_request_worker(w->req)), &peer))
        port = read_port(get_authority(w));
    return print_number(w, port ? port : w->https.p ? 443 : 80);
}

/* ── the request ── */

static struct mk_str get_method(struct writer *w)
{
    return w->params.is_redirected ? MK_STR("GET") : mk_request_method_name(w->req);
}

/* Returns path and query as the client sent them; of the absolute form without what stands before the path. */
static struct mk_str get_uri(struct writer *w)
{
    struct mk_str target = mk_request_target(w->req);
    const char *end = target.len && target.p[0] != '/' ? memmem(target.p, target.len, "://", 3) : NULL;
    if (w->params.is_redirected)
        return w->params.uri;
    if (!end)
        return target;
    const char *slash = memchr(end + 3, '/', target.len - (size_t)(end + 3 - target.p));
    return slash ? mk_str(slash, target.len - (size_t)(slash - target.p)) : MK_STR("/");
}

static struct mk_str get_query(struct writer *w)
{
    struct mk_str query = w->params.is_redirected ? w->params.query : mk_request_query(w->req);
    return query.p ? query : MK_STR("");
}

static struct mk_str get_length(struct writer *w)
{
    bool has_body = w->params.length || mk_request_header(w->req, MK_HEADER_CONTENT_LENGTH).p;
    if (w->params.is_redirected || !w->params.has_length || !has_body)
        return MK_STR_NONE;
    return print_number(w, w->params.length);
}

static struct mk_str get_type(struct writer *w)
{
    return w->params.is_redirected ? MK_STR_NONE : mk_request_header(w->req, MK_HEADER_CONTENT_TYPE);
}

/* ── the client ── */

static struct mk_str get_remote_addr(struct writer *w)
{
    return print_address(w, &w->client);
}

static struct mk_str get_remote_port(struct writer *w)
{
    return w->client.port ? print_number(w, w->client.port) : MK_STR_NONE;
}

/* Returns the scheme of the login, if there was one. */
static struct mk_str get_auth_type(struct writer *w)
{
    struct mk_str value = mk_request_header(w->req, MK_HEADER_AUTHORIZATION);
    const char *blank = value.len ? memchr(value.p, ' ', value.len) : NULL;
    return mk_request_user(w->req).p && blank ? mk_str(value.p, (size_t)(blank - value.p)) : MK_STR_NONE;
}

/* ── the script ── */

/* Returns both together, in the arena of the request. */
static struct mk_str join_texts(struct writer *w, struct mk_str a, struct mk_str b)
{
    char *to = mk_arena_alloc(mk_request_arena(w->req), a.len + b.len + 1);
    if (!to) {
        w->err = -ENOMEM;
        return MK_STR_NONE;
    }
    memcpy(to, a.p, a.len);
    memcpy(to + a.len, b.p, b.len);
    return mk_str(to, a.len + b.len);
}

static struct mk_str get_document_uri(struct writer *w)
{
    const struct mk_cgi_params *p = &w->params;
    return p->path_info.len ? join_texts(w, p->script_name, p->path_info) : p->script_name;
}

static struct mk_str get_path_translated(struct writer *w)
{
    const struct mk_cgi_params *p = &w->params;
    return p->path_info.len && p->document_root.p ? join_texts(w, p->document_root, p->path_info) : MK_STR_NONE;
}

/* ── TLS ── */

static struct mk_str get_tls_verify(struct writer *w)
{
    if (!w->tls.version.p)
        return MK_STR_NONE;
    return w->tls.client.len ? MK_STR("SUCCESS") : MK_STR("NONE");
}

/* ── writing ── */

/* A text, a function that returns one, or the place of one in struct writer. `.p` NULL: it is left out. */
struct row {
    struct mk_str name, text;
    struct mk_str (*get)(struct writer *w);
    size_t place;
    bool is_optional; /* an empty one is left out */
};

#define VALUE(member) .place = offsetof(struct writer, member)

static const struct row rows[] = {
    {MK_STR_INIT("GATEWAY_INTERFACE"), .text = MK_STR_INIT("CGI/1.1")},
    {MK_STR_INIT("SERVER_SOFTWARE"), .text = MK_STR_INIT("monkey")},
    {MK_STR_INIT("SERVER_NAME"), .get = get_server_name},
    {MK_STR_INIT("SERVER_ADDR"), .get = get_server_addr},
    {MK_STR_INIT("SERVER_PORT"), .get = get_server_port},
    {MK_STR_INIT("SERVER_PROTOCOL"), VALUE(protocol)},
    {MK_STR_INIT("REQUEST_SCHEME"), VALUE(scheme)},
    {MK_STR_INIT("HTTPS"), VALUE(https)},
    {MK_STR_INIT("REQUEST_METHOD"), .get = get_method},
    {MK_STR_INIT("REQUEST_URI"), .get = get_uri},
    {MK_STR_INIT("QUERY_STRING"), .get = get_query},
    {MK_STR_INIT("CONTENT_LENGTH"), .get = get_length},
    {MK_STR_INIT("CONTENT_TYPE"), .get = get_type},
    {MK_STR_INIT("REMOTE_ADDR"), .get = get_remote_addr},
    {MK_STR_INIT("REMOTE_PORT"), .get = get_remote_port},
    {MK_STR_INIT("REMOTE_USER"), VALUE(user)},
    {MK_STR_INIT("AUTH_TYPE"), .get = get_auth_type},
    {MK_STR_INIT("SCRIPT_NAME"), VALUE(params.script_name)},
    {MK_STR_INIT("SCRIPT_FILENAME"), VALUE(params.script_filename)},
    {MK_STR_INIT("PATH_INFO"), VALUE(params.path_info), .is_optional = true},
    {MK_STR_INIT("PATH_TRANSLATED"), .get = get_path_translated},
    {MK_STR_INIT("DOCUMENT_ROOT"), VALUE(params.document_root)},
    {MK_STR_INIT("DOCUMENT_URI"), .get = get_document_uri},
    {MK_STR_INIT("REDIRECT_STATUS"), .text = MK_STR_INIT("200")},
    {MK_STR_INIT("SSL_PROTOCOL"), VALUE(tls.version)},
    {MK_STR_INIT("SSL_CIPHER"), VALUE(tls.cipher)},
    {MK_STR_INIT("SSL_TLS_SNI"), VALUE(tls.server_name), .is_optional = true},
    {MK_STR_INIT("SSL_CLIENT_S_DN"), VALUE(tls.client), .is_optional = true},
    {MK_STR_INIT("SSL_CLIENT_VERIFY"), .get = get_tls_verify},
    {MK_STR_INIT("HTTP_HOST"), .get = get_authority},
};

static struct mk_str get_value(struct writer *w, const struct row *row)
{
    if (row->get)
        return row->get(w);
    const struct mk_str *value = row->place ? (const void *)((const char *)w + row->place) : &row->text;
    return value->len || !row->is_optional ? *value : MK_STR_NONE;
}

static void write_variable(struct writer *w, struct mk_str name, struct mk_str value)
{
    if (value.p && w->err >= 0 && !has_name(w->params.extras, name))
        w->err = w->fn(name, value, w->ctx);
}

/* Tells whether a line before the n-th one has the same name, and so its value, too. */
static bool is_repeated(const struct mk_request *req, unsigned n, struct mk_str name)
{
    struct mk_str other, value;
    for (unsigned i = 0; i < n && mk_request_header_at(req, i, &other, &value); i++)
        if (mk_str_ieq(other, name))
            return true;
    return false;
}

size_t mk_cgi_header_variable(struct mk_str header, char *to, size_t size)
{
    static const struct mk_str prefix = MK_STR_INIT("HTTP_");
    assert(size >= prefix.len);
    size_t room = size - prefix.len, n = header.len < room ? header.len : room;
    memcpy(to, prefix.p, prefix.len);
    for (size_t i = 0; i < n; i++) {
        char c = header.p[i];
        to[prefix.len + i] = c == '-' ? '_' : c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    return prefix.len + n;
}

/* One whose name is too long is left out. */
static void write_header(struct writer *w, struct mk_str name, struct mk_str value)
{
    char variable[NAME_BYTES_MAX];
    size_t n = mk_cgi_header_variable(name, variable, sizeof(variable));
    if (n == sizeof("HTTP_") - 1 + name.len)
        write_variable(w, mk_str(variable, n), value);
}

static void write_headers(struct writer *w)
{
    struct mk_str name, value, connection = mk_request_header(w->req, MK_HEADER_CONNECTION);
    for (unsigned i = 0; w->err >= 0 && mk_request_header_at(w->req, i, &name, &value); i++)
        if (mk__cgi_header_reaches_script(name, connection, w->params.pass_authorization) &&
            mk_request_passes_header(w->req, name) && !is_repeated(w->req, i, name))
            write_header(w, name, mk_request_header_by_name(w->req, name));
}

/* Writes those of the configuration. One without a value, or with one that has control bytes, is left out. */
static void write_extras(struct writer *w)
{
    struct mk_buf out;
    mk_buf_init(&out, EXTRA_BYTES_MAX);
    for (const struct mk_cgi_extra *e = w->params.extras->first; e && w->err >= 0; e = e->next) {
        out.len = 0;
        int err = mk_text_write(e->value, w->req, &out);
        if (out.err)
            w->err = -ENOMEM;
        else if (err == 0 && out.len)
            w->err = w->fn(e->name, mk_buf_str(&out), w->ctx);
    }
    mk_buf_release(&out);
}

int mk_cgi_write_variables(struct mk_request *req, const struct mk_cgi_params *params, mk_cgi_variable_fn fn, void *ctx)
{
    struct writer w = {.req = req,
                       .params = *params,
                       .fn = fn,
                       .ctx = ctx,
                       .local = mk_connection_local(mk_request_connection(req)),
                       .client = mk_request_client(req),
                       .protocol = mk_request_protocol(req),
                       .scheme = mk_request_scheme(req),
                       .user = mk_request_user(req)};
    w.https = mk_str_eq(w.scheme, MK_STR("https")) ? MK_STR("on") : MK_STR_NONE;
    if (mk_request_tls_info(req, &w.tls) < 0)
        w.tls = (struct mk_tls_info){0};
    for (size_t i = 0; i < MK_COUNT_OF(rows) && w.err >= 0; i++)
        write_variable(&w, rows[i].name, get_value(&w, &rows[i]));
    write_headers(&w);
    if (params->extras && w.err >= 0)
        write_extras(&w);
    return w.err < 0 ? w.err : 0;
}

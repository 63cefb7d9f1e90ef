// SPDX-License-Identifier: Apache-2.0
#include "rules.h"

#include <monkey/base/escape.h>
#include <monkey/kit/http_client.h>
#include <monkey/kit/target.h>
#include <monkey/kit/via.h>
#include <monkey/program.h>
#include <monkey/request.h>

#include <errno.h>

/* ── To ── */

/* Sets the path, which a request line must be able to have; an empty one is that of the root. */
static int set_path(struct mk_target *t, struct mk_str path, struct mk_buf *error)
{
    t->path = path.len ? path : MK_STR("/");
    if (t->path.p[0] != '/' || !mk_str_is_visible(path, "#\"<>\\^`{|}"))
        return mk_conf_fail(error, "behind the host may stand a path, percent-encoded, perhaps with a query");
    return 0;
}

int forward_parse_to(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_target *t = field;
    struct mk_str text = mk_arena_dup(arena, value->text);
    if (!text.p)
        return -ENOMEM;
    size_t n = value->n ? value->words[0].len : 0;
    struct mk_str url = mk_arena_dup(arena, mk_str(text.p, n)), rest = mk_str_trim(mk_str_after(text, n));
    int err = url.p ? mk_target_parse_url(t, url, "server", arena, error) : -ENOMEM;
    t->text = text;
    if (err == 0 && rest.len && (value->n > 2 || t->dial->port))
        err = MK_DECLINED;
    if (err > 0)
        return mk_conf_fail(error, "the server is http://HOST:PORT/PATH, https://HOST:PORT/PATH or unix:/SOCKET /PATH");
    if (err == 0)
        err = set_path(t, t->dial->port ? t->path : rest, error);
    if (err < 0)
        t->dial = NULL;
    return err;
}

/* ── names of headers ── */

bool forward_names_have(const struct forward_names *names, struct mk_str name)
{
    uint32_t i = 0;
    while (i < names->n && !mk_header_same_name(names->items[i], name))
        i++;
    return i < names->n;
}

/* Reads a name that an answer may set in requests. Returns 0, -ENOMEM or -EINVAL. */
static int read_name(struct mk_str *ret, struct mk_str word, struct mk_arena *arena, struct mk_buf *error)
{
    if (!mk_header_is_plain(word))
        return mk_conf_fail(error, "the name of a header has letters, digits and dashes only");
    if (mk_request_header_reserved(word)) {
        mk_buf_addf(error, "the header \"%.*s\" is about the connection, or decides where a request ends or goes to",
                    MK_STR_ARG(word));
        return -EINVAL;
    }
    *ret = mk_arena_dup(arena, word);
    return ret->p ? 0 : -ENOMEM;
}

int forward_parse_name(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    return value->n == 1 ? read_name(field, value->words[0], arena, error)
                         : mk_conf_fail(error, "it takes the name of one header");
}

int forward_parse_names(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct forward_names *names = field;
    for (uint32_t i = 0; i < value->n; i++) {
        if (names->n == FORWARD_HEADERS_MAX)
            return mk_conf_fail(error, "there are more than 16 headers");
        if (forward_names_have(names, value->words[i]))
            return mk_conf_fail(error, "two of the headers have the same name");
        int err = read_name(&names->items[names->n], value->words[i], arena, error);
        if (err < 0)
            return err;
        names->n++;
    }
    return value->n ? 0 : mk_conf_fail(error, "the names of headers are missing");
}

static int open_tls(struct forward *f, struct mk_host *host, const struct auth_conf *conf)
{
    const struct forward_conf *c = &conf->forward;
    size_t to = offsetof(struct auth_conf, forward.to);
    const struct mk_target_tls_keys keys = {
        .name = to,
        .server_name = c->tls_name.len ? offsetof(struct auth_conf, forward.tls_name) : to,
        .ca = offsetof(struct auth_conf, forward.tls_ca),
    };
    const struct mk_transport_client_conf settings = {.server_name = c->tls_name.len ? c->tls_name : c->to.dial->host,
                                                      .ca_file = c->tls_ca,
                                                      .skip_verify = !c->tls_verify};
    return mk_target_open_tls(host, conf, &keys, &settings, &f->transport, &f->settings);
}

int forward_open(struct forward *f, struct mk_host *host, const struct auth_conf *conf,
                 struct mk_stats_registry *registry)
{
    mk_target_check(host, conf, offsetof(struct auth_conf, forward.to), 0, conf->forward.to.dial);
    *f = (struct forward){.conf = &conf->forward,
                          .transport = &mk_transport_plain,
                          .registry = registry,
                          .via_mark = mk_via_seed(f)};
    if (!f->conf->to.dial)
        return 0; /* reported */
    mk_target_find_group(&f->conf->to, host, conf, offsetof(struct auth_conf, forward.to), &f->upstreams, &f->group);
    int err = mk_target_stats_open(&f->stats, registry, &f->conf->to, f->upstreams, f->group);
    return err == 0 && f->conf->to.is_tls ? open_tls(f, host, conf) : err;
}

void forward_close(struct forward *f)
{
    if (f->transport && f->transport->client_close)
        f->transport->client_close(f->settings);
    f->settings = NULL;
    mk_target_stats_close(&f->stats, f->registry);
}

/* ── lines ── */

static void write_field(struct mk_buf *out, struct mk_str name, struct mk_str value)
{
    mk_buf_adds(out, name);
    mk_buf_adds(out, MK_STR(": "));
    mk_buf_adds(out, value);
    mk_buf_adds(out, MK_STR("\r\n"));
}

static bool starts_with(struct mk_str name, struct mk_str prefix)
{
    return name.len >= prefix.len && mk_header_same_name(mk_str(name.p, prefix.len), prefix);
}

/*
 * Tells whether a header of the client is not passed on: of its connection, of the body, which stays here, of
 * conditions and codings, which are about another response, and what this server says itself.
 */
static bool is_dropped(struct mk_str name)
{
    static const struct mk_str names[] = {
        MK_STR_INIT("range"),
        MK_STR_INIT("if-range"),
        MK_STR_INIT("if-match"),
        MK_STR_INIT("if-none-match"),
        MK_STR_INIT("if-modified-since"),
        MK_STR_INIT("if-unmodified-since"),
        MK_STR_INIT("via"),
        MK_STR_INIT("proxy"),
        MK_STR_INIT("proxy-authorization"),
        MK_STR_INIT("forwarded"),
        MK_STR_INIT("x-real-ip"),
        MK_STR_INIT("x-request-id"),
        MK_STR_INIT("x-rewrite-url"),
        MK_STR_INIT("accept-encoding"),
        MK_STR_INIT("content-encoding"),
    };
    if (mk_request_header_reserved(name) || starts_with(name, MK_STR("x-forwarded-")) ||
        starts_with(name, MK_STR("x-original-")))
        return true;
    size_t i = 0;
    while (i < MK_COUNT_OF(names) && !mk_header_same_name(names[i], name))
        i++;
    return i < MK_COUNT_OF(names);
}

/* ── the subject ── */

/* Writes the other path that is decided about, of a file or an internal redirect, and its query. */
static void write_redirected_uri(struct mk_buf *out, struct mk_request *req)
{
    struct mk_str query = mk_request_query(req);
    mk_path_encode_kept(out, mk_request_path(req), mk_request_has_encoded_slash(req));
    if (query.p)
        mk_buf_addc(out, '?');
    mk_buf_adds(out, query);
}

/* Writes the URI as the client has sent it, before any rewrite, unless another path is decided about. */
static void write_uri(struct mk_buf *out, struct mk_request *req, struct mk_str path)
{
    struct mk_str target = mk_request_target(req);
    if (path.len) {
        mk_path_encode(out, path);
        return;
    }
    if (mk_request_decided_path(req).p) {
        write_redirected_uri(out, req);
        return;
    }
    mk_path_encode_kept(out, mk_request_original_path(req), mk_request_has_encoded_slash(req));
    const char *query = target.len ? memchr(target.p, '?', target.len) : NULL;
    if (query)
        mk_buf_adds(out, mk_str(query, (size_t)(target.p + target.len - query)));
}

/* Returns the value of a header if the peer is trusted. */
static struct mk_str get_trusted(struct mk_request *req, bool is_trusted, struct mk_str name)
{
    return is_trusted ? mk_request_header_by_name(req, name) : MK_STR_NONE;
}

/* Writes X-Forwarded-For: the list of a trusted peer, and the peer after it; and the client that this server knows. */
static void write_addresses(struct mk_buf *out, struct mk_request *req, const struct mk_address *peer, bool is_trusted)
{
    char text[MK_ADDRESS_IP_BYTES];
    struct mk_address client = mk_request_client(req);
    struct mk_str former = get_trusted(req, is_trusted, MK_STR("X-Forwarded-For")),
                  last = mk_address_write_ip(text, peer);
    mk_buf_adds(out, MK_STR("X-Forwarded-For: "));
    mk_buf_adds(out, former);
    mk_buf_adds(out, former.len ? MK_STR(", ") : MK_STR(""));
    mk_buf_adds(out, last.len ? last : MK_STR("unknown"));
    mk_buf_adds(out, MK_STR("\r\n"));
    struct mk_str real = mk_address_write_ip(text, &client);
    if (real.len)
        write_field(out, MK_STR("X-Real-IP"), real);
}

static struct mk_str get_host(struct mk_request *req, bool is_trusted)
{
    struct mk_str former = get_trusted(req, is_trusted, MK_STR("X-Forwarded-Host"));
    struct mk_str host = mk_request_header(req, MK_HEADER_HOST), target = mk_request_target(req);
    bool has_authority = target.len && target.p[0] != '/' && target.p[0] != '*'; /* which counts, and not Host */
    return former.len ? former : host.len && !has_authority ? host : mk_request_host(req);
}

void forward_write_subject(struct mk_buf *out, struct mk_request *req, struct mk_str path)
{
    struct mk_address peer = mk_connection_client(mk_request_connection(req));
    bool is_trusted = mk_generation_trusts(mk_worker_generation(mk_request_worker(req)), &peer);
    struct mk_str method = path.len ? MK_STR("GET") : mk_request_method_name(req);
    struct mk_str scheme = mk_request_scheme(req), host = get_host(req, is_trusted);
    write_field(out, MK_STR("X-Forwarded-Method"), method);
    write_field(out, MK_STR("X-Forwarded-Proto"), scheme);
    write_field(out, MK_STR("X-Forwarded-Host"), host);
    mk_buf_adds(out, MK_STR("X-Forwarded-Uri: "));
    write_uri(out, req, path);
    mk_buf_adds(out, MK_STR("\r\n"));
    write_addresses(out, req, &peer, is_trusted);
    write_field(out, MK_STR("X-Original-Method"), method);
    mk_buf_addf(out, "X-Original-URL: %.*s://%.*s", MK_STR_ARG(scheme), MK_STR_ARG(host));
    write_uri(out, req, path);
    mk_buf_adds(out, MK_STR("\r\n"));
}

/* ── the headers of the client ── */

static bool is_replaced(const struct forward_replaced *replaced, struct mk_str name)
{
    while (replaced && !forward_names_have(replaced->names, name))
        replaced = replaced->next;
    return replaced;
}

/* Walks through the lines that the client has sent, also those that were replaced since. */
struct client_lines {
    const struct mk_request *req;
    const struct forward_replaced *replaced, *kept; /* all; and that of the next line, after the request's */
    unsigned i, n_kept;
};

static struct client_lines begin_lines(const struct mk_request *req)
{
    const struct auth_exchange *x = mk_request_state(req, &mk_plugin_auth);
    const struct forward_replaced *replaced = x ? x->replaced : NULL;
    return (struct client_lines){.req = req, .replaced = replaced, .kept = replaced};
}

static bool next_line(struct client_lines *l, struct mk_str *name, struct mk_str *value)
{
    while (mk_request_header_at(l->req, l->i, name, value)) {
        l->i++;
        if (!is_replaced(l->replaced, *name))
            return true;
    }
    while (l->kept && l->n_kept == l->kept->n) {
        l->kept = l->kept->next;
        l->n_kept = 0;
    }
    if (!l->kept)
        return false;
    *name = l->kept->lines[l->n_kept].name;
    *value = l->kept->lines[l->n_kept++].value;
    return true;
}

/* Copies the lines of these names; `to` NULL: only counts them. Returns their number, or -ENOMEM. */
static int copy_lines(struct mk_header_field *to, struct mk_request *req, const struct forward_replaced *replaced,
                      const struct forward_names *names)
{
    struct mk_str name, value;
    int n = 0;
    for (unsigned i = 0; mk_request_header_at(req, i, &name, &value); i++) {
        if (!forward_names_have(names, name) || is_replaced(replaced, name))
            continue;
        if (to) {
            to[n].name = mk_arena_dup(mk_request_arena(req), name);
            to[n].value = mk_arena_dup(mk_request_arena(req), value);
        }
        if (to && (!to[n].name.p || !to[n].value.p))
            return -ENOMEM;
        n++;
    }
    return n;
}

int forward_keep_lines(struct mk_request *req, const struct forward_names *names)
{
    struct auth_exchange *x = rules_get_exchange(req);
    if (!x)
        return -ENOMEM;
    unsigned n = (unsigned)copy_lines(NULL, req, x->replaced, names);
    struct forward_replaced *r = mk_arena_alloc(mk_request_arena(req), sizeof(*r) + n * sizeof(r->lines[0]));
    if (!r || copy_lines(r->lines, req, x->replaced, names) < 0)
        return -ENOMEM;
    r->next = x->replaced;
    r->names = names;
    r->n = n;
    x->replaced = r;
    return 0;
}

/* ── the head ── */

/* A server that repeats in its answer what it was asked must not repeat what a client says of its user. */
static bool is_forged(const struct forward_conf *conf, struct mk_str name)
{
    return forward_names_have(&conf->copy, name) && !forward_names_have(&conf->cache_by, name);
}

bool forward_binds_connection(struct mk_request *req)
{
    struct client_lines lines = begin_lines(req);
    struct mk_str name, value;
    bool binds = false;
    while (next_line(&lines, &name, &value))
        binds |= mk_header_same_name(name, MK_STR("authorization")) && mk_http_login_binds_connection(value);
    return binds;
}

void forward_write_head(struct mk_buf *out, struct mk_request *req, const struct forward_conf *conf,
                        struct mk_str subject, uint64_t via_mark)
{
    struct mk_str name, value, connection = mk_request_header(req, MK_HEADER_CONNECTION), id = mk_request_id(req);
    struct client_lines lines = begin_lines(req);
    mk_buf_addf(out, "GET %.*s HTTP/1.1\r\n", MK_STR_ARG(conf->to.path));
    write_field(out, MK_STR("Host"), conf->to.authority);
    while (next_line(&lines, &name, &value))
        if (!is_dropped(name) && !is_forged(conf, name) && !(connection.len && mk_str_list_has(connection, name)))
            write_field(out, name, value);
    mk_buf_adds(out, subject);
    mk_via_write(out, req, via_mark);
    if (id.len)
        write_field(out, MK_STR("X-Request-Id"), id);
    if (forward_binds_connection(req))
        write_field(out, MK_STR("Connection"), MK_STR("close"));
    mk_buf_adds(out, MK_STR("\r\n"));
}

/* ── what decides ── */

void forward_write_deciding(struct mk_buf *out, struct mk_request *req, const struct forward_conf *conf)
{
    struct client_lines lines = begin_lines(req);
    struct mk_str name, value;
    while (next_line(&lines, &name, &value))
        if (forward_names_have(&conf->cache_by, name))
            write_field(out, name, value);
}

static bool names_header(const struct forward_conf *conf, struct mk_str list)
{
    struct mk_str name;
    while (list.len && mk_str_next(&list, &name))
        if (forward_names_have(&conf->copy, name) || forward_names_have(&conf->cache_by, name))
            return true;
    return false;
}

bool forward_is_connection_valid(struct mk_request *req, const struct forward_conf *conf)
{
    return !names_header(conf, mk_request_header(req, MK_HEADER_CONNECTION)) &&
           !names_header(conf, mk_request_header_by_name(req, MK_STR("Trailer")));
}

/* What a client gets of a refusal; without a body of the server's only the rows before CONTENT. */
static const struct mk_str passed[] = {
    MK_STR_INIT("WWW-Authenticate"), MK_STR_INIT("Set-Cookie"),       MK_STR_INIT("Location"),
    MK_STR_INIT("Retry-After"),      MK_STR_INIT("Cache-Control"),    MK_STR_INIT("Content-Type"),
    MK_STR_INIT("Content-Encoding"), MK_STR_INIT("Content-Language"),
};

enum { COOKIE = 1, CONTENT = 5 };

enum forward_decision forward_decide(unsigned status)
{
    if (status >= 200 && status < 300)
        return FORWARD_PASS;
    bool is_redirect = status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
    return is_redirect || (status >= 400 && status < 500) ? FORWARD_REFUSE : FORWARD_INVALID;
}

static struct mk_str get_value(const struct mk_http_response *r, unsigned n)
{
    return mk_span_str(r->head.p, r->fields[n].value);
}

/* Returns the next line of a name from `n` on; the number of lines if there is none. */
static unsigned find_line(const struct mk_http_response *r, unsigned n, struct mk_str name)
{
    while (n < r->n_fields && !mk_str_ieq(mk_span_str(r->head.p, r->fields[n].name), name))
        n++;
    return n;
}

/* ── into the request ── */

/* Joins the lines from `first` on. Returns 0 or -ENOMEM. */
static int join_lines(struct mk_str *ret, const struct mk_http_response *r, unsigned first, struct mk_str name,
                      struct mk_arena *arena)
{
    size_t size = 0;
    for (unsigned n = first; n < r->n_fields; n = find_line(r, n + 1, name))
        size += get_value(r, n).len + 2;
    char *storage = mk_arena_alloc(arena, size);
    struct mk_buf text;
    if (!storage)
        return -ENOMEM;
    mk_buf_init_fixed(&text, storage, size);
    for (unsigned n = first; n < r->n_fields; n = find_line(r, n + 1, name)) {
        mk_buf_adds(&text, n > first ? MK_STR(", ") : MK_STR(""));
        mk_buf_adds(&text, get_value(r, n));
    }
    *ret = mk_buf_str(&text);
    return 0;
}

static int read_value(struct mk_str *ret, const struct mk_http_response *r, struct mk_str name, struct mk_arena *arena)
{
    unsigned first = find_line(r, 0, name);
    *ret = first < r->n_fields ? get_value(r, first) : MK_STR_NONE;
    return find_line(r, first + 1, name) < r->n_fields ? join_lines(ret, r, first, name, arena) : 0;
}

int forward_read_answer(struct forward_answer *ret, const struct forward_conf *conf,
                        const struct mk_http_response *response, struct mk_arena *arena)
{
    *ret = (struct forward_answer){.n = conf->copy.n};
    int err = conf->user_header.len ? read_value(&ret->user, response, conf->user_header, arena) : 0;
    for (uint32_t i = 0; i < conf->copy.n && err == 0; i++)
        err = read_value(&ret->values[i], response, conf->copy.items[i], arena);
    return err;
}

/* ── to the client ── */

/* Adds all lines of a header, up to FORWARD_COOKIES_MAX. Returns 0 or -ENOMEM. */
static int pass_lines(struct mk_request *req, const struct mk_http_response *r, struct mk_str name)
{
    unsigned passed_lines = 0;
    for (unsigned n = find_line(r, 0, name); n < r->n_fields; n = find_line(r, n + 1, name))
        if (passed_lines++ < FORWARD_COOKIES_MAX && mk_response_header(req, name, get_value(r, n)) == -ENOMEM)
            return -ENOMEM;
    return 0;
}

int forward_pass_cookies(struct mk_request *req, const struct mk_http_response *response)
{
    return pass_lines(req, response, passed[COOKIE]);
}

void forward_send_refusal(struct mk_request *req, const struct mk_http_response *response)
{
    bool has_body = response->is_whole && response->body.len;
    int err = 0;
    if (!has_body)
        mk_response_error(req, (int)response->status);
    else
        mk_response_set_status(req, (int)response->status);
    for (unsigned i = 0; i < (has_body ? MK_COUNT_OF(passed) : (size_t)CONTENT) && err == 0; i++)
        err = pass_lines(req, response, passed[i]);
    if (has_body && err == 0)
        err = mk_response_write(req, response->body);
    if (err < 0)
        mk_response_error(req, 503);
    else if (has_body)
        mk_response_end(req);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The head of a request to a backend. What the client says of the connection stays here; what the proxy
 * says of the client replaces what the client has said, unless the peer is a proxy that is trusted.
 */
#include "proxy.h"

#include <monkey/base/buf.h>
#include <monkey/base/escape.h>
#include <monkey/base/log_limit.h>
#include <monkey/base/random.h>
#include <monkey/counters.h>
#include <monkey/kit/via.h>
#include <monkey/plugin.h>

#include <errno.h>
#include <inttypes.h>

/* ── ambiguous headers ── */

enum { SHOWN_BYTES_MAX = 64 };

static const struct mk_counter *counter;
static _Thread_local struct mk_log_limit_row limit;

void ambiguous_open(void)
{
    static const struct mk_counter_info info = {"proxy", "ambiguous_headers",
                                                "headers of clients that a backend may take for the proxy's",
                                                MK_COUNTER_SUM};
    static const struct mk_counter_row row = {.info = &info};
    mk_counters_open(&row, 1, &counter);
}

/* Reports one header. A request that is sent again reports its headers again. */
static void report_ambiguous(struct mk_request *req, struct mk_str name)
{
    unsigned missing;
    mk_counter_add(counter, mk_request_worker(req), 1);
    if (!mk_log_limit_is_due(&limit, 1, 0, mk_loop_now_ms(mk_request_loop(req)), &missing))
        return;
    struct mk_str shown = mk_str(name.p, name.len < SHOWN_BYTES_MAX ? name.len : SHOWN_BYTES_MAX);
    mk_request_log(req, MK_LOG_WARN,
                   "proxy: the header %.*s is not passed on: a backend that reads _ as - would take it for another; %u "
                   "before were not written",
                   MK_STR_ARG(shown), missing);
}

/* ── Max-Forwards ── */

bool forwards_end_here(struct mk_request *req)
{
    enum mk_method method = mk_request_method(req);
    struct mk_str value = method == MK_OPTIONS ? mk_request_header_by_name(req, MK_STR("Max-Forwards")) : MK_STR_NONE;
    uint64_t left = 1;
    if (value.p && !mk_str_u64(value, UINT64_MAX, &left)) {
        mk_response_error(req, 400);
        return true;
    }
    if (method == MK_TRACE) /* the response would show scripts of a page its cookies */
        left = 0;
    if (left == 0)
        mk_response_method_not_allowed(req, MK_STR("GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH"));
    return left == 0;
}

/* Writes the header: for OPTIONS with one less, for other methods with the client's value. */
static void write_max_forwards(struct mk_buf *out, struct mk_request *req, struct mk_str value)
{
    uint64_t left;
    if (mk_request_method(req) == MK_OPTIONS && mk_str_u64(value, UINT64_MAX, &left) && left)
        mk_buf_addf(out, "Max-Forwards: %" PRIu64 "\r\n", left - 1);
    else
        mk_buf_addf(out, "Max-Forwards: %.*s\r\n", MK_STR_ARG(value));
}

/* ── trailers ── */

static struct mk_str get_announced(struct mk_request *req)
{
    return mk_request_header_by_name(req, MK_STR("Trailer"));
}

bool trailers_are_announced(struct mk_request *req)
{
    return get_announced(req).len > 0;
}

/* A header that the section sets must not come as a trailer of the client, either. */
static bool is_passed(const struct field_changes *changes, struct mk_str name)
{
    return header_may_be_trailer(name) && !fields_replace(changes, name);
}

void trailers_announce(struct mk_buf *out, struct mk_request *req, const struct field_changes *changes)
{
    struct mk_str announced = get_announced(req), name;
    const char *before = "Trailer: ";
    while (mk_str_next(&announced, &name)) {
        if (!mk_str_is_token(name) || !is_passed(changes, name))
            continue;
        mk_buf_addf(out, "%s%.*s", before, MK_STR_ARG(name));
        before = ", ";
    }
    if (*before == ',')
        mk_buf_adds(out, MK_STR("\r\n"));
}

struct mk_str trailers_make_chunk(struct mk_request *req, const struct field_changes *changes)
{
    enum { CHUNK_BYTES_MAX = MK_REQUEST_TRAILER_BYTES_MAX + 4 * MK_REQUEST_TRAILERS_MAX + 16 };
    struct mk_str announced = get_announced(req), name, value;
    struct mk_buf chunk;
    mk_buf_init(&chunk, CHUNK_BYTES_MAX);
    mk_buf_adds(&chunk, MK_STR("0\r\n"));
    for (unsigned n = 0; mk_request_trailer_at(req, n, &name, &value); n++)
        if (is_passed(changes, name) && mk_str_list_has(announced, name))
            mk_buf_addf(&chunk, "%.*s: %.*s\r\n", MK_STR_ARG(name), MK_STR_ARG(value));
    mk_buf_adds(&chunk, MK_STR("\r\n"));
    struct mk_str copy = chunk.err ? MK_STR_NONE : mk_arena_dup(mk_request_arena(req), mk_buf_str(&chunk));
    mk_buf_release(&chunk);
    return copy;
}

/* ── upgrades ── */

static int make_key(struct upgrade *u)
{
    uint8_t nonce[MK_WS_NONCE_BYTES];
    int err = mk_random(nonce, sizeof(nonce));
    if (err == 0)
        mk_ws_key_make(u->key, nonce);
    return err;
}

int upgrade_init(struct upgrade *u, struct mk_request *req, const struct mk_conf_list *allowed)
{
    struct mk_str offered = mk_request_header(req, MK_HEADER_UPGRADE);
    unsigned major = mk_request_major(req);
    uint64_t bytes;
    *u = (struct upgrade){0};
    u->is_extended_connect = offered.p && major > 1; /* HTTP/2 has no such header */
    /* HTTP/1.0 knows no upgrade, and an extended CONNECT has no body before its tunnel */
    bool can_upgrade = major == 1 ? mk_request_minor(req) > 0 : mk_request_body_length(req, &bytes) && bytes == 0;
    if (can_upgrade && mk_str_list_has(mk_request_header(req, MK_HEADER_CONNECTION), MK_STR("upgrade")))
        u->token = upgrade_choose(allowed, offered);
    if (u->is_extended_connect && !u->token.len)
        return 501;
    if (u->is_extended_connect && mk_str_ieq(u->token, MK_STR("websocket")) && make_key(u) < 0)
        return 503;
    return 0;
}

struct mk_str upgrade_choose(const struct mk_conf_list *allowed, struct mk_str offered)
{
    struct mk_str token;
    while (mk_str_next(&offered, &token))
        for (uint32_t i = 0; i < allowed->n; i++)
            if (mk_str_ieq(allowed->items[i], token))
                return allowed->items[i];
    return MK_STR_NONE;
}

bool upgrade_replaces(const struct upgrade *u, struct mk_str name)
{
    return u->key[0] && mk_str_ieq(name, MK_STR("Sec-WebSocket-Key"));
}

void upgrade_write(const struct upgrade *u, struct mk_buf *out)
{
    mk_buf_addf(out, "Connection: Upgrade\r\nUpgrade: %.*s\r\n", MK_STR_ARG(u->token));
    if (u->key[0])
        mk_buf_addf(out, "Sec-WebSocket-Key: %s\r\n", u->key);
}

bool upgrade_is_agreed(const struct upgrade *u, struct mk_str token, struct mk_str accept)
{
    char wanted[MK_WS_ACCEPT_BYTES + 1];
    if (!u->token.len || !mk_str_ieq(token, u->token))
        return false;
    if (!u->key[0])
        return true; /* the client checks the rest */
    mk_ws_accept_key(wanted, mk_str_c(u->key));
    return mk_str_eq(accept, mk_str_c(wanted));
}

/* ── the head ── */

/* ── the request line ── */

static void write_query(struct mk_buf *out, struct mk_str query)
{
    if (!query.p)
        return;
    mk_buf_addc(out, '?');
    mk_buf_adds(out, query);
}

/* `*`, or the path with the prefix of `Match` replaced as the section says, and the query. */
static void write_target(struct mk_buf *out, struct mk_request *req, const struct proxy_conf *conf)
{
    struct mk_str path = mk_request_path(req), query = mk_request_query(req);
    if (conf->path == PROXY_PATH_RAW) {
        mk_buf_adds(out, path.len == 1 && path.p[0] == '*' ? path : mk_request_raw_path(req));
        write_query(out, query);
        return;
    }
    if (conf->strip_prefix || conf->gateway.to.path.p) {
        bool is_below = path.len > conf->gateway.match.text.len;
        path = mk_pattern_rest(&conf->gateway.match, path);
        mk_buf_adds(out, conf->gateway.to.path);
        if (is_below || !conf->gateway.to.path.len)
            mk_buf_addc(out, '/');
    }
    mk_path_encode_kept(out, path, mk_request_has_encoded_slash(req));
    write_query(out, query);
}

/* ── fields ── */

/* Writes name and value; what stands between and after them has the room that one check has made. */
static void write_field(struct mk_buf *out, struct mk_str name, struct mk_str value)
{
    static const struct mk_str colon = MK_STR_INIT(": "), end = MK_STR_INIT("\r\n");
    if (mk_buf_reserve(out, name.len + colon.len + value.len + end.len) < 0)
        return;
    char *at = mempcpy(out->data + out->len, name.p, name.len);
    at = mempcpy(at, colon.p, colon.len);
    if (value.len)
        at = mempcpy(at, value.p, value.len);
    at = mempcpy(at, end.p, end.len);
    out->len = (size_t)(at - out->data);
}

/* Tells whether `connection` has the options of all lines: without memory they are those of the first one. */
static bool has_all_options(struct mk_request *req, struct mk_str connection)
{
    struct mk_str name, value, separator = MK_STR(", ");
    size_t len = 0;
    for (unsigned i = 0; connection.p && mk_request_header_at(req, i, &name, &value); i++)
        if (mk_str_ieq(name, MK_STR("Connection")))
            len += value.len + separator.len;
    return !len || len - separator.len == connection.len;
}

/* Refuses options of Connection that would remove what the proxy needs or sets. */
static bool is_connection_valid(struct mk_str connection, const struct field_changes *changes)
{
    struct mk_str option;
    while (mk_str_next(&connection, &option)) {
        enum header_rule rule = header_of_request(option);
        if (rule == HEADER_SET || rule == HEADER_AMBIGUOUS || rule == HEADER_MAX_FORWARDS ||
            mk_str_ieq(option, MK_STR("Content-Length")) || mk_str_ieq(option, MK_STR("Transfer-Encoding")) ||
            fields_replace(changes, option))
            return false;
    }
    return true;
}

/* Writes a header of WebDAV that names resources of the backend. */
static void write_resources(struct mk_buf *out, struct mk_request *req, const struct proxy_conf *conf,
                            enum header_rule rule, struct mk_str value)
{
    struct mapping m;
    int err = mapping_init(&m, req, conf);
    mk_buf_adds(out, rule == HEADER_IF ? MK_STR("If: ") : MK_STR("Destination: "));
    if (rule == HEADER_IF)
        rewrite_write_if(&m, value, out);
    else
        rewrite_write_destination(&m, value, out);
    mk_buf_adds(out, MK_STR("\r\n"));
    out->err = err < 0 ? err : out->err;
}

/* What decides about the client's headers of a request. */
struct passing {
    struct mk_str connection, trace; /* the options of Connection; a traceparent of our own, or empty */
    const struct upgrade *upgrade;
};

static void write_client_fields(struct mk_buf *out, struct mk_request *req, const struct proxy_conf *conf,
                                const struct passing *p)
{
    struct mk_str name, value;
    for (unsigned i = 0; mk_request_header_at(req, i, &name, &value); i++) {
        enum header_rule rule = header_of_request(name);
        if (rule == HEADER_MAX_FORWARDS)
            write_max_forwards(out, req, value);
        else if (rule == HEADER_AMBIGUOUS || (rule == HEADER_PASS && fields_are_ambiguous(&conf->request, name)))
            report_ambiguous(req, name);
        else if (header_is_passed(rule) && !(p->connection.len && mk_str_list_has(p->connection, name)) &&
                 !upgrade_replaces(p->upgrade, name) && !(p->trace.len && trace_replaces(name)) &&
                 !fields_replace(&conf->request, name) && mk_request_passes_header(req, name)) {
            if (rule != HEADER_PASS && conf->rewrite_location)
                write_resources(out, req, conf, rule, value);
            else
                write_field(out, name, value);
        }
    }
}

/* ── what the proxy says of the client ── */

/* Writes the list of the client, if it is trusted, and an element of our own after it. */
static void write_list(struct mk_buf *out, struct mk_request *req, bool is_trusted, struct mk_str name,
                       struct mk_str element)
{
    struct mk_str former = is_trusted ? mk_request_header_by_name(req, name) : MK_STR_NONE;
    mk_buf_adds(out, name);
    mk_buf_adds(out, MK_STR(": "));
    mk_buf_adds(out, former);
    mk_buf_adds(out, former.len ? MK_STR(", ") : MK_STR(""));
    mk_buf_adds(out, element);
    mk_buf_adds(out, MK_STR("\r\n"));
}

/* Passes a value of a trusted proxy on, or writes our own. */
static void write_or_keep(struct mk_buf *out, struct mk_request *req, bool is_trusted, struct mk_str name,
                          struct mk_str value)
{
    struct mk_str former = is_trusted ? mk_request_header_by_name(req, name) : MK_STR_NONE;
    if (former.len || value.len)
        write_field(out, name, former.len ? former : value);
}

/* Returns the port of an authority, or the scheme's. */
static struct mk_str get_port(struct mk_str authority, struct mk_str scheme)
{
    size_t at = authority.len;
    while (at && authority.p[at - 1] >= '0' && authority.p[at - 1] <= '9')
        at--;
    if (at && at < authority.len && authority.p[at - 1] == ':')
        return mk_str_after(authority, at);
    return mk_str_eq(scheme, MK_STR("https")) ? MK_STR("443") : MK_STR("80");
}

/* What the proxy knows of the client and its request. */
struct origin {
    bool is_trusted; /* the peer */
    char peer_text[MK_ADDRESS_IP_BYTES], client_text[MK_ADDRESS_IP_BYTES];
    struct mk_str peer, client, authority, scheme; /* addresses may be empty */
};

static void write_x_forwarded(struct mk_buf *out, struct mk_request *req, const struct origin *o)
{
    write_list(out, req, o->is_trusted, MK_STR("X-Forwarded-For"), o->peer.len ? o->peer : MK_STR("unknown"));
    write_field(out, MK_STR("X-Forwarded-Proto"), o->scheme);
    write_or_keep(out, req, o->is_trusted, MK_STR("X-Forwarded-Host"), o->authority);
    write_or_keep(out, req, o->is_trusted, MK_STR("X-Forwarded-Port"), get_port(o->authority, o->scheme));
    if (o->client.len) /* another one than the peer comes of what that has sent */
        write_or_keep(out, req, o->is_trusted && mk_str_eq(o->client, o->peer), MK_STR("X-Real-IP"), o->client);
}

static void write_rfc7239(struct mk_buf *out, struct mk_request *req, const struct origin *o)
{
    bool is_v6 = o->peer.len && memchr(o->peer.p, ':', o->peer.len);
    MK_BUF_ON_STACK(element, 2 * MK_ADDRESS_IP_BYTES + 1024);
    mk_buf_addf(&element, is_v6 ? "for=\"[%.*s]\"" : "for=%.*s", MK_STR_ARG(o->peer.len ? o->peer : MK_STR("unknown")));
    mk_buf_addf(&element, ";proto=%.*s", MK_STR_ARG(o->scheme));
    if (o->authority.len) {
        mk_buf_adds(&element, MK_STR(";host=\""));
        mk_quoted_escape(&element, o->authority);
        mk_buf_addc(&element, '"');
    }
    if (!element.err)
        write_list(out, req, o->is_trusted, MK_STR("Forwarded"), mk_buf_str(&element));
}

/* The peer, unless a PROXY header has named another one, is the element that this proxy adds. */
static void write_forwarded(struct mk_buf *out, struct mk_request *req, int how)
{
    struct origin o = {.authority = mapping_get_authority(req), .scheme = mk_request_scheme(req)};
    struct mk_address peer = mk_connection_client(mk_request_connection(req)), client = mk_request_client(req);
    o.is_trusted = mk_generation_trusts(mk_worker_generation(mk_request_worker(req)), &peer);
    o.peer = mk_address_write_ip(o.peer_text, &peer);
    o.client = mk_address_equal(&client, &peer) ? o.peer : mk_address_write_ip(o.client_text, &client);
    if (how == PROXY_FORWARDED_X || how == PROXY_FORWARDED_BOTH)
        write_x_forwarded(out, req, &o);
    if (how == PROXY_FORWARDED_RFC7239 || how == PROXY_FORWARDED_BOTH)
        write_rfc7239(out, req, &o);
}

/* ── the head ── */

static void write_framing(struct mk_buf *out, struct mk_request *req, const struct proxy_conf *conf,
                          const struct mk_gateway_body *body)
{
    const unsigned expect_content = 1u << MK_POST | 1u << MK_PUT | 1u << MK_PATCH;
    if (body->kind == MK_GATEWAY_BODY_LENGTH)
        mk_buf_addf(out, "Content-Length: %" PRIu64 "\r\n", body->bytes);
    else if (body->kind == MK_GATEWAY_BODY_NONE && expect_content >> mk_request_method(req) & 1)
        mk_buf_adds(out, MK_STR("Content-Length: 0\r\n")); /* some backends answer 411 without it */
    if (body->kind != MK_GATEWAY_BODY_CHUNKED)
        return;
    mk_buf_adds(out, MK_STR("Transfer-Encoding: chunked\r\n"));
    trailers_announce(out, req, &conf->request);
}

int request_write_head(const struct mk_gateway_call *c, const struct mk_gateway_body *body, struct mk_buf *out)
{
    struct mk_request *req = c->req;
    const struct proxy_conf *conf = proxy_conf_of(c);
    const struct upgrade *upgrade = c->state;
    struct mk_str connection = mk_request_header(req, MK_HEADER_CONNECTION);
    if (!has_all_options(req, connection))
        return -ENOMEM;
    if (!is_connection_valid(connection, &conf->request))
        return -EINVAL;
    mk_buf_adds(out, mk_request_method_name(req));
    mk_buf_addc(out, ' ');
    write_target(out, req, conf);
    mk_buf_adds(out, MK_STR(" HTTP/1.1\r\n"));
    write_field(out, MK_STR("Host"), mapping_get_backend_host(req, conf));
    struct passing passing = {connection, trace_begin(req, conf->trace_share, &conf->request), upgrade};
    write_client_fields(out, req, conf, &passing);
    if (fields_write(&conf->request, req, out) < 0)
        return -EINVAL;
    if (conf->forwarded != PROXY_FORWARDED_OFF)
        write_forwarded(out, req, conf->forwarded);
    struct mk_str id = mk_request_id(req);
    if (id.len)
        write_field(out, MK_STR("X-Request-Id"), id);
    if (passing.trace.len)
        write_field(out, MK_STR("traceparent"), passing.trace);
    mk_via_write(out, req, mk_via_mark(conf->via_seed, req));
    if (mk_request_expects_continue(req) && !body->is_received)
        mk_buf_adds(out, MK_STR("Expect: 100-continue\r\n"));
    if (upgrade->token.len)
        upgrade_write(upgrade, out);
    else if (!conf->gateway.keep_alive)
        mk_buf_adds(out, MK_STR("Connection: close\r\n"));
    write_framing(out, req, conf, body);
    mk_buf_adds(out, MK_STR("\r\n"));
    return out->err ? -ENOBUFS : 0;
}

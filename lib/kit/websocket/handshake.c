// SPDX-License-Identifier: Apache-2.0
/*
 * The server's side of the handshake: in a request, whose tunnel (<monkey/tunnel.h>) is the stream of the WebSocket.
 */
#include "ws.h"

#include <monkey/base/base64.h>
#include <monkey/base/sha1.h>

#include <assert.h>
#include <errno.h>

/* ── key, version, subprotocol and origin ── */

/* ── the key ── */

/* Writes `len` bytes in base64, and a NUL, into storage of exactly that size. */
static void write_base64(char *to, size_t size, const uint8_t *bytes, size_t len)
{
    struct mk_buf b;
    mk_buf_init_fixed(&b, to, size);
    mk_base64_encode(&b, bytes, len, MK_BASE64);
    mk_buf_addc(&b, '\0');
    assert(!b.err && b.len == size);
}

void mk_ws_key_make(char to[MK_WS_KEY_BYTES + 1], const uint8_t nonce[MK_WS_NONCE_BYTES])
{
    write_base64(to, MK_WS_KEY_BYTES + 1, nonce, MK_WS_NONCE_BYTES);
}

/* Stricter decoders than the RFC asks for would reject bits of the last digit that nothing uses. */
bool mk__ws_key_is_valid(struct mk_str key)
{
    enum { DIGITS = MK_WS_KEY_BYTES - 2 };
    if (key.len != MK_WS_KEY_BYTES || key.p[DIGITS] != '=' || key.p[DIGITS + 1] != '=')
        return false;
    for (size_t i = 0; i < DIGITS; i++)
        if (!mk_is_name_byte(key.p[i], "+/"))
            return false;
    return true;
}

void mk_ws_accept_key(char to[MK_WS_ACCEPT_BYTES + 1], struct mk_str key)
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* RFC 6455 section 1.3 */
    char text[MK_WS_KEY_BYTES + sizeof(guid) - 1];
    uint8_t digest[MK_SHA1_BYTES];
    assert(key.len == MK_WS_KEY_BYTES);
    memcpy(text, key.p, MK_WS_KEY_BYTES);
    memcpy(text + MK_WS_KEY_BYTES, guid, sizeof(guid) - 1);
    mk_sha1(digest, text, sizeof(text));
    write_base64(to, MK_WS_ACCEPT_BYTES + 1, digest, sizeof(digest));
}

bool mk__ws_version_is_valid(struct mk_str version)
{
    return mk_str_eq(version, MK_STR("13"));
}

/* ── the subprotocol ── */

struct mk_str mk__ws_find_protocol(struct mk_str list, struct mk_str name)
{
    struct mk_str element;
    while (mk_str_next(&list, &element))
        if (mk_str_eq(element, name))
            return element;
    return MK_STR_NONE;
}

struct mk_str mk__ws_choose_protocol(struct mk_str offered, struct mk_str supported)
{
    struct mk_str name;
    while (mk_str_next(&offered, &name))
        if (mk__ws_find_protocol(supported, name).p)
            return name;
    return MK_STR_NONE;
}

/* ── the origin (RFC 6454) ── */

struct origin {
    struct mk_str scheme, host;
    uint16_t port; /* 0: none, and the scheme has no default */
};

/* Returns the length of the host at the beginning of an authority: a name, an IPv4 address, or [an IPv6 address]. */
static size_t measure_host(struct mk_str authority)
{
    const char *end = authority.len && authority.p[0] == '[' ? memchr(authority.p, ']', authority.len) : NULL;
    if (!end)
        return mk_str_visible_len(authority, "/\\?#@,:[]\"<>");
    struct mk_str address = mk_str(authority.p + 1, (size_t)(end - authority.p) - 1);
    return address.len && mk_str_is_visible(address, "/\\?#@,[]\"<>") ? address.len + 2 : 0;
}

/* Splits "host" or "host:port"; an empty port is the default. Returns false if it is neither. */
static bool parse_authority(struct mk_str authority, struct origin *o)
{
    size_t n = measure_host(authority);
    uint64_t port = 0;
    if (!n)
        return false;
    struct mk_str rest = mk_str_after(authority, n);
    o->host = mk_str(authority.p, n);
    o->port = mk_str_ieq(o->scheme, MK_STR("http")) ? 80 : mk_str_ieq(o->scheme, MK_STR("https")) ? 443 : 0;
    if (rest.len < 2)
        return !rest.len || *rest.p == ':';
    if (*rest.p != ':' || !mk_str_u64(mk_str_after(rest, 1), UINT16_MAX, &port))
        return false;
    o->port = (uint16_t)port;
    return true;
}

static bool parse_origin(struct mk_str text, struct origin *o)
{
    const char *colon = text.len ? memchr(text.p, ':', text.len) : NULL;
    if (!colon || colon == text.p)
        return false;
    o->scheme = mk_str(text.p, (size_t)(colon - text.p));
    struct mk_str rest = mk_str(colon, text.len - o->scheme.len);
    return mk_str_starts(rest, MK_STR("://")) && parse_authority(mk_str_after(rest, 3), o);
}

static bool is_same_origin(const struct origin *a, const struct origin *b)
{
    return a->port == b->port && mk_str_ieq(a->host, b->host) && mk_str_ieq(a->scheme, b->scheme);
}

/* Returns true if an element of the list is this origin; `o` is NULL if the text could not be parsed. */
static bool is_in_origins(struct mk_str list, struct mk_str text, const struct origin *o)
{
    struct mk_str element;
    while (mk_str_next(&list, &element)) {
        struct origin other;
        if (mk_str_eq(element, MK_STR("*")) || (mk_str_eq(element, text) && mk_str_eq(text, MK_STR("null"))))
            return true;
        if (o && parse_origin(element, &other) && is_same_origin(o, &other))
            return true;
    }
    return false;
}

bool mk__ws_origin_allowed(struct mk_str origin, struct mk_str authority, bool tls, struct mk_str allowed)
{
    struct origin theirs, ours = {.scheme = tls ? MK_STR("https") : MK_STR("http")};
    if (!origin.len)
        return true;
    bool parsed = parse_origin(origin, &theirs);
    if (parsed && parse_authority(authority, &ours) && is_same_origin(&theirs, &ours))
        return true;
    return is_in_origins(allowed, origin, parsed ? &theirs : NULL);
}

/* ── what a request asks for, compared with what the settings allow ── */

struct mk__ws_deflate_params mk__ws_deflate_params_of(const struct mk_ws_settings *settings)
{
    return (struct mk__ws_deflate_params){
        .on = !settings->no_deflate,
        .server_no_context = !settings->context_takeover,
        .client_no_context = !settings->context_takeover,
        .server_bits = MK__WS_BITS_MAX,
        .client_bits = MK__WS_BITS_MAX,
    };
}

static void negotiate_deflate(const struct mk_ws_settings *settings, struct mk_str extensions,
                              struct mk_ws_negotiated *ret)
{
    const struct mk__ws_deflate_params ours = mk__ws_deflate_params_of(settings);
    struct mk__ws_deflate_params params = {0};
    struct mk_buf out;
    if (mk__ws_deflate_choose(extensions, &ours, &params) < 0 || !params.on)
        return;
    mk_buf_init_fixed(&out, ret->extensions, sizeof(ret->extensions));
    mk__ws_deflate_write_response(&out, &params);
    mk_buf_cstr(&out);
    assert(!out.err); /* with all four parameters it has 128 bytes */
    ret->deflate = true;
    ret->send_context = !params.server_no_context;
    ret->receive_context = !params.client_no_context;
    ret->send_bits = params.server_bits;
    ret->receive_bits = params.client_bits;
}

static int refuse_upgrade(int status, const char *reason, const char **ret_reason)
{
    *ret_reason = reason;
    return status;
}

int mk_ws_negotiate(const struct mk_ws_request *request, const struct mk_ws_settings *settings,
                    struct mk_ws_negotiated *ret, const char **ret_reason)
{
    struct mk_str supported = settings->protocols ? mk_str_c(settings->protocols) : MK_STR_NONE;
    struct mk_str origins = settings->origins ? mk_str_c(settings->origins) : MK_STR_NONE;
    memset(ret, 0, sizeof(*ret));
    if (!request->is_get || !mk_str_list_has(request->upgrade, MK_STR("websocket")))
        return refuse_upgrade(400, "the request is no WebSocket handshake", ret_reason);
    if (!mk__ws_version_is_valid(request->version))
        return refuse_upgrade(request->version.p ? 426 : 400, "the version of the protocol is not 13", ret_reason);
    if (request->is_http1 && !mk__ws_key_is_valid(request->key))
        return refuse_upgrade(400, "Sec-WebSocket-Key is not valid", ret_reason);
    if (!mk__ws_origin_allowed(request->origin, request->host, request->is_tls, origins))
        return refuse_upgrade(403, "the page is from another origin", ret_reason);
    if (request->is_http1)
        mk_ws_accept_key(ret->accept, request->key);
    ret->protocol = mk__ws_find_protocol(supported, mk__ws_choose_protocol(request->protocols, supported));
    if (!settings->no_deflate)
        negotiate_deflate(settings, request->extensions, ret);
    return 101;
}

/* ── on the exchanges of a plugin ── */

/* In the arena of the exchange. */
struct exchange {
    struct mk_request *req;
    struct mk_ws *ws; /* NULL: it has ended */
};

/* ── the stream ── */

static ssize_t read_tunnel(void *stream, void *to, size_t size)
{
    struct exchange *x = stream;
    return mk_tunnel_read(x->req, to, size);
}

static ssize_t write_tunnel(void *stream, const void *from, size_t size)
{
    struct exchange *x = stream;
    return mk_tunnel_write(x->req, from, size);
}

static void wake_tunnel(void *stream)
{
    struct exchange *x = stream;
    mk_tunnel_wake(x->req);
}

static void end_tunnel(void *stream)
{
    struct exchange *x = stream;
    x->ws = NULL;
    mk_tunnel_end(x->req);
}

static const struct mk_ws_stream_ops tunnel_ops = {
    .read = read_tunnel,
    .write = write_tunnel,
    .wake = wake_tunnel,
    .end = end_tunnel,
};

static void run_tunnel(struct mk_request *req, unsigned events, void *ctx)
{
    struct exchange *x = ctx;
    (void)req;
    if (x->ws)
        mk_ws_run(x->ws, events);
}

/* The exchange ends, whatever the reason. */
static void end_exchange(void *ctx)
{
    struct exchange *x = ctx;
    struct mk_ws *ws = x->ws;
    x->ws = NULL;
    if (ws)
        mk_ws_lost(ws);
}

/* ── the handshake ── */

static struct mk_str find_header(struct mk_request *req, const char *name)
{
    return mk_request_header_by_name(req, mk_str_c(name));
}

static struct mk_ws_request read_handshake(struct mk_request *req)
{
    return (struct mk_ws_request){
        .upgrade = mk_request_header(req, MK_HEADER_UPGRADE),
        .key = find_header(req, "Sec-WebSocket-Key"),
        .version = find_header(req, "Sec-WebSocket-Version"),
        .protocols = find_header(req, "Sec-WebSocket-Protocol"),
        .extensions = find_header(req, "Sec-WebSocket-Extensions"),
        .origin = mk_request_header(req, MK_HEADER_ORIGIN),
        .host = mk_request_header(req, MK_HEADER_HOST),
        .is_get = mk_request_method(req) == MK_GET,
        .is_tls = mk_str_eq(mk_request_scheme(req), MK_STR("https")),
        .is_http1 = mk_request_major(req) == 1,
    };
}

static int add_header(struct mk_request *req, const char *name, struct mk_str value)
{
    return value.len ? mk_response_header(req, mk_str_c(name), value) : 0;
}

/* The protocol stays where it is, in the settings; the other values are copied. */
static int add_headers(struct mk_request *req, const struct mk_ws_negotiated *a)
{
    if (mk_response_header_ref(req, MK_STR("Upgrade"), MK_STR("websocket")) < 0 ||
        add_header(req, "Sec-WebSocket-Accept", mk_str_c(a->accept)) < 0 ||
        (a->protocol.len && mk_response_header_ref(req, MK_STR("Sec-WebSocket-Protocol"), a->protocol) < 0) ||
        add_header(req, "Sec-WebSocket-Extensions", mk_str_c(a->extensions)) < 0)
        return -ENOMEM;
    return 0;
}

/* A page of mk_response_error() has no headers of ours, which 426 must have (RFC 6455 section 4.2.2). */
static void refuse_version(struct mk_request *req)
{
    static const char text[] = "This server speaks version 13 of the WebSocket protocol.\n";
    mk_response_set_status(req, 426);
    mk_response_header_ref(req, MK_STR("Sec-WebSocket-Version"), MK_STR("13"));
    if (mk_request_major(req) == 1)
        mk_response_header_ref(req, MK_STR("Upgrade"), MK_STR("websocket"));
    mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("text/plain; charset=utf-8"));
    mk_response_write_ref(req, mk_str_c(text));
    mk_response_end(req);
}

static void reject_upgrade(struct mk_request *req, int status)
{
    if (status == 426)
        refuse_version(req);
    else
        mk_response_error(req, status);
}

/* Returns 101, 400 (HTTP/1.0, a body, or no "Connection: upgrade") or 503 (no memory). */
static int open_exchange(struct exchange *x, struct mk_ws_worker *worker, const struct mk_ws_settings *settings,
                         const struct mk_ws_negotiated *negotiated, int channel, void *ctx)
{
    struct mk_ws *ws = mk_ws_open(worker, settings, negotiated, channel, ctx, &tunnel_ops, x);
    if (!ws)
        return 503;
    int err = mk_request_take_over(x->req, run_tunnel, x);
    if (err == 0) {
        x->ws = ws;
        return 101;
    }
    mk__ws_discard(ws);
    return err == -EINVAL ? 400 : 503;
}

struct mk_ws *mk_ws_accept(struct mk_request *req, struct mk_ws_worker *worker, const struct mk_ws_settings *settings,
                           int channel, void *ctx)
{
    struct mk_ws_request handshake = read_handshake(req);
    struct mk_ws_negotiated negotiated;
    struct exchange *x = mk_arena_alloc(mk_request_arena(req), sizeof(*x));
    const char *reason;
    if (x)
        *x = (struct exchange){.req = req};
    if (!x || mk_arena_defer(mk_request_arena(req), end_exchange, x) < 0) {
        reject_upgrade(req, 503);
        return NULL;
    }
    int status = mk_ws_negotiate(&handshake, settings, &negotiated, &reason);
    if (status == 101)
        status =
            add_headers(req, &negotiated) == 0 ? open_exchange(x, worker, settings, &negotiated, channel, ctx) : 503;
    if (status != 101) {
        reject_upgrade(req, status);
        return NULL;
    }
    return x->ws;
}

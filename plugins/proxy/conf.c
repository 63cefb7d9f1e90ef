// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of [PROXY], and what `To` may be.
 */
#include "conf.h"

#include "send_file.h"

#include <monkey/address.h>

#include <errno.h>
#include <strings.h>

/* ── To ── */

static bool starts_with(struct mk_str s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.len >= n && strncasecmp(s.p, prefix, n) == 0;
}

static int fail(struct mk_buf *error, const char *sentence)
{
    mk_buf_addf(error, "%s", sentence);
    return -EINVAL;
}

static int parse_dial(struct mk_arena *arena, struct mk_str text, int port, struct proxy_target *t,
                      struct mk_buf *error)
{
    const char *why = NULL;
    int err = mk_dial_target_parse(arena, text, port, &t->dial, &why);
    if (err < 0 && err != -ENOMEM)
        mk_buf_addf(error, "\"%.*s\" is no address of a backend: %s", MK_STR_ARG(text), why);
    return err;
}

/* Tells whether `path` is one that a request can have: visible ASCII, without a query or fragment. */
static bool is_path(struct mk_str path)
{
    for (size_t i = 0; i < path.len; i++)
        if (path.p[i] <= ' ' || path.p[i] >= 0x7f || strchr("?#\"<>\\^`{|}", path.p[i]))
            return false;
    return true;
}

static int parse_url(struct mk_arena *arena, struct mk_str rest, int port, struct proxy_target *t, struct mk_buf *error)
{
    size_t n = 0;
    while (n < rest.len && rest.p[n] != '/' && rest.p[n] != '?' && rest.p[n] != '#')
        n++;
    t->authority = mk_str(rest.p, n);
    struct mk_str path = mk_str(rest.p + n, rest.len - n);
    if (!n)
        return fail(error, "the URL has no host");
    if (memchr(rest.p, '@', n))
        return fail(error, "a URL with a user cannot be used");
    if (path.len && (path.p[0] != '/' || !is_path(path)))
        return fail(error, "behind the host may stand a path, percent-encoded, without a query");
    if (path.len)
        t->path = mk_str(path.p, path.p[path.len - 1] == '/' ? path.len - 1 : path.len);
    return parse_dial(arena, t->authority, port, t, error);
}

static int parse_to(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct proxy_target *t = field;
    t->text = mk_arena_dup(arena, value->text);
    if (!t->text.p)
        return -ENOMEM;
    if (value->n != 1)
        return fail(error, "it takes one URL");
    t->is_tls = starts_with(t->text, "https://");
    if (t->is_tls)
        return parse_url(arena, mk_str(t->text.p + 8, t->text.len - 8), 443, t, error);
    if (starts_with(t->text, "http://"))
        return parse_url(arena, mk_str(t->text.p + 7, t->text.len - 7), 80, t, error);
    if (starts_with(t->text, "unix:")) {
        t->authority = MK_STR("localhost");
        return parse_dial(arena, t->text, 0, t, error);
    }
    return fail(error, "a backend is http://HOST:PORT, https://HOST:PORT or unix:/PATH, perhaps with a path behind the "
                       "host");
}

/* ── HostHeader ── */

/* A name, perhaps with a port; its syntax is that of the authority of a URL. */
static int parse_host_header(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                             struct mk_buf *error)
{
    struct mk_str *name = field;
    for (size_t i = 0; i < value->text.len; i++) {
        char c = value->text.p[i];
        if (c <= ' ' || c >= 0x7f || strchr("/?#@\"\\,", c))
            return fail(error, "it takes Client, Backend, or a host name, perhaps with a port");
    }
    *name = mk_arena_dup(arena, value->text);
    return name->p ? 0 : -ENOMEM;
}

/* ── SourceAddress ── */

static int parse_source(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    const struct mk_dial_target **source = field;
    struct mk_address address;
    char storage[64];
    struct mk_buf text;
    const char *why;
    if (value->n != 1 || mk_address_parse(value->text, &address) < 0 || address.port ||
        (address.family != AF_INET && address.family != AF_INET6))
        return fail(error, "it takes an address of this machine without a port, such as 192.0.2.1 or 2001:db8::1");
    mk_buf_init_fixed(&text, storage, sizeof(storage));
    mk_buf_adds(&text, address.family == AF_INET6 ? MK_STR("[") : MK_STR(""));
    mk_address_print(&address, &text);
    mk_buf_adds(&text, address.family == AF_INET6 ? MK_STR("]") : MK_STR(""));
    return mk_dial_target_parse(arena, mk_buf_str(&text), 0, source, &why);
}

/* Checks that the backend can be reached from the address: a backend with a name may have addresses of its family. */
static void check_source(const struct mk_conf_check *check, const struct proxy_conf *c)
{
    struct mk_address source, backend;
    size_t key = offsetof(struct proxy_conf, source);
    if (!c->source || !c->to.dial)
        return;
    if (!c->to.dial->port)
        mk_conf_error(check, key, "connections to a Unix socket have no source address");
    else if (mk_address_parse(c->source->host, &source) == 0 && mk_address_parse(c->to.dial->host, &backend) == 0 &&
             source.family != backend.family)
        mk_conf_error(check, key, "from this address the backend in To cannot be reached: one is IPv4, the other IPv6");
}

/* ── Upgrade ── */

/* A protocol: a token, perhaps with a version (RFC 9110 section 7.8). */
static bool is_protocol(struct mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] <= ' ' || s.p[i] >= 0x7f || strchr("\"(),:;<=>?@[\\]{}", s.p[i]))
            return false;
    return s.len > 0;
}

static int parse_upgrade(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_conf_list *list = field;
    if (value->n == 1 && mk_str_ieq(value->text, MK_STR("Off")))
        return 0;
    list->items = mk_arena_alloc(arena, value->n * sizeof(*list->items));
    if (!list->items)
        return -ENOMEM;
    for (; list->n < value->n; list->n++) {
        struct mk_str protocol = value->words[list->n];
        if (mk_str_ieq(protocol, MK_STR("h2c")))
            return fail(error, "h2c cannot be passed on: its requests would bypass the rules of this server");
        if (!is_protocol(protocol))
            return fail(error, "it takes names of protocols, such as websocket, or Off");
        list->items[list->n] = mk_arena_dup(arena, protocol);
        if (!list->items[list->n].p)
            return -ENOMEM;
    }
    return 0;
}

/* ── the section ── */

static const char *const path_names[] = {"Normalized", "Raw", NULL};
static const char *const slash_names[] = {"Refuse", "Keep", NULL};
static const char *const forwarded_names[] = {"X", "Rfc7239", "Both", "Off", NULL};
static const char *const leave_names[] = {"Cancel", "Finish", NULL};
static const char *const send_proxy_names[] = {"Off", "v1", "v2", NULL};
static const char *const hints_names[] = {"Http2", "All", "Off", NULL};

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_PATTERN(struct proxy_conf, match, "Match", "/",
                        "Which paths: `=/exact`, `/prefix` with everything below it, a glob such as `*.php`, or a "
                        "regular expression such as `~^/v[0-9]+/` (`~*` ignores the case)."),
    MK_CONF_KEY_CUSTOM(struct proxy_conf, to, "To", NULL,
                       "The backend: `http://127.0.0.1:8080`, `https://app.example.org` (port 443) or "
                       "`unix:/run/app.sock`. A path behind the host replaces the prefix of `Match`. A name is looked "
                       "up for each connection.",
                       .flags = MK_CONF_REQUIRED, .unit = "URL", .parse = parse_to),
    MK_CONF_KEY_BOOL(struct proxy_conf, strip_prefix, "StripPrefix", "Off",
                     "Whether the prefix of `Match` is removed from the path that the backend gets."),
    MK_CONF_KEY_ENUM(struct proxy_conf, path, "Path", "Normalized",
                     "The path that the backend gets: decoded, normalized and encoded again, as rules and logins of "
                     "this server see it, or as the client has sent it (`Raw`).",
                     .names = path_names),
    MK_CONF_KEY_ENUM(struct proxy_conf, encoded_slash, "EncodedSlash", "Refuse",
                     "Whether a path may have a slash within a segment, as `%2F`: `Refuse` (404), or `Keep`. Rules for "
                     "`/a/` do not match `/a%2Fb`; the backend must not treat both alike where that matters.",
                     .names = slash_names),
    MK_CONF_KEY_CUSTOM(struct proxy_conf, host_header, "HostHeader", NULL,
                       "The Host that the backend gets: the one of the client (`Client`), the one in `To` "
                       "(`Backend`), or this name. If it is not set: `Backend` for `https://`, else `Client`.",
                       .unit = "name", .parse = parse_host_header),
    MK_CONF_KEY_ENUM(struct proxy_conf, forwarded, "Forwarded", "X",
                     "How the backend learns of the client: `X-Forwarded-For` and others (`X`), Forwarded of RFC 7239, "
                     "both, or not at all.",
                     .names = forwarded_names),
    MK_CONF_KEY_CUSTOM(struct proxy_conf, request.set, "RequestSet", NULL,
                       "Sets a header of requests to the backend, in place of the client's: "
                       "`RequestSet X-User $user`. The value may have the variables of a request that the plugin "
                       "logger knows. If it is empty, the backend gets no such header.",
                       .flags = MK_CONF_REPEAT, .unit = "name value", .parse = fields_parse_set),
    MK_CONF_KEY_CUSTOM(struct proxy_conf, request.remove, "RequestRemove", NULL,
                       "Removes a header from requests to the backend.", .flags = MK_CONF_REPEAT, .unit = "name",
                       .parse = fields_parse_remove),
    MK_CONF_KEY_ENUM(struct proxy_conf, early_hints, "EarlyHints", "Http2",
                     "Which clients get interim responses of the backend, such as 103: those of HTTP/2, `All`, or none "
                     "(`Off`). 100 is always passed on.",
                     .names = hints_names),
    MK_CONF_KEY_CUSTOM(struct proxy_conf, upgrade, "Upgrade", "websocket",
                       "Which protocols may replace HTTP on a connection, when a client asks for one with the header "
                       "Upgrade, or over HTTP/2 with an extended CONNECT; or `Off`. Requests for others are passed on "
                       "without it.",
                       .unit = "protocol ...", .parse = parse_upgrade),
    MK_CONF_KEY_CUSTOM(struct proxy_conf, buffer, "BufferResponse", "256K 64M",
                       "How much of a response is kept for a client that does not take it, so that it does not hold "
                       "the backend: so many bytes in memory, and then so many in a file (see `[SPOOL]`; without the "
                       "second size: none). What the client takes at once is not kept, nor are event streams. `Off`: "
                       "the backend waits for the client.",
                       .unit = "size size, or Off", .parse = spool_parse_buffer),
    MK_CONF_KEY_CUSTOM(struct proxy_conf, spool_request_bytes, "SpoolRequest", "Off",
                       "Whether the body of a request is received as a whole, in memory and then in a file (see "
                       "`[SPOOL]`), before a connection to the backend is made, so that a slow client does not hold "
                       "it: `On`, or the length up to which bodies are accepted; a longer one is 413.",
                       .unit = "Off, On or size", .parse = spool_parse_request),
    MK_CONF_KEY_ENUM(struct proxy_conf, client_leave, "OnClientLeave", "Cancel",
                     "What becomes of a request whose client leaves before it has got the response: the connection to "
                     "the backend is closed (`Cancel`), or a request of which the backend has a part already, and this "
                     "server all, is brought to its end, and its response is dropped (`Finish`).",
                     .names = leave_names),
    MK_CONF_KEY_SIZE(struct proxy_conf, response_head_bytes_max, "MaxResponseHead", "32K",
                     "How long the head of a response may be; a longer one is 502.", .min = 1024, .max = 65535),
    MK_CONF_KEY_DURATION(struct proxy_conf, connect_timeout_ms, "ConnectTimeout", "3s",
                         "How long a connection to the backend may take, with the lookup of its name and the TLS "
                         "handshake; then 504.",
                         .min = 1, .max = 3600000, .unit = "s"),
    MK_CONF_KEY_DURATION(struct proxy_conf, response_timeout_ms, "ResponseTimeout", "60s",
                         "How long the backend may take from the end of the request to the head of its response; "
                         "then 504.",
                         .min = 1, .max = 86400000, .unit = "s"),
    MK_CONF_KEY_DURATION(struct proxy_conf, read_timeout_ms, "ReadTimeout", "60s",
                         "How long the backend may send nothing in the body of its response; then the response is "
                         "cut.",
                         .min = 1, .max = 86400000, .unit = "s"),
    MK_CONF_KEY_DURATION(struct proxy_conf, send_timeout_ms, "SendTimeout", "30s",
                         "How long the backend may take no byte of a request; then 504.", .min = 1, .max = 86400000,
                         .unit = "s"),
    MK_CONF_KEY_DURATION(struct proxy_conf, deadline_ms, "Deadline", "0",
                         "How long an exchange with the backend may take in all; 0: no limit.", .min = 0,
                         .max = 86400000, .unit = "s"),
    MK_CONF_KEY_INT(struct proxy_conf, keep_alive, "KeepAlive", "32",
                    "How many idle connections to the backend each worker keeps; more are kept for a "
                    "second, those of requests at the same time. 0: none.",
                    .min = 0, .max = 10000),
    MK_CONF_KEY_DURATION(struct proxy_conf, keep_alive_timeout_ms, "KeepAliveTimeout", "4s",
                         "How long such a connection is kept. It should be less than the backend's own time.", .min = 1,
                         .max = 3600000, .unit = "s"),
    MK_CONF_KEY_BOOL(
        struct proxy_conf, rewrite_location, "RewriteLocation", "On",
        "Whether Location, Content-Location, and Path and Domain of Set-Cookie, which the backend writes as it sees "
        "itself, become what the client sees."),
    MK_CONF_KEY_CUSTOM(struct proxy_conf, send_file, "SendFile", NULL,
                       "Folders of files that the backend may have this server send, in place of its response: with "
                       "`X-Accel-Redirect` or `X-Sendfile`. `Off`: none.",
                       .unit = "folder ...", .parse = send_file_parse),
    MK_CONF_KEY_CUSTOM(struct proxy_conf, intercept, "InterceptErrors", NULL,
                       "Which responses of the backend become error pages of this server, with the same status: `On` "
                       "(400 and above), statuses such as `502 503`, or `Off`.",
                       .unit = "status ...", .parse = intercept_parse),
    MK_CONF_KEY_ENUM(struct proxy_conf, send_proxy, "SendProxy", "Off",
                     "Whether each connection to the backend begins with a header of the PROXY protocol, version 1 or "
                     "2, which has the addresses of the client's connection. Such connections serve only requests of "
                     "that one.",
                     .names = send_proxy_names),
    MK_CONF_KEY_CUSTOM(struct proxy_conf, source, "SourceAddress", NULL,
                       "The address of this machine that connections to the backend come from. If it is not set, the "
                       "kernel chooses it.",
                       .unit = "address", .parse = parse_source),
    MK_CONF_KEY_BOOL(struct proxy_conf, tls.verify, "TlsVerify", "On",
                     "Whether the certificate of a backend with `https://` is verified. `Off` accepts any certificate, "
                     "so that anyone on the way can read and change what is passed."),
    MK_CONF_KEY_STRING(struct proxy_conf, tls.name, "TlsName", NULL,
                       "The name or address that this certificate must cover; a name is sent to the backend (SNI). If "
                       "it is not set: the host in `To`."),
    MK_CONF_KEY_PATH(struct proxy_conf, tls.ca, "TlsCA", NULL,
                     "A PEM file of the authorities to trust, in place of the system's. This file and those of "
                     "`TlsCertificate` and `TlsKey` are read again when they change."),
    MK_CONF_KEY_PATH(struct proxy_conf, tls.certificate, "TlsCertificate", NULL,
                     "The certificate that the server shows to the backend, with intermediate ones: a PEM file."),
    MK_CONF_KEY_PATH(struct proxy_conf, tls.key, "TlsKey", NULL, "The private key of `TlsCertificate`: a PEM file."),
    {0},
};

/* Checks the keys of TLS, which a backend without TLS has no use for. */
static void check_tls(const struct mk_conf_check *check, struct proxy_conf *c)
{
    const struct {
        struct mk_str value;
        size_t offset;
    } texts[] = {
        {c->tls.name, offsetof(struct proxy_conf, tls.name)},
        {c->tls.ca, offsetof(struct proxy_conf, tls.ca)},
        {c->tls.certificate, offsetof(struct proxy_conf, tls.certificate)},
        {c->tls.key, offsetof(struct proxy_conf, tls.key)},
    };
    for (size_t i = 0; i < MK_COUNT_OF(texts) && c->to.dial && !c->to.is_tls; i++)
        if (texts[i].value.len)
            mk_conf_error(check, texts[i].offset,
                          "connections to this backend have no TLS: To must begin with https://");
    if (!c->tls.verify)
        mk_conf_warn(check, offsetof(struct proxy_conf, tls.verify),
                     "the certificate of the backend is not verified, so that anyone on the way can read and change "
                     "what is passed; TlsCA names an authority of your own");
    if (!c->tls.name.len && c->to.dial)
        c->tls.name = c->to.dial->host;
}

static void check_section(const struct mk_conf_check *check, void *section)
{
    struct proxy_conf *c = section;
    bool has_prefix = c->match.kind == MK_PATTERN_PREFIX;
    if (c->strip_prefix && !has_prefix)
        mk_conf_error(check, offsetof(struct proxy_conf, strip_prefix),
                      "StripPrefix removes the prefix of Match, which is none: write `Match /prefix`");
    if (c->to.path.p && !has_prefix)
        mk_conf_error(check, offsetof(struct proxy_conf, to),
                      "a path behind the host replaces the prefix of Match, which is none: write `Match /prefix`");
    if (c->path == PROXY_PATH_RAW && (c->strip_prefix || c->to.path.p))
        mk_conf_error(check, offsetof(struct proxy_conf, path),
                      "a raw path has no prefix that could be replaced: use Path Normalized, or neither StripPrefix "
                      "nor a path in To");
    if (!c->host_header.len)
        c->host_header = c->to.is_tls ? MK_STR("Backend") : MK_STR("Client");
    check_tls(check, c);
    check_source(check, c);
    c->limits = (struct mk_response_limits){
        .head_bytes_max = (uint16_t)c->response_head_bytes_max,
        .fields_max = PROXY_FIELDS_MAX,
        .chunked = {.line_bytes_max = 4096,
                    .ext_bytes_total_max = 65536,
                    .trailer_bytes_max = 8192,
                    .trailer_count_max = 64},
    };
}

const struct mk_conf_section proxy_sections[] = {
    [PROXY_SECTION] = {.name = "PROXY",
                       .scope = MK_CONF_SCOPE_HOST,
                       .flags = MK_CONF_REPEAT | MK_CONF_SERVES,
                       .size = sizeof(struct proxy_conf),
                       .keys = keys,
                       .check = check_section,
                       .doc = MK_CONF_DOC("Passes requests to a backend. The first section that matches a path is "
                                          "used, as a whole.")},
    [SPOOL_SECTION] = {.name = "SPOOL",
                       .scope = MK_CONF_SCOPE_SERVER,
                       .size = sizeof(struct spool_conf),
                       .keys = spool_keys,
                       .doc = MK_CONF_DOC("Where bodies wait for slow clients and backends (`BufferResponse` and "
                                          "`SpoolRequest` of `[PROXY]`), and how much of them, in the whole process. "
                                          "A reload changes it; bodies that wait already stay where they are.")},
    {0},
};

// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of [PROXY], and what `To` may be.
 */
#include "proxy.h"

#include <monkey/kit/encoded_slash.h>
#include <monkey/kit/via.h>

#include <errno.h>

/* ── To ── */

/* Tells whether what follows a dollar is a capture, or the path or the query as nginx writes them. */
static bool is_foreign_variable(struct mk_str name)
{
    static const struct mk_str names[] = {MK_STR_INIT("uri"),  MK_STR_INIT("request_uri"), MK_STR_INIT("path"),
                                          MK_STR_INIT("args"), MK_STR_INIT("is_args"),     MK_STR_INIT("host")};
    struct mk_str word = mk_str_until(name, "/?$.-");
    bool found = word.len == 1 && word.p[0] >= '0' && word.p[0] <= '9';
    for (size_t i = 0; i < MK_COUNT_OF(names); i++)
        found = found || mk_str_eq(word, names[i]);
    return found;
}

static int parse_to(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_target *t = field;
    struct mk_str text = mk_arena_dup(arena, value->text);
    if (!text.p)
        return -ENOMEM;
    t->text = text;
    if (value->n != 1)
        return mk_conf_fail(error, "it takes one URL");
    int err = mk_target_parse_url(t, text, "backend", arena, error);
    if (err > 0)
        return mk_conf_fail(
            error, "a backend is http://HOST:PORT, https://HOST:PORT or unix:/PATH, perhaps with a path behind the "
                   "host");
    if (err < 0)
        return err;
    const char *dollar = t->path.len ? memchr(t->path.p, '$', t->path.len) : NULL;
    if (dollar && is_foreign_variable(mk_str_after(text, (size_t)(dollar - text.p) + 1))) {
        mk_buf_addf(error,
                    "every request gets the same path, and $%.*s as it is: StripPrefix, a path in To, and [REWRITE] "
                    "change the path; write a dollar as %%24",
                    MK_STR_ARG(mk_str_until(mk_str_c(dollar + 1), "/?$.-")));
        return -EINVAL;
    }
    if (t->path.len && (t->path.p[0] != '/' || !mk_str_is_visible(t->path, "?#\"<>\\^`{|}")))
        return mk_conf_fail(error, "behind the host may stand a path, percent-encoded, without a query");
    t->path.len -= t->path.len && t->path.p[t->path.len - 1] == '/';
    return 0;
}

/* ── HostHeader ── */

static bool is_switch(struct mk_str word)
{
    return mk_str_ieq(word, MK_STR("On")) || mk_str_ieq(word, MK_STR("Yes")) || mk_str_ieq(word, MK_STR("True"));
}

/* A name, perhaps with a port; its syntax is that of the authority of a URL. */
static int parse_host_header(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                             struct mk_buf *error)
{
    struct mk_str *name = field;
    if (is_switch(value->text))
        return mk_conf_fail(error,
                            "it is no switch: write Client for the Host of the client, or Backend for the host in To");
    if (!mk_str_is_visible(value->text, "${}"))
        return mk_conf_fail(error, "a host name has no variables: write Client for the Host of the client");
    if (!mk_str_is_visible(value->text, "/?#@\"\\,"))
        return mk_conf_fail(error, "it takes Client, Backend, or a host name, perhaps with a port");
    *name = mk_arena_dup(arena, value->text);
    return name->p ? 0 : -ENOMEM;
}

/* ── SourceAddress ── */

static int parse_source(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    const struct mk_dial_target **source = field;
    struct mk_address address;
    const char *why;
    if (value->n != 1 || mk_address_parse(value->text, &address) < 0 || address.port ||
        (address.family != AF_INET && address.family != AF_INET6))
        return mk_conf_fail(error,
                            "it takes an address of this machine without a port, such as 192.0.2.1 or 2001:db8::1");
    MK_BUF_ON_STACK(text, 64);
    mk_buf_adds(&text, address.family == AF_INET6 ? MK_STR("[") : MK_STR(""));
    mk_address_print(&address, &text);
    mk_buf_adds(&text, address.family == AF_INET6 ? MK_STR("]") : MK_STR(""));
    return mk_dial_target_parse(arena, mk_buf_str(&text), 0, source, &why);
}

/* Checks that the backend can be reached from the address: a backend with a name may have addresses of its family. */
static void check_source(const struct mk_conf_check *check, const struct proxy_conf *c)
{
    struct mk_address source, backend;
    size_t key = offsetof(struct proxy_conf, gateway.source);
    if (!c->gateway.source || !c->gateway.to.dial)
        return;
    if (!c->gateway.to.dial->port)
        mk_conf_error(check, key, "connections to a Unix socket have no source address");
    else if (mk_address_parse(c->gateway.source->host, &source) == 0 &&
             mk_address_parse(c->gateway.to.dial->host, &backend) == 0 && source.family != backend.family)
        mk_conf_error(check, key, "from this address the backend in To cannot be reached: one is IPv4, the other IPv6");
}

/* ── Upgrade ── */

/* A protocol: a token, perhaps with a version (RFC 9110 section 7.8). */
static bool is_protocol(struct mk_str s)
{
    return s.len && mk_str_is_visible(s, "\"(),:;<=>?@[\\]{}");
}

static int parse_upgrade(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    if (mk_conf_is_off(value))
        return 0;
    for (uint32_t i = 0; i < value->n; i++) {
        struct mk_str protocol = value->words[i];
        if (mk_str_ieq(protocol, MK_STR("h2c")))
            return mk_conf_fail(error, "h2c cannot be passed on: its requests would bypass the rules of this server");
        if (is_switch(protocol) || mk_str_eq(protocol, MK_STR("*")))
            return mk_conf_fault(value, i, 0, error,
                                 "it takes names of protocols: write websocket, or leave the line out; Off passes "
                                 "none on");
        if (!is_protocol(protocol))
            return mk_conf_fail(error, "it takes names of protocols, such as websocket, or Off");
    }
    return mk_conf_add_words(value, 0, field, arena);
}

/* ── the section ── */

static const char *const path_names[] = {"Normalized", "Raw", NULL};
static const char *const forwarded_names[] = {"X", "Rfc7239", "Both", "Off", NULL};
static const char *const send_proxy_names[] = {"Off", "v1", "v2", NULL};
static const char *const hints_names[] = {"Http2", "All", "Off", NULL};

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_PATTERN(struct proxy_conf, gateway.match, "Match", "/",
                        "Which paths: `=/exact`, `/prefix` with everything below it, a glob such as `*.php`, or a "
                        "regular expression such as `~^/v[0-9]+/` (`~*` ignores the case)."),
    MK_CONF_KEY_CUSTOM(struct proxy_conf, gateway.to, "To", NULL,
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
    MK_ENCODED_SLASH_KEY(struct proxy_conf, encoded_slash),
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
    MK_CONF_KEY_CUSTOM(struct proxy_conf, trace_share, "TraceSample", "Off",
                       "Whether a request without a valid `traceparent` (W3C Trace Context) begins a trace here, and "
                       "which share of these traces is sampled: a percentage from 0 to 100, such as `0.5%`. The trace "
                       "has the digits of the request ID. With `Off` none is made: the backend decides.",
                       .unit = "percent", .parse = trace_parse_share),
    MK_CONF_KEY_ENUM(struct proxy_conf, early_hints, "EarlyHints", "Http2",
                     "Which clients get interim responses of the backend, such as 103: those of HTTP/2, `All`, or none "
                     "(`Off`). 100 is always passed on.",
                     .names = hints_names),
    MK_CONF_KEY_CUSTOM(struct proxy_conf, upgrade, "Upgrade", "websocket",
                       "Which protocols may replace HTTP on a connection, when a client asks for one with the header "
                       "Upgrade, or over HTTP/2 with an extended CONNECT; or `Off`. Requests for others are passed on "
                       "without it.",
                       .unit = "protocol ...", .parse = parse_upgrade),
    MK_GATEWAY_KEYS_BODIES(struct proxy_conf, gateway, "Off"),
    MK_GATEWAY_KEYS_CONNECTIONS(struct proxy_conf, gateway, "32"),
    MK_CONF_KEY_BOOL(
        struct proxy_conf, rewrite_location, "RewriteLocation", "On",
        "Whether Location, Content-Location, Refresh, Link, and Path and Domain of Set-Cookie, which the backend "
        "writes "
        "as it sees itself, become what the client sees, and Destination and If (WebDAV) of a request what the backend "
        "sees. URLs "
        "with another host or scheme stay, as do paths that are below the prefix of `Match` already."),
    MK_GATEWAY_KEYS_RESPONSES(struct proxy_conf, gateway),
    MK_CONF_KEY_ENUM(struct proxy_conf, send_proxy, "SendProxy", "Off",
                     "Whether each connection to the backend begins with a header of the PROXY protocol, version 1 or "
                     "2, which has the addresses of the client's connection. Such connections serve only requests of "
                     "that one.",
                     .names = send_proxy_names),
    MK_CONF_KEY_CUSTOM(struct proxy_conf, gateway.source, "SourceAddress", NULL,
                       "The address of this machine that connections to the backend come from. If it is not set, the "
                       "kernel chooses it.",
                       .unit = "address", .parse = parse_source),
    MK_CONF_KEY_BOOL(struct proxy_conf, gateway.tls.verify, "TlsVerify", "On",
                     "Whether the certificate of a backend with `https://` is verified. `Off` accepts any certificate, "
                     "so that anyone on the way can read and change what is passed."),
    MK_CONF_KEY_STRING(struct proxy_conf, gateway.tls.name, "TlsName", NULL,
                       "The name or address that this certificate must cover; a name is sent to the backend (SNI). If "
                       "it is not set: the host in `To`."),
    MK_CONF_KEY_PATH(struct proxy_conf, gateway.tls.ca, "TlsCA", NULL,
                     "A PEM file of the authorities to trust, in place of the system's. This file and those of "
                     "`TlsCertificate` and `TlsKey` are read again when they change."),
    MK_CONF_KEY_PATH(struct proxy_conf, gateway.tls.certificate, "TlsCertificate", NULL,
                     "The certificate that the server shows to the backend, with intermediate ones: a PEM file."),
    MK_CONF_KEY_PATH(struct proxy_conf, gateway.tls.key, "TlsKey", NULL,
                     "The private key of `TlsCertificate`: a PEM file."),
    {0},
};

/* Checks the keys of TLS, which a backend without TLS has no use for. */
static void check_tls(const struct mk_conf_check *check, struct proxy_conf *c)
{
    const struct {
        struct mk_str value;
        size_t offset;
    } texts[] = {
        {c->gateway.tls.name, offsetof(struct proxy_conf, gateway.tls.name)},
        {c->gateway.tls.ca, offsetof(struct proxy_conf, gateway.tls.ca)},
        {c->gateway.tls.certificate, offsetof(struct proxy_conf, gateway.tls.certificate)},
        {c->gateway.tls.key, offsetof(struct proxy_conf, gateway.tls.key)},
    };
    for (size_t i = 0; i < MK_COUNT_OF(texts) && c->gateway.to.dial && !c->gateway.to.is_tls; i++)
        if (texts[i].value.len)
            mk_conf_error(check, texts[i].offset,
                          "connections to this backend have no TLS: To must begin with https://");
    if (!c->gateway.tls.verify)
        mk_conf_warn(check, offsetof(struct proxy_conf, gateway.tls.verify),
                     "the certificate of the backend is not verified, so that anyone on the way can read and change "
                     "what is passed; TlsCA names an authority of your own");
    if (!c->gateway.tls.name.len && c->gateway.to.dial)
        c->gateway.tls.name = c->gateway.to.dial->host;
}

/* Warns of variables as other servers write them, which are sent as they are. */
static void check_set(const struct mk_conf_check *check, const struct field_list *list)
{
    struct mk_variable_found found;
    unsigned nth = 0;
    for (const struct field *f = list->first; f; f = f->next, nth++)
        for (const struct mk_text_piece *piece = f->value; piece; piece = piece->next)
            if (mk_variable_find_in_literal(piece->literal, &found))
                mk_conf_warn_nth(check, offsetof(struct proxy_conf, request.set), nth,
                                 "a variable begins with a dollar: \"%.*s\" is sent as it is%s%s",
                                 MK_STR_ARG(found.text), found.here ? "; write $" : "", found.here ? found.here : "");
}

static void check_section(const struct mk_conf_check *check, void *section)
{
    struct proxy_conf *c = section;
    bool has_prefix = c->gateway.match.kind == MK_PATTERN_PREFIX;
    if (c->strip_prefix && !(has_prefix && c->gateway.match.text.len > 1))
        mk_conf_error(check, offsetof(struct proxy_conf, strip_prefix),
                      "StripPrefix removes the prefix of Match, which is none: write `Match /prefix`");
    if (c->gateway.to.path.p && !has_prefix)
        mk_conf_error(check, offsetof(struct proxy_conf, gateway.to),
                      "a path behind the host replaces the prefix of Match, which is none: write `Match /prefix`");
    if (c->path == PROXY_PATH_RAW && (c->strip_prefix || c->gateway.to.path.p))
        mk_conf_error(check, offsetof(struct proxy_conf, path),
                      "a raw path has no prefix that could be replaced: use Path Normalized, or neither StripPrefix "
                      "nor a path in To");
    if (!c->host_header.len)
        c->host_header = c->gateway.to.is_tls ? MK_STR("Backend") : MK_STR("Client");
    check_tls(check, c);
    check_source(check, c);
    check_set(check, &c->request.set);
    c->via_seed = mk_via_seed(c);
    mk_gateway_conf_finish(&c->gateway);
}

static const struct mk_conf_foreign foreign[] = {
    {"Timeout", "there are several: ConnectTimeout, ResponseTimeout, ReadTimeout and SendTimeout"},
    {0},
};

static const struct mk_conf_short_form short_form = {
    .name = "Proxy",
    .key = "To",
    .doc = MK_CONF_DOC("Passes requests to a backend: `Proxy http://127.0.0.1:3000`, or for some paths only "
                       "`Proxy /api http://127.0.0.1:3000`. The first of several lines that fits a path is used."),
};

const struct mk_conf_section proxy_sections[] = {
    {.name = "PROXY",
     .scope = MK_CONF_SCOPE_HOST,
     .flags = MK_CONF_REPEAT | MK_CONF_SERVES,
     .size = sizeof(struct proxy_conf),
     .keys = keys,
     .foreign = foreign,
     .short_form = &short_form,
     .check = check_section,
     .doc = MK_CONF_DOC("Passes requests to a backend. The first section that matches a path is used, as a whole.")},
    {0},
};

// SPDX-License-Identifier: Apache-2.0
#include "proxy.h"

#include <monkey/base/arena.h>
#include <monkey/base/buf.h>
#include <monkey/base/escape.h>

#include <errno.h>
#include <stdio.h>

/* ── origins and prefixes of a request ── */

/* ── a request ── */

struct mk_str mapping_get_authority(struct mk_request *req)
{
    struct mk_str target = mk_request_target(req), host = mk_request_header(req, MK_HEADER_HOST);
    const char *scheme_end = target.len && target.p[0] != '/' ? memmem(target.p, target.len, "://", 3) : NULL;
    if (scheme_end) /* the absolute form, whose authority counts (RFC 9112 section 3.2.2) */
        return mk_str_until(mk_str_after(target, (size_t)(scheme_end + 3 - target.p)), "/?");
    return host.len ? host : mk_request_host(req);
}

struct mk_str mapping_get_backend_host(struct mk_request *req, const struct proxy_conf *conf)
{
    struct mk_str host = conf->host_header;
    if (mk_str_ieq(host, MK_STR("Client")))
        host = mapping_get_authority(req);
    else if (mk_str_ieq(host, MK_STR("Backend")))
        host = MK_STR_NONE;
    return host.len ? host : conf->gateway.to.authority; /* HTTP/1.0 knows no Host, and HTTP/1.1 needs one */
}

/* Returns the prefix of `Match`, percent-encoded; `.p` is NULL without memory. */
static struct mk_str encode_prefix(const struct proxy_conf *conf, struct mk_arena *arena)
{
    struct mk_str prefix = mk_str_strip_end(conf->gateway.match.text, "/");
    size_t size = 3 * prefix.len + 1;
    char *to = mk_arena_alloc(arena, size);
    struct mk_buf out;
    mk_buf_init_fixed(&out, to, to ? size : 0);
    mk_path_encode(&out, prefix);
    return to ? mk_buf_str(&out) : MK_STR_NONE;
}

static bool is_trusted(struct mk_request *req)
{
    struct mk_address peer = mk_connection_client(mk_request_connection(req));
    return mk_generation_trusts(mk_worker_generation(mk_request_worker(req)), &peer);
}

/* Returns the first element of a header that is a list; empty: there is none. */
static struct mk_str get_first(struct mk_request *req, struct mk_str name)
{
    struct mk_str value = mk_request_header_by_name(req, name);
    return mk_str_trim(mk_str_until(value.p ? value : MK_STR(""), ","));
}

/* Returns the host of the first element of Forwarded (RFC 7239), which may be in quotes; empty: it has none. */
static struct mk_str get_forwarded_host(struct mk_request *req)
{
    struct mk_str rest = get_first(req, MK_STR("Forwarded")), name = MK_STR("host=");
    while (rest.len) {
        struct mk_str pair = mk_str_trim(mk_str_split(&rest, ';'));
        if (!mk_str_istarts(pair, name))
            continue;
        struct mk_str host = mk_str_after(pair, name.len);
        return host.len && host.p[0] == '"' ? mk_str_until(mk_str_after(host, 1), "\"") : host;
    }
    return MK_STR("");
}

static bool has_port(struct mk_str authority)
{
    const char *colon = authority.len ? memrchr(authority.p, ':', authority.len) : NULL;
    return colon && !memchr(colon, ']', authority.len - (size_t)(colon - authority.p));
}

/*
 * Returns the authority with the port that X-Forwarded-Port has, which may be that of an inner listener of the proxy;
 * empty: the authority has one, or the header has none.
 */
static struct mk_str add_forwarded_port(struct mk_request *req, struct mk_str host)
{
    uint64_t port;
    if (!host.len || has_port(host) || !mk_str_u64(get_first(req, MK_STR("X-Forwarded-Port")), UINT16_MAX, &port))
        return MK_STR("");
    size_t size = host.len + sizeof(":65535");
    char *text = mk_arena_alloc(mk_request_arena(req), size);
    return text ? mk_str(text, (size_t)snprintf(text, size, "%.*s:%u", MK_STR_ARG(host), (unsigned)port)) : MK_STR("");
}

/* Adds what a trusted proxy says the client has asked. */
static void add_forwarded_authorities(struct mapping_side *client, struct mk_request *req)
{
    struct mk_str host = get_first(req, MK_STR("X-Forwarded-Host"));
    client->authorities[1] = host.len ? host : get_forwarded_host(req);
    client->authorities[2] = add_forwarded_port(req, client->authorities[1]);
}

int mapping_init(struct mapping *m, struct mk_request *req, const struct proxy_conf *conf)
{
    const struct mk_target *to = &conf->gateway.to;
    *m = (struct mapping){
        .client = {.scheme = mk_request_scheme(req), .authorities = {mapping_get_authority(req)}},
        .backend = {.scheme = to->is_tls ? MK_STR("https") : MK_STR("http"),
                    .authorities = {mapping_get_backend_host(req, conf), to->authority}},
        .host = mk_request_host(req),
    };
    if (is_trusted(req))
        add_forwarded_authorities(&m->client, req);
    if (!conf->strip_prefix && !to->path.p)
        return 0;
    m->backend.prefix = to->path;
    m->client.prefix = encode_prefix(conf, mk_request_arena(req));
    return m->client.prefix.p ? 0 : -ENOMEM;
}

/* ── URLs ── */

/*
 * Splits the scheme and the authority off a URL; they are empty in a path, and the scheme is empty in `//host/path`.
 * Returns the rest, which is all of other references and of URLs with other schemes. Pure.
 */
static struct mk_str split_origin(struct mk_str url, struct mk_str *ret_scheme, struct mk_str *ret_authority)
{
    static const struct mk_str starts[] = {MK_STR_INIT("https://"), MK_STR_INIT("http://"), MK_STR_INIT("//")};
    *ret_scheme = *ret_authority = MK_STR("");
    for (size_t i = 0; i < MK_COUNT_OF(starts); i++) {
        size_t n = starts[i].len;
        if (!mk_str_istarts(url, starts[i]))
            continue;
        *ret_scheme = n > 2 ? mk_str(starts[i].p, n - 3) : MK_STR("");
        *ret_authority = mk_str_until(mk_str_after(url, n), "/?#");
        return mk_str_after(url, n + ret_authority->len);
    }
    return url;
}

/* Returns an authority without the default port of a scheme, or without a colon alone. */
static struct mk_str strip_default_port(struct mk_str authority, struct mk_str scheme)
{
    struct mk_str port = mk_str_eq(scheme, MK_STR("https")) ? MK_STR(":443") : MK_STR(":80");
    if (mk_str_ends(authority, port))
        authority.len -= port.len;
    return mk_str_strip_end(authority, ":");
}

/* Tells whether two authorities with this scheme are the same; its default port may be left out. Pure. */
static bool is_same_authority(struct mk_str scheme, struct mk_str a, struct mk_str side_scheme, struct mk_str b)
{
    a = strip_default_port(a, scheme);
    return a.len && mk_str_ieq(a, strip_default_port(b, side_scheme));
}

/* Cuts a byte off a path, which may be an escape; those of delimiters are no delimiters, and have values above 255. */
static int next_byte(struct mk_str *path)
{
    int escaped = mk_percent_value(path->p, path->len), byte = escaped < 0 ? (unsigned char)path->p[0] : escaped;
    *path = mk_str_after(*path, escaped < 0 ? 1 : 3);
    return escaped == '/' || escaped == '?' || escaped == '#' ? 256 + byte : byte;
}

/* Returns what follows a prefix in a path, if the path is that or below it; else `.p` is NULL. Pure. */
static struct mk_str strip_prefix(struct mk_str path, struct mk_str prefix)
{
    while (prefix.len)
        if (!path.len || next_byte(&path) != next_byte(&prefix))
            return MK_STR_NONE;
    return !path.len || strchr("/?#", path.p[0]) ? path : MK_STR_NONE;
}

/* ── URLs in headers ── */

/* ── texts ── */

/* Returns a buffer of this size in an arena; without memory one with an error. */
static struct mk_buf open_text(struct mk_arena *arena, size_t size)
{
    char *to = mk_arena_alloc(arena, size);
    struct mk_buf out;
    mk_buf_init_fixed(&out, to, to ? size : 0);
    return out;
}

/* Returns what was written, or `value` after an error. */
static struct mk_str close_text(const struct mk_buf *out, struct mk_str value)
{
    return out->err ? value : mk_buf_str(out);
}

/* Replaces a part of a text. Returns the text; without memory the old one. */
static struct mk_str replace_part(struct mk_str text, struct mk_str part, struct mk_str by, struct mk_arena *arena)
{
    size_t before = (size_t)(part.p - text.p);
    struct mk_buf out = open_text(arena, text.len - part.len + by.len + 1);
    mk_buf_adds(&out, mk_str(text.p, before));
    mk_buf_adds(&out, by);
    mk_buf_adds(&out, mk_str_after(text, before + part.len));
    return close_text(&out, text);
}

/* ── locations ── */

enum { LOCATION_MORE_BYTES = 3 }; /* that a location may be longer than prefix and value: a guard, a slash */

static bool has_authority(const struct mapping_side *side, struct mk_str scheme, struct mk_str authority)
{
    for (size_t i = 0; i < MK_COUNT_OF(side->authorities); i++)
        if (is_same_authority(scheme, authority, side->scheme, side->authorities[i]))
            return true;
    return false;
}

/* Tells whether a backend means itself or this host by an origin; without a scheme it is the one of the request. */
static bool is_own(const struct mapping *m, struct mk_str scheme, struct mk_str authority)
{
    scheme = scheme.len ? scheme : m->client.scheme;
    bool is_of_request = mk_str_eq(scheme, m->client.scheme);
    if (has_authority(&m->client, scheme, authority))
        return is_of_request;
    return (is_of_request || mk_str_eq(scheme, m->backend.scheme)) && has_authority(&m->backend, scheme, authority);
}

/*
 * Returns what follows the backend's prefix in a path of it; `.p` NULL: it has none. A path that is below both prefixes
 * belongs to the longer one, so an application that knows the client's prefix writes that itself.
 */
static struct mk_str strip_backend_prefix(const struct mapping *m, struct mk_str path)
{
    struct mk_str own = m->backend.prefix, other = m->client.prefix;
    bool has_other = other.len > own.len && strip_prefix(path, other).p;
    return has_other ? MK_STR_NONE : strip_prefix(path, own);
}

/*
 * Returns what keeps a path that has lost its origin from naming another one: two slashes would begin an authority (RFC
 * 3986 section 4.2). Browsers read a backslash as a slash, and drop tabs.
 */
static struct mk_str get_guard(struct mk_str path)
{
    size_t i = 1;
    while (i < path.len && path.p[i] == '\t')
        i++;
    return path.len && path.p[0] == '/' && i < path.len && strchr("/\\", path.p[i]) ? MK_STR("/.") : MK_STR("");
}

static bool starts_with_slash(struct mk_str path)
{
    return path.len && path.p[0] == '/';
}

static void write_location(const struct mapping *m, struct mk_str url, struct mk_buf *out)
{
    struct mk_str scheme, authority, path = split_origin(url, &scheme, &authority);
    bool has_origin = path.p != url.p;
    if (has_origin ? !is_own(m, scheme, authority) : !starts_with_slash(url)) {
        mk_buf_adds(out, url);
        return;
    }
    struct mk_str rest = strip_backend_prefix(m, path), prefix = rest.p ? m->client.prefix : MK_STR("");
    path = rest.p ? rest : path;
    if (!prefix.len && path.p != url.p)
        prefix = get_guard(path);
    mk_buf_adds(out, prefix);
    if (!starts_with_slash(path))
        mk_buf_addc(out, '/');
    mk_buf_adds(out, path);
}

struct mk_str rewrite_location(const struct mapping *m, struct mk_str value, struct mk_arena *arena)
{
    struct mk_buf out = open_text(arena, value.len + m->client.prefix.len + LOCATION_MORE_BYTES + 1);
    write_location(m, value, &out);
    return close_text(&out, value);
}

/* ── Refresh ── */

/* Removes a word, and blanks around it, from the start of a text. Returns whether it was there. */
static bool skip_word(struct mk_str *rest, struct mk_str word)
{
    if (!mk_str_istarts(*rest, word))
        return false;
    *rest = mk_str_trim(mk_str_after(*rest, word.len));
    return true;
}

/* Returns the URL within a value, as HTML reads it ("shared declarative refresh steps"); empty: there is none. */
static struct mk_str find_refresh_url(struct mk_str value)
{
    struct mk_str rest = mk_str_trim(value);
    while (rest.len && ((rest.p[0] >= '0' && rest.p[0] <= '9') || rest.p[0] == '.'))
        rest = mk_str_after(rest, 1);
    rest = mk_str_trim(rest);
    if (!skip_word(&rest, MK_STR(";")) && !skip_word(&rest, MK_STR(",")))
        return MK_STR("");
    struct mk_str url = rest;
    if (skip_word(&rest, MK_STR("url")) && skip_word(&rest, MK_STR("=")))
        url = rest;
    if (url.len && url.p[0] == '"')
        return mk_str_until(mk_str_after(url, 1), "\"");
    return url.len && url.p[0] == '\'' ? mk_str_until(mk_str_after(url, 1), "'") : url;
}

struct mk_str rewrite_refresh(const struct mapping *m, struct mk_str value, struct mk_arena *arena)
{
    struct mk_str url = find_refresh_url(value);
    return url.len ? replace_part(value, url, rewrite_location(m, url, arena), arena) : value;
}

/* ── Link ── */

/* Returns the length of what is before the next target and its `<`, which quoted strings of parameters may have. */
static size_t find_target(struct mk_str links)
{
    bool is_quoted = false;
    size_t i = 0;
    for (; i < links.len && (is_quoted || links.p[i] != '<'); i++) {
        if (is_quoted && links.p[i] == '\\')
            i += i + 1 < links.len;
        else if (links.p[i] == '"')
            is_quoted = !is_quoted;
    }
    return i < links.len ? i + 1 : i;
}

static size_t count_byte(struct mk_str s, char byte)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += s.p[i] == byte;
    return n;
}

struct mk_str rewrite_link(const struct mapping *m, struct mk_str value, struct mk_arena *arena)
{
    size_t more = count_byte(value, '<') * (m->client.prefix.len + LOCATION_MORE_BYTES);
    struct mk_buf out = open_text(arena, value.len + more + 1);
    for (struct mk_str rest = value; rest.len;) {
        size_t before = find_target(rest);
        mk_buf_adds(&out, mk_str(rest.p, before));
        rest = mk_str_after(rest, before);
        struct mk_str url = mk_str_until(rest, ">");
        if (url.len < rest.len)
            write_location(m, url, &out);
        else
            mk_buf_adds(&out, url);
        rest = mk_str_after(rest, url.len);
    }
    return close_text(&out, value);
}

/* ── Set-Cookie ── */

/* Returns the value of the last attribute of that name, which points into the cookie; `.p` NULL: there is none. */
static struct mk_str find_attribute(struct mk_str cookie, struct mk_str name)
{
    struct mk_str found = MK_STR_NONE;
    const char *at = memchr(cookie.p, ';', cookie.len), *end = cookie.p + cookie.len;
    while (at) {
        const char *start = at + 1, *next = memchr(start, ';', (size_t)(end - start));
        size_t len = (size_t)((next ? next : end) - start);
        const char *sign = memchr(start, '=', len);
        if (sign && mk_str_ieq(mk_str_trim(mk_str(start, (size_t)(sign - start))), name))
            found = mk_str_trim(mk_str(sign + 1, (size_t)(start + len - sign - 1)));
        at = next;
    }
    return found;
}

static struct mk_str rewrite_path(const struct mapping *m, struct mk_str cookie, struct mk_arena *arena)
{
    struct mk_str path = find_attribute(cookie, MK_STR("Path")), prefix = m->client.prefix, own = m->backend.prefix;
    struct mk_str rest = path.len && path.p[0] == '/' ? strip_backend_prefix(m, path) : MK_STR_NONE;
    if (!rest.p || (!prefix.len && !own.len))
        return cookie;
    if (!own.len && rest.len == 1)
        rest.len = 0; /* the path / becomes /prefix, which is also sent for that path itself */
    if (!prefix.len && !rest.len)
        rest = MK_STR("/");
    struct mk_buf by = open_text(arena, prefix.len + rest.len + 1);
    mk_buf_adds(&by, prefix);
    mk_buf_adds(&by, rest);
    return by.err ? cookie : replace_part(cookie, path, mk_buf_str(&by), arena);
}

/* Returns an authority without its port. */
static struct mk_str strip_port(struct mk_str authority)
{
    size_t n = authority.len;
    while (n && authority.p[n - 1] >= '0' && authority.p[n - 1] <= '9')
        n--;
    return n && authority.p[n - 1] == ':' ? mk_str(authority.p, n - 1) : authority;
}

/* Tells whether a domain is the host of an authority; a dot before it does not count (RFC 6265 section 5.2.3). */
static bool is_domain_of(struct mk_str domain, struct mk_str authority)
{
    if (domain.len && domain.p[0] == '.')
        domain = mk_str_after(domain, 1);
    return domain.len && mk_str_ieq(domain, strip_port(authority));
}

/* Tells whether a host cannot begin another attribute. */
static bool is_plain(struct mk_str host)
{
    return host.len && mk_str_is_visible(host, ";,=\"\\");
}

static struct mk_str rewrite_domain(const struct mapping *m, struct mk_str cookie, struct mk_arena *arena)
{
    struct mk_str domain = find_attribute(cookie, MK_STR("Domain"));
    bool is_backend = false;
    for (size_t i = 0; i < MK_COUNT_OF(m->backend.authorities); i++)
        is_backend |= is_domain_of(domain, m->backend.authorities[i]);
    struct mk_str host = m->client.authorities[1].len ? strip_port(m->client.authorities[1]) : m->host;
    if (!is_backend || !is_plain(host) || is_domain_of(domain, host))
        return cookie;
    return replace_part(cookie, domain, host, arena);
}

struct mk_str rewrite_cookie(const struct mapping *m, struct mk_str value, struct mk_arena *arena)
{
    if (mk_str_istarts(value, MK_STR("__Host-")))
        return value;
    return rewrite_domain(m, rewrite_path(m, value, arena), arena);
}

/* ── Destination ── */

/* Returns the path of the section that a URL names; `.p` NULL: it names something else. */
static struct mk_str find_section_path(const struct mapping *m, struct mk_str url, bool *ret_has_origin)
{
    struct mk_str scheme, authority, path = split_origin(url, &scheme, &authority);
    *ret_has_origin = path.p != url.p;
    bool is_ours = *ret_has_origin ? mk_str_eq(scheme, m->client.scheme) && has_authority(&m->client, scheme, authority)
                                   : starts_with_slash(path);
    return is_ours ? strip_prefix(path, m->client.prefix) : MK_STR_NONE;
}

void rewrite_write_destination(const struct mapping *m, struct mk_str url, struct mk_buf *out)
{
    bool has_origin;
    struct mk_str path = find_section_path(m, url, &has_origin);
    if (!path.p) {
        mk_buf_adds(out, url);
        return;
    }
    if (has_origin) {
        mk_buf_adds(out, m->backend.scheme);
        mk_buf_adds(out, MK_STR("://"));
        mk_buf_adds(out, m->backend.authorities[0]);
    }
    mk_buf_adds(out, m->backend.prefix.len || has_origin ? m->backend.prefix : get_guard(path));
    if (!m->backend.prefix.len && !starts_with_slash(path))
        mk_buf_addc(out, '/');
    mk_buf_adds(out, path);
}

/* ── If ── */

/* Returns the length of what is before the next resource tag, with its `<`: lists, whose tokens and tags are skipped.
 */
static size_t find_resource_tag(struct mk_str value)
{
    char end = 0; /* of what the position is in: a list, or a token or an entity tag within it */
    bool is_in_list = false;
    for (size_t i = 0; i < value.len; i++) {
        char c = value.p[i];
        if (end)
            end = c == end ? 0 : end;
        else if (c == '<' && !is_in_list)
            return i + 1;
        else if (c == '<' || c == '"')
            end = c == '<' ? '>' : '"';
        else if (c == '(' || c == ')')
            is_in_list = c == '(';
    }
    return value.len;
}

void rewrite_write_if(const struct mapping *m, struct mk_str value, struct mk_buf *out)
{
    while (value.len) {
        size_t before = find_resource_tag(value);
        mk_buf_adds(out, mk_str(value.p, before));
        value = mk_str_after(value, before);
        struct mk_str url = mk_str_until(value, ">");
        if (url.len < value.len)
            rewrite_write_destination(m, url, out);
        else
            mk_buf_adds(out, url);
        value = mk_str_after(value, url.len);
    }
}

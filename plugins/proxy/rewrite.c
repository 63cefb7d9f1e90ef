// SPDX-License-Identifier: Apache-2.0
/*
 * Location and Set-Cookie of a backend (rewrite.h).
 */
#include "rewrite.h"

#include <monkey/arena.h>
#include <monkey/buf.h>

#include <strings.h>

/* ── the mapping of a section ── */

/* Returns the path after the one of `To`, if it is below that; else `.p` is NULL. */
static struct mk_str remove_prefix(struct mk_str path, struct mk_str prefix)
{
    if (path.len < prefix.len || memcmp(path.p, prefix.p, prefix.len) != 0)
        return MK_STR_NONE;
    struct mk_str rest = mk_str(path.p + prefix.len, path.len - prefix.len);
    return !rest.len || strchr("/?#", rest.p[0]) ? rest : MK_STR_NONE;
}

static bool replaces_prefix(const struct proxy_conf *conf)
{
    return conf->strip_prefix || conf->gateway.to.path.p;
}

/* Returns the prefix of `Match`, without a slash at its end. */
static struct mk_str get_prefix(const struct proxy_conf *conf)
{
    return mk_str_strip_end(conf->gateway.match.text, "/");
}

/* Returns the name that HostHeader gives the backend; empty: none. */
static struct mk_str get_host_name(const struct proxy_conf *conf)
{
    struct mk_str name = conf->host_header;
    return mk_str_ieq(name, MK_STR("Client")) || mk_str_ieq(name, MK_STR("Backend")) ? MK_STR("") : name;
}

/* Returns `a`, `b` and `c` in a row; `.p` is NULL without memory. */
static struct mk_str join_texts(struct mk_arena *arena, struct mk_str a, struct mk_str b, struct mk_str c)
{
    size_t len = a.len + b.len + c.len;
    char *to = mk_arena_alloc(arena, len + 1);
    struct mk_buf out;
    if (!to)
        return MK_STR_NONE;
    mk_buf_init_fixed(&out, to, len + 1);
    mk_buf_adds(&out, a);
    mk_buf_adds(&out, b);
    mk_buf_adds(&out, c);
    return mk_str(to, len);
}

/* ── Location ── */

/* Returns what follows scheme and authority, if `url` begins with them; else `.p` is NULL. */
static struct mk_str strip_origin(struct mk_str url, struct mk_str authority)
{
    size_t scheme = url.len >= 8 && strncasecmp(url.p, "https://", 8) == 0  ? 8
                    : url.len >= 7 && strncasecmp(url.p, "http://", 7) == 0 ? 7
                                                                            : 0;
    if (!scheme || !authority.len || url.len < scheme + authority.len ||
        !mk_str_ieq(mk_str(url.p + scheme, authority.len), authority))
        return MK_STR_NONE;
    struct mk_str rest = mk_str(url.p + scheme + authority.len, url.len - scheme - authority.len);
    return !rest.len || strchr("/?#", rest.p[0]) ? rest : MK_STR_NONE;
}

/* Returns what follows the origin, if it is the backend or this host; else `.p` is NULL. */
static struct mk_str strip_own_origin(const struct proxy_conf *conf, struct mk_str authority, struct mk_str value)
{
    const struct mk_str own[] = {conf->gateway.to.authority, get_host_name(conf), authority};
    struct mk_str path = value.len && value.p[0] == '/' && !(value.len > 1 && value.p[1] == '/') ? value : MK_STR_NONE;
    for (size_t i = 0; i < MK_COUNT_OF(own) && !path.p; i++)
        path = strip_origin(value, own[i]);
    return path;
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

struct mk_str rewrite_location(const struct proxy_conf *conf, struct mk_str authority, struct mk_str value,
                               struct mk_arena *arena)
{
    struct mk_str path = strip_own_origin(conf, authority, value), prefix = MK_STR("");
    if (!path.p)
        return value;
    struct mk_str rest = remove_prefix(path, conf->gateway.to.path.p ? conf->gateway.to.path : MK_STR(""));
    if (replaces_prefix(conf) && rest.p) {
        prefix = get_prefix(conf);
        path = rest;
    }
    if (!prefix.len && path.p != value.p)
        prefix = get_guard(path);
    bool has_slash = path.len && path.p[0] == '/';
    struct mk_str location = join_texts(arena, prefix, has_slash ? MK_STR("") : MK_STR("/"), path);
    return location.p ? location : value;
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

/* Replaces a value within a cookie, which it points into. Returns the cookie; without memory the old one. */
static struct mk_str replace_value(struct mk_str cookie, struct mk_str value, struct mk_str by, struct mk_arena *arena)
{
    size_t before = (size_t)(value.p - cookie.p), behind = before + value.len;
    struct mk_str replaced = join_texts(arena, mk_str(cookie.p, before), by, mk_str_after(cookie, behind));
    return replaced.p ? replaced : cookie;
}

static struct mk_str rewrite_path(const struct proxy_conf *conf, struct mk_str cookie, struct mk_arena *arena)
{
    struct mk_str path = find_attribute(cookie, MK_STR("Path")),
                  own = conf->gateway.to.path.p ? conf->gateway.to.path : MK_STR("");
    struct mk_str rest = path.len && path.p[0] == '/' ? remove_prefix(path, own) : MK_STR_NONE,
                  prefix = get_prefix(conf);
    if (!replaces_prefix(conf) || !rest.p)
        return cookie;
    if (!own.len && rest.len == 1)
        rest.len = 0; /* the path / becomes /prefix, which is also sent for that path itself */
    if (!prefix.len && !rest.len)
        rest = MK_STR("/");
    struct mk_str by = join_texts(arena, prefix, rest, MK_STR(""));
    return by.p ? replace_value(cookie, path, by, arena) : cookie;
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

static struct mk_str rewrite_domain(const struct proxy_conf *conf, struct mk_str host, struct mk_str cookie,
                                    struct mk_arena *arena)
{
    struct mk_str domain = find_attribute(cookie, MK_STR("Domain"));
    bool is_own = is_domain_of(domain, conf->gateway.to.authority) || is_domain_of(domain, get_host_name(conf));
    if (!is_own || !is_plain(host) || is_domain_of(domain, host))
        return cookie;
    return replace_value(cookie, domain, host, arena);
}

struct mk_str rewrite_cookie(const struct proxy_conf *conf, struct mk_str host, struct mk_str value,
                             struct mk_arena *arena)
{
    enum { PREFIX_BYTES = 7 };
    if (value.len >= PREFIX_BYTES && strncasecmp(value.p, "__Host-", PREFIX_BYTES) == 0)
        return value;
    return rewrite_domain(conf, host, rewrite_path(conf, value, arena), arena);
}

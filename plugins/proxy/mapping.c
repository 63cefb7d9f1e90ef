// SPDX-License-Identifier: Apache-2.0
/*
 * Origins and prefixes of a request (mapping.h).
 */
#include "mapping.h"

#include <monkey/base/arena.h>
#include <monkey/base/escape.h>

#include <errno.h>
#include <strings.h>

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
        m->client.authorities[1] = mk_request_header_by_name(req, MK_STR("X-Forwarded-Host"));
    if (!conf->strip_prefix && !to->path.p)
        return 0;
    m->backend.prefix = to->path;
    m->client.prefix = encode_prefix(conf, mk_request_arena(req));
    return m->client.prefix.p ? 0 : -ENOMEM;
}

/* ── URLs ── */

struct mk_str mapping_split_origin(struct mk_str url, struct mk_str *ret_scheme, struct mk_str *ret_authority)
{
    static const struct mk_str starts[] = {MK_STR_INIT("https://"), MK_STR_INIT("http://"), MK_STR_INIT("//")};
    *ret_scheme = *ret_authority = MK_STR("");
    for (size_t i = 0; i < MK_COUNT_OF(starts); i++) {
        size_t n = starts[i].len;
        if (url.len < n || strncasecmp(url.p, starts[i].p, n) != 0)
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

bool mapping_is_same(struct mk_str scheme, struct mk_str a, struct mk_str side_scheme, struct mk_str b)
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

struct mk_str mapping_strip_prefix(struct mk_str path, struct mk_str prefix)
{
    while (prefix.len)
        if (!path.len || next_byte(&path) != next_byte(&prefix))
            return MK_STR_NONE;
    return !path.len || strchr("/?#", path.p[0]) ? path : MK_STR_NONE;
}

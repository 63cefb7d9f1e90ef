// SPDX-License-Identifier: Apache-2.0
/*
 * Parses URLs and resolves names, before the load begins.
 */
#include "target.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>

static bool skip_prefix(struct mk_str *s, struct mk_str prefix)
{
    if (!mk_str_starts(*s, prefix))
        return false;
    *s = mk_str(s->p + prefix.len, s->len - prefix.len);
    return true;
}

/* Splits `host:port` or `[v6]:port`. Returns false when a part is missing or too long. */
static bool split_authority(struct target *t, struct mk_str authority)
{
    const char *colon = memrchr(authority.p, ':', authority.len);
    const char *bracket = authority.len && authority.p[0] == '[' ? memchr(authority.p, ']', authority.len) : NULL;
    if (colon && (bracket ? colon < bracket : memchr(authority.p, ':', authority.len) != colon))
        colon = NULL;
    const char *end = authority.p + authority.len;
    struct mk_str host = mk_str(authority.p, (size_t)((colon ? colon : end) - authority.p));
    struct mk_str port = colon ? mk_str(colon + 1, (size_t)(end - colon - 1)) : mk_str_c(t->tls ? "443" : "80");
    if (bracket ? bracket != host.p + host.len - 1 : memchr(host.p, ':', host.len) != NULL)
        return false;
    if (bracket)
        host = mk_str(host.p + 1, host.len - 2);
    if (!host.len || host.len >= sizeof(t->host) || !port.len || port.len > 5)
        return false;
    unsigned number = 0;
    for (size_t i = 0; i < port.len; i++) {
        if (port.p[i] < '0' || port.p[i] > '9')
            return false;
        number = number * 10 + (unsigned)(port.p[i] - '0');
    }
    snprintf(t->host, sizeof(t->host), "%.*s", MK_STR_ARG(host));
    snprintf(t->port, sizeof(t->port), "%u", number);
    bool usual = number == (t->tls ? 443 : 80);
    snprintf(t->authority, sizeof(t->authority), "%s%s%s%s%s", bracket ? "[" : "", t->host, bracket ? "]" : "",
             usual ? "" : ":", usual ? "" : t->port);
    return number > 0 && number <= 65535;
}

static bool read_scheme(struct target *t, struct mk_str *rest)
{
    static const struct {
        struct mk_str prefix;
        bool tls, websocket;
    } schemes[] = {
        {MK_STR("http://"), false, false},
        {MK_STR("https://"), true, false},
        {MK_STR("ws://"), false, true},
        {MK_STR("wss://"), true, true},
    };
    for (size_t i = 0; i < MK_COUNT_OF(schemes); i++) {
        *t = (struct target){.tls = schemes[i].tls, .websocket = schemes[i].websocket};
        if (skip_prefix(rest, schemes[i].prefix))
            return true;
    }
    return false;
}

int target_parse(struct target *t, const char *url, struct mk_str *ret_path, const char **ret_error)
{
    struct mk_str rest = mk_str_c(url);
    *ret_error = NULL;
    if (!read_scheme(t, &rest)) {
        *ret_error = "a URL begins with http://, https://, ws:// or wss://";
        return -EINVAL;
    }
    struct mk_str authority = mk_str_until(rest, "/");
    *ret_path = authority.len < rest.len ? mk_str_after(rest, authority.len) : MK_STR("/");
    for (const char *p = url; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f || *p == '#')
            *ret_error = "a URL has no blanks, control bytes or #";
    if (!split_authority(t, authority))
        *ret_error = "the server is given as NAME, NAME:PORT or [V6]:PORT, with a port from 1 to 65535";
    return *ret_error ? -EINVAL : 0;
}

bool target_equal(const struct target *a, const struct target *b)
{
    return a->tls == b->tls && a->websocket == b->websocket && strcmp(a->host, b->host) == 0 &&
           strcmp(a->port, b->port) == 0;
}

int target_resolve(struct target *t, const char **ret_error)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
    int err = getaddrinfo(t->host, t->port, &hints, &found);
    if (err) {
        *ret_error = gai_strerror(err);
        return -ENOENT;
    }
    for (struct addrinfo *a = found; a && t->addresses_n < TARGET_ADDRESSES_MAX; a = a->ai_next) {
        struct mk__addr *to = &t->addresses[t->addresses_n++];
        memcpy(to, a->ai_addr, a->ai_addrlen);
        to->len = a->ai_addrlen;
    }
    freeaddrinfo(found);
    return 0;
}

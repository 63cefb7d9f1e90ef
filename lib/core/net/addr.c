// SPDX-License-Identifier: Apache-2.0
/*
 * Reads and writes socket addresses (net/addr.h).
 */
#include "net/addr.h"

#include <assert.h>
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>

static int set_error(const char **ret_error, const char *reason)
{
    *ret_error = reason;
    return -EINVAL;
}

static int parse_unix(struct mk_str path, struct mk__addr *ret, const char **ret_error)
{
    if (path.len == 0 || path.p[0] != '/')
        return set_error(ret_error, "a Unix socket needs an absolute path: unix:/run/monkey.sock");
    if (path.len >= sizeof(ret->un.sun_path))
        return set_error(ret_error, "the path of a Unix socket has at most 107 bytes");
    *ret = (struct mk__addr){.un.sun_family = AF_UNIX};
    memcpy(ret->un.sun_path, path.p, path.len);
    ret->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.len + 1);
    return 0;
}

int mk__addr_parse_host(struct mk_str host, struct mk__addr *ret)
{
    char text[INET6_ADDRSTRLEN + 1];
    bool bracketed = host.len >= 2 && host.p[0] == '[' && host.p[host.len - 1] == ']';
    if (bracketed)
        host = mk_str(host.p + 1, host.len - 2);
    if (host.len >= sizeof(text))
        return -EINVAL;
    memcpy(text, host.p, host.len);
    text[host.len] = '\0';
    if (bracketed && inet_pton(AF_INET6, text, &ret->in6.sin6_addr) == 1) {
        ret->in6.sin6_family = AF_INET6;
        ret->len = sizeof(ret->in6);
        return 0;
    }
    if (!bracketed && inet_pton(AF_INET, text, &ret->in.sin_addr) == 1) {
        ret->in.sin_family = AF_INET;
        ret->len = sizeof(ret->in);
        return 0;
    }
    return -EINVAL;
}

/* Returns the index of an interface, by its name or number; 0: there is none. */
static unsigned find_interface(struct mk_str zone)
{
    char name[IF_NAMESIZE];
    uint64_t index;
    if (mk_str_u64(zone, UINT32_MAX, &index))
        return (unsigned)index;
    if (!zone.len || zone.len >= sizeof(name))
        return 0;
    memcpy(name, zone.p, zone.len);
    name[zone.len] = '\0';
    return if_nametoindex(name);
}

/* Parses an address with its zone (RFC 4007 section 11): "[fe80::1%eth0]". */
static int parse_zoned(struct mk_str host, size_t percent, struct mk__addr *ret, const char **ret_error)
{
    char text[INET6_ADDRSTRLEN + 2];
    if (percent >= sizeof(text) - 1 || host.p[host.len - 1] != ']')
        return -EINVAL;
    memcpy(text, host.p, percent);
    text[percent] = ']';
    if (mk__addr_parse_host(mk_str(text, percent + 1), ret) < 0 || ret->sa.sa_family != AF_INET6)
        return -EINVAL;
    if (!IN6_IS_ADDR_LINKLOCAL(&ret->in6.sin6_addr))
        return set_error(ret_error, "only a link-local address (fe80::) has an interface behind it");
    ret->in6.sin6_scope_id = find_interface(mk_str(host.p + percent + 1, host.len - percent - 2));
    return ret->in6.sin6_scope_id ? 0 : set_error(ret_error, "there is no interface of that name");
}

/* Parses an address without a port. A link-local one is not complete without its interface. */
static int parse_numeric(struct mk_str host, struct mk__addr *ret, const char **ret_error)
{
    const char *percent = host.len ? memchr(host.p, '%', host.len) : NULL;
    *ret_error = "the address must be numeric: 127.0.0.1:80, [::1]:80 or *:80";
    if (percent)
        return parse_zoned(host, (size_t)(percent - host.p), ret, ret_error);
    int err = mk__addr_parse_host(host, ret);
    if (err == 0 && ret->sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&ret->in6.sin6_addr))
        return set_error(ret_error, "a link-local address needs its interface: [fe80::1%eth0]:80");
    return err;
}

/* Returns what is wrong with a text that is no address, if other servers write addresses so; else `otherwise`. */
static MK_COLD const char *explain_text(struct mk_str text, const char *otherwise)
{
    const char *colon = text.len ? memchr(text.p, ':', text.len) : NULL;
    if (mk_str_starts(text, MK_STR("/")))
        return "a socket's path begins with unix: unix:/run/monkey.sock";
    if (text.len && memmem(text.p, text.len, "://", 3))
        return "an address has no scheme: 127.0.0.1:80, [::1]:80 or *:80";
    if (colon && text.p[0] != '[' && memchr(colon + 1, ':', text.len - (size_t)(colon + 1 - text.p)))
        return "an IPv6 address needs brackets: [::1]:80";
    const char *dash = text.len ? memchr(text.p, '-', text.len) : NULL;
    uint64_t first, last;
    if (dash && mk_str_u64(mk_str(text.p, (size_t)(dash - text.p)), UINT16_MAX, &first) &&
        mk_str_u64(mk_str_after(text, (size_t)(dash + 1 - text.p)), UINT16_MAX, &last))
        return "a line has one port: write a line for each";
    return otherwise;
}

int mk__addr_parse(struct mk_str text, struct mk__addr *ret, const char **ret_error)
{
    assert(ret_error);
    uint64_t port;
    if (mk_str_starts(text, MK_STR("unix:")))
        return parse_unix(mk_str_after(text, 5), ret, ret_error);
    const char *colon = text.len ? memrchr(text.p, ':', text.len) : NULL;
    struct mk_str host = colon ? mk_str(text.p, (size_t)(colon - text.p)) : MK_STR("*");
    struct mk_str digits = colon ? mk_str(colon + 1, text.len - host.len - 1) : text;
    if (!mk_str_u64(digits, UINT16_MAX, &port))
        return set_error(ret_error, explain_text(text, "the port must be a number from 0 to 65535"));
    *ret = (struct mk__addr){.any = mk_str_eq(host, MK_STR("*"))};
    if (ret->any) {
        ret->in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
        ret->len = sizeof(ret->in6);
    } else if (parse_numeric(host, ret, ret_error) < 0) {
        return set_error(ret_error, explain_text(text, *ret_error));
    }
    mk__addr_set_port(ret, (uint16_t)port);
    return 0;
}

bool mk__addr_is_local(const struct mk__addr *addr)
{
    if (addr->any)
        return false;
    if (addr->sa.sa_family == AF_INET)
        return ntohl(addr->in.sin_addr.s_addr) >> 24 == 127;
    return addr->sa.sa_family != AF_INET6 || IN6_IS_ADDR_LOOPBACK(&addr->in6.sin6_addr);
}

uint16_t mk__addr_port(const struct mk__addr *addr)
{
    switch (addr->sa.sa_family) {
    case AF_INET:
        return ntohs(addr->in.sin_port);
    case AF_INET6:
        return ntohs(addr->in6.sin6_port);
    default:
        return 0;
    }
}

void mk__addr_set_port(struct mk__addr *addr, uint16_t port)
{
    if (addr->sa.sa_family == AF_INET)
        addr->in.sin_port = htons(port);
    else if (addr->sa.sa_family == AF_INET6)
        addr->in6.sin6_port = htons(port);
}

bool mk__addr_equal(const struct mk__addr *a, const struct mk__addr *b)
{
    return a->any == b->any && a->len == b->len && memcmp(&a->sa, &b->sa, a->len) == 0;
}

bool mk__addr_is_unspecified(const struct mk__addr *addr)
{
    return addr->sa.sa_family == AF_INET ? addr->in.sin_addr.s_addr == htonl(INADDR_ANY)
                                         : IN6_IS_ADDR_UNSPECIFIED(&addr->in6.sin6_addr);
}

/* Compares addresses of one family without their ports. A scope ID of 0 is that of an unknown interface. */
static bool is_same_host(const struct mk__addr *a, const struct mk__addr *b)
{
    if (a->sa.sa_family == AF_INET)
        return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
    uint32_t scope = a->in6.sin6_scope_id, other = b->in6.sin6_scope_id;
    return IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr) && (scope == other || !scope || !other);
}

bool mk__addr_conflicts(const struct mk__addr *a, const struct mk__addr *b)
{
    if (a->sa.sa_family == AF_UNIX || b->sa.sa_family == AF_UNIX)
        return a->sa.sa_family == b->sa.sa_family && strcmp(a->un.sun_path, b->un.sun_path) == 0;
    if (mk__addr_port(a) != mk__addr_port(b) || mk__addr_port(a) == 0)
        return false;
    bool same_family = a->sa.sa_family == b->sa.sa_family;
    return a->any || b->any ||
           (same_family && (mk__addr_is_unspecified(a) || mk__addr_is_unspecified(b) || is_same_host(a, b)));
}

/* Appends "%eth0", or the number of an interface that has gone. */
static void print_zone(uint32_t scope, struct mk_buf *out)
{
    char name[IF_NAMESIZE];
    if (!scope)
        return;
    if (if_indextoname(scope, name))
        mk_buf_addf(out, "%%%s", name);
    else
        mk_buf_addf(out, "%%%u", scope);
}

void mk__addr_print(const struct mk__addr *addr, struct mk_buf *out)
{
    assert(addr->any || addr->len);
    char text[INET6_ADDRSTRLEN];
    if (addr->any) {
        mk_buf_addf(out, "*:%u", mk__addr_port(addr));
        return;
    }
    switch (addr->sa.sa_family) {
    case AF_INET:
        inet_ntop(AF_INET, &addr->in.sin_addr, text, sizeof(text));
        mk_buf_addf(out, "%s:%u", text, mk__addr_port(addr));
        break;
    case AF_INET6:
        inet_ntop(AF_INET6, &addr->in6.sin6_addr, text, sizeof(text));
        mk_buf_addf(out, "[%s", text);
        print_zone(addr->in6.sin6_scope_id, out);
        mk_buf_addf(out, "]:%u", mk__addr_port(addr));
        break;
    default:
        mk_buf_addf(out, "unix:%s", addr->un.sun_path);
    }
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Tells whether connections to an address come back to a Listen line of this server (mk_generation_listens()).
 */
#include "server/generation/generation.h"
#include "server/listen/names.h"

#include <monkey/base/dial.h>

#include <errno.h>
#include <sys/stat.h>

/* Tells whether a listener accepts connections to an address of this machine, which has no port here. */
static bool accepts_at(const struct mk__addr *listener, const struct mk__addr *to)
{
    struct mk__addr own = *listener;
    mk__addr_set_port(&own, 0);
    bool is_wildcard = own.any || (own.sa.sa_family == to->sa.sa_family && mk__addr_is_unspecified(&own));
    return is_wildcard ? mk__listen_names_is_own(to) : mk__addr_equal(&own, to);
}

/* A connection to an unspecified address is one to the loopback address. */
static struct mk__addr make_addr(const struct mk_address *address)
{
    struct mk__addr to = {.sa.sa_family = address->family};
    to.len = address->family == AF_INET6 ? sizeof(to.in6) : sizeof(to.in);
    if (address->family == AF_INET6)
        memcpy(&to.in6.sin6_addr, address->bytes, sizeof(to.in6.sin6_addr));
    else
        memcpy(&to.in.sin_addr, address->bytes, sizeof(to.in.sin_addr));
    if (mk__addr_is_unspecified(&to) && address->family == AF_INET)
        to.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else if (mk__addr_is_unspecified(&to))
        to.in6.sin6_addr = in6addr_loopback;
    return to;
}

/* Finds the addresses of this machine that a host names. Returns their number. */
static unsigned find_addresses(struct mk_str host, struct mk__addr to[MK__LISTEN_NAMES_MAX])
{
    static const struct mk_str suffix = MK_STR_INIT(".localhost"); /* RFC 6761 section 6.3 */
    struct mk_address address;
    const char *error;
    if (mk_address_parse(host, &address) == 0) {
        to[0] = make_addr(&address);
        return 1;
    }
    if (mk_str_iends(host, suffix))
        host = MK_STR("localhost");
    int n = mk__listen_names_resolve(host, to, MK__LISTEN_NAMES_MAX, &error);
    return n < 0 ? 0 : (unsigned)n;
}

static bool is_same_socket(const struct mk__addr *listener, const char *path)
{
    struct stat a, b;
    if (listener->sa.sa_family != AF_UNIX)
        return false;
    return strcmp(listener->un.sun_path, path) == 0 || (stat(listener->un.sun_path, &a) == 0 && stat(path, &b) == 0 &&
                                                        a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

MK_COLD bool mk_generation_listens(const struct mk_generation *g, const struct mk_dial_target *target)
{
    const struct mk__listen_confs *all = &g->settings->listen;
    struct mk__addr to[MK__LISTEN_NAMES_MAX];
    unsigned n = target->port ? find_addresses(target->host, to) : 0;
    for (uint32_t i = 0; i < all->n; i++) {
        const struct mk__addr *listener = &all->items[i].addr;
        if (!target->port && is_same_socket(listener, target->host.p))
            return true;
        bool is_port = target->port && mk__addr_port(listener) == target->port;
        for (unsigned k = 0; is_port && k < n; k++)
            if (accepts_at(listener, &to[k]))
                return true;
    }
    return false;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Socket addresses as people write them. Names are never resolved here.
 */
#ifndef MK_NET_ADDR_H
#define MK_NET_ADDR_H

#include <monkey/address.h>
#include <monkey/buf.h>
#include <monkey/str.h>

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <netinet/in.h>

struct mk__addr {
    union {
        struct sockaddr sa;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
    };
    socklen_t len;
    bool any; /* all addresses of this machine, IPv4 and IPv6 */
};

/*
 * Reads `port`, `address:port`, `[v6]:port`, `*:port` or `unix:/path`. 0, or -EINVAL with a reason in
 * `error` (a phrase for people).
 */
int mk__addr_parse(struct mk_str text, struct mk__addr *ret, const char **ret_error);
/* The same of an address alone: `192.0.2.1` or `[::1]`, without changing a port that `ret` has. 0 or -EINVAL. */
int mk__addr_parse_host(struct mk_str host, struct mk__addr *ret);

/* The same form again: `127.0.0.1:80`, `[::1]:80`, `unix:/run/x`. */
void mk__addr_print(const struct mk__addr *addr, struct mk_buf *out);

/* Are they written alike? */
bool mk__addr_equal(const struct mk__addr *a, const struct mk__addr *b);

/* Can only one of them be bound? Port 0 never clashes. */
bool mk__addr_conflicts(const struct mk__addr *a, const struct mk__addr *b);

/* 0 for Unix sockets. */
uint16_t mk__addr_port(const struct mk__addr *addr);
void mk__addr_set_port(struct mk__addr *addr, uint16_t port);

/* Converts `addr` to the public form. Inline, because builds for small devices have no mk_address_set(). */
static inline void mk__addr_to_address(const struct mk__addr *addr, struct mk_address *ret)
{
    bool v6 = addr->sa.sa_family == AF_INET6;
    const void *bytes = v6 ? (const void *)&addr->in6.sin6_addr : &addr->in.sin_addr;
    mk_address_set(ret, addr->sa.sa_family, bytes, mk__addr_port(addr));
}

#endif

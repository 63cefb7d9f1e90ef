// SPDX-License-Identifier: Apache-2.0
/*
 * Socket addresses, and the form in which configurations write them. Names are not resolved here.
 */
#ifndef MK_NET_ADDR_H
#define MK_NET_ADDR_H

#include <monkey/base/address.h>
#include <monkey/base/buf.h>
#include <monkey/base/str.h>

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
    bool any; /* all addresses of this machine, IPv4 and IPv6 (`*`) */
};

/*
 * Reads `port`, `address:port`, `[v6]:port`, `[v6%interface]:port`, `*:port` or `unix:/path`.
 * Returns 0, or -EINVAL with a phrase for people in `*ret_error`.
 */
int mk__addr_parse(struct mk_str text, struct mk__addr *ret, const char **ret_error);
/* Reads an address without a port: `192.0.2.1` or `[::1]`. Keeps the port in `ret`. Returns 0 or -EINVAL. */
int mk__addr_parse_host(struct mk_str host, struct mk__addr *ret);

/* Appends the address in the form that mk__addr_parse() reads: `127.0.0.1:80`, `[::1]:80`, `unix:/run/x`. */
void mk__addr_print(const struct mk__addr *addr, struct mk_buf *out);

/* Tells whether an IPv4 or IPv6 address means all of the machine's: 0.0.0.0 or [::]. */
bool mk__addr_is_unspecified(const struct mk__addr *addr);

/* Returns whether both are the same address and port. */
bool mk__addr_equal(const struct mk__addr *a, const struct mk__addr *b);

/* Returns whether only one of them can be bound. Port 0 does not conflict. */
bool mk__addr_conflicts(const struct mk__addr *a, const struct mk__addr *b);

/* Returns whether only this machine can reach the address: a Unix socket, or one of the loopback interface. */
bool mk__addr_is_local(const struct mk__addr *addr);

/* Returns or sets the port; a Unix socket has port 0 and cannot be given another one. */
uint16_t mk__addr_port(const struct mk__addr *addr);
void mk__addr_set_port(struct mk__addr *addr, uint16_t port);

/* Converts `addr` to the public form. */
static inline void mk__addr_to_address(const struct mk__addr *addr, struct mk_address *ret)
{
    bool v6 = addr->sa.sa_family == AF_INET6;
    const void *bytes = v6 ? (const void *)&addr->in6.sin6_addr : &addr->in.sin_addr;
    mk_address_set(ret, addr->sa.sa_family, bytes, mk__addr_port(addr));
}

#endif

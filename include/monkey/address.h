// SPDX-License-Identifier: Apache-2.0
/*
 * Addresses of clients, and the networks that they belong to.
 *
 *     192.0.2.1   2001:db8::1   unix   unknown          10.0.0.0/8   2001:db8::/32   192.0.2.1   unix
 *     └──────────── addresses ────────────────┘         └──────────────── networks ────────────────┘
 *
 * An address of IPv4 in the clothes of IPv6 (::ffff:192.0.2.1, as a socket for both sees it) becomes one of IPv4
 * wherever it comes in, so that nobody else has to think of it. All functions are pure.
 */
#ifndef MONKEY_ADDRESS_H
#define MONKEY_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "buf.h"
#include "str.h"

struct mk_address {
    uint16_t family;   /* AF_INET, AF_INET6, AF_UNIX (it has no more to say); AF_UNSPEC: unknown */
    uint16_t port;     /* 0: not known */
    uint8_t bytes[16]; /* in the order of the network; the first 4 for IPv4; the others are 0 */
};

/* `bytes`: 4 for AF_INET, 16 for AF_INET6, otherwise none. */
MK_API void mk_address_set(struct mk_address *address, int family, const void *bytes, uint16_t port);

/*
 * Reads `192.0.2.1`, `2001:db8::1` or `[2001:db8::1]`; a port may follow the first and the last, as in `[::1]:80`.
 * 0 or -EINVAL.
 */
MK_API int mk_address_parse(struct mk_str text, struct mk_address *ret);

/* Without the port, as RFC 5952 wants it: `2001:db8::1`; `unix`; `unknown`. */
MK_API void mk_address_print(const struct mk_address *address, struct mk_buf *out);

/* The same host? Ports do not count; an unknown address is like no other. */
MK_API bool mk_address_equal(const struct mk_address *a, const struct mk_address *b);

struct mk_network {
    struct mk_address address; /* without a port */
    uint8_t bits;              /* that count, from the first one */
};

struct mk_networks {
    struct mk_network *items;
    uint32_t n;
};

/*
 * Reads an address, an address with the number of its bits that count (`10.0.0.0/8`), or `unix` for all that come by
 * Unix sockets. 0, or -EINVAL with a sentence in `error`.
 */
MK_API int mk_network_parse(struct mk_str text, struct mk_network *ret, struct mk_buf *error);
MK_API bool mk_network_contains(const struct mk_network *network, const struct mk_address *address);
/* Does one of them contain it? */
MK_API bool mk_networks_contain(const struct mk_networks *networks, const struct mk_address *address);

#endif

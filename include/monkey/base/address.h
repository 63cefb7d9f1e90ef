// SPDX-License-Identifier: Apache-2.0
/*
 * Addresses of clients, and networks that contain them.
 *
 *     192.0.2.1   2001:db8::1   unix   unknown          10.0.0.0/8   2001:db8::/32   192.0.2.1   unix
 *     └──────────── addresses ────────────────┘         └──────────────── networks ────────────────┘
 *
 * An IPv4-mapped IPv6 address (::ffff:192.0.2.1, as a socket for both families has it) becomes an IPv4 address in every
 * function that reads one, so that callers need not care. All functions are pure.
 */
#ifndef MONKEY_ADDRESS_H
#define MONKEY_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "buf.h"
#include "str.h"

MK_C_BEGIN

struct mk_address {
    uint16_t family;   /* AF_INET, AF_INET6, AF_UNIX (all other fields are 0); AF_UNSPEC: unknown */
    uint16_t port;     /* 0: unknown */
    uint8_t bytes[16]; /* network byte order; IPv4 uses the first 4, the others are 0 */
};

/* Sets an address. `bytes`: 4 for AF_INET, 16 for AF_INET6, else unused. An IPv4-mapped address becomes IPv4. */
MK_API void mk_address_set(struct mk_address *address, int family, const void *bytes, uint16_t port);

/*
 * Reads `192.0.2.1`, `2001:db8::1` or `[2001:db8::1]`; a port may follow the first and the last, as in `[::1]:80`.
 * Returns 0 or -EINVAL.
 */
MK_API int mk_address_parse(struct mk_str text, struct mk_address *ret);

/* Appends the address without its port, in the form of RFC 5952: `2001:db8::1`; `unix`; `unknown`. */
MK_API void mk_address_print(const struct mk_address *address, struct mk_buf *out);

enum { MK_ADDRESS_IP_BYTES = 48 };

/* Writes an IPv4 or IPv6 address as text. Returns it; empty for others. */
static inline struct mk_str mk_address_write_ip(char to[MK_ADDRESS_IP_BYTES], const struct mk_address *address)
{
    struct mk_buf text;
    mk_buf_init_fixed(&text, to, MK_ADDRESS_IP_BYTES);
    if (address->family == AF_INET || address->family == AF_INET6)
        mk_address_print(address, &text);
    return mk_buf_str(&text);
}

/* Returns whether both are the same host. Ports do not count; an unknown address equals no other. */
MK_API bool mk_address_equal(const struct mk_address *a, const struct mk_address *b);

struct mk_network {
    struct mk_address address; /* without a port */
    uint8_t bits;              /* length of the prefix */
};

struct mk_networks {
    struct mk_network *items;
    uint32_t n;
};

/*
 * Reads an address, an address with a prefix length (`10.0.0.0/8`), or `unix`, which means all clients of Unix
 * sockets.
 * Returns 0, or -EINVAL with a sentence in `error`.
 */
MK_API int mk_network_parse(struct mk_str text, struct mk_network *ret, struct mk_buf *error);
/* Returns whether the network contains the address; an unknown address is in none. */
MK_API bool mk_network_contains(const struct mk_network *network, const struct mk_address *address);
/* Returns whether one of the networks contains the address. */
MK_API bool mk_networks_contain(const struct mk_networks *networks, const struct mk_address *address);

MK_C_END

#endif

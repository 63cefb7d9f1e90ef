// SPDX-License-Identifier: Apache-2.0
/*
 * A lookup of a name through c-ares: of its addresses, or of its SRV records and the addresses of their targets.
 *
 *     lookup_new ─► lookup_start ─► /etc/hosts, or questions to name servers ─► fn(lookup) ─► lookup_free
 *              └──► lookups_wait, which blocks
 *
 * Each lookup has its own channel of c-ares: it reads the names of the system's name servers again and asks from new
 * ports. It ends within LOOKUP_MS_MAX.
 */
#ifndef UPSTREAM_LOOKUP_H
#define UPSTREAM_LOOKUP_H

#include <monkey/address.h>
#include <monkey/dial.h>
#include <monkey/loop.h>

enum {
    LOOKUP_ADDRESSES_MAX = 256, /* further ones are left out */
    LOOKUP_SERVERS_MAX = 8,
    LOOKUP_MS_MAX = 5000,
};

enum lookup_family { LOOKUP_ANY, LOOKUP_IPV4, LOOKUP_IPV6 };

struct lookup_servers {
    struct mk_address *items;
    uint32_t n;
};

/* What is looked up, and where. Must stay as long as the lookup. */
struct lookup_query {
    const char *host;
    bool is_srv;
    uint16_t port;                 /* of the addresses, unless SRV records have it */
    int family;                    /* enum lookup_family */
    struct lookup_servers servers; /* none: those of the system */
};

struct lookup_address {
    struct mk_address address;
    uint16_t priority, weight; /* of the SRV record */
};

enum lookup_status {
    LOOKUP_OK,
    LOOKUP_NO_ADDRESS, /* that is the answer */
    LOOKUP_FAILED,     /* there is no answer */
};

struct lookup_result {
    enum lookup_status status;
    const char *why;               /* a phrase for people, unless it is LOOKUP_OK */
    bool failed_ipv4, failed_ipv6; /* some addresses of the family may be missing, also with LOOKUP_OK */
    bool has_more;                 /* than LOOKUP_ADDRESSES_MAX */
    uint32_t ttl_s;
    unsigned n;
    struct lookup_address addresses[LOOKUP_ADDRESSES_MAX]; /* by their priority, and in one order for the same ones */
};

/* Once for the process. The first returns 0 or -ENOMEM. */
int lookups_init(void);
void lookups_release(void);

struct lookup;
typedef void (*lookup_fn)(struct lookup *lookup, void *ctx);

/* Makes a lookup, which does nothing yet. Returns NULL without memory. */
struct lookup *lookup_new(const struct lookup_query *query);
/* Starts it. Calls `fn` in the loop's thread once it has ended, never from within this call. */
void lookup_start(struct lookup *l, struct mk_loop *loop, lookup_fn fn, void *ctx);
/* Makes `n` lookups at the same time, and returns when all have ended, or failed since `ms` are over. */
void lookups_wait(struct lookup *const *lookups, unsigned n, uint32_t ms);
/* Once it has ended; the caller may change it. */
struct lookup_result *lookup_get_result(struct lookup *l);
/* Adds an address, at its place, unless it is there. */
void lookup_add(struct lookup_result *r, const struct lookup_address *address);
/* Frees it, also before its end. */
void lookup_free(struct lookup *l);

/* Prints an address as a line `Server` has it: 192.0.2.1:80, [2001:db8::1]:80. */
void lookup_print(const struct mk_address *address, struct mk_buf *out);

#endif

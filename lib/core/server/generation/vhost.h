// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the host of a name. Built once with a generation, in its arena; then read by all workers.
 *
 *     Host: WWW.Example.org.  ─► www.example.org  ─► the exact name, else
 *                                   .example.org  ─► the wildcard *.example.org, else
 *                                           .org  ─► the wildcard *.org
 *
 * One hash table with open addressing holds both kinds; a wildcard's key starts with its dot, which no name does. A
 * look-up costs one pass over the name and a few probes, independent of the number of names.
 */
#ifndef MK_SERVER_VHOST_H
#define MK_SERVER_VHOST_H

#include <monkey/base/arena.h>

struct mk_host;

enum { MK__VHOST_NAME_MAX = 253 }; /* bytes, RFC 1035 section 2.3.4 without the length bytes and the root */

/* One name of one host; a free slot has no host. */
struct mk__vhost {
    struct mk_str name; /* normalized: lower case, no trailing dot, shortest IPv6 form */
    struct mk_host *host;
    uint32_t nth; /* index among the host's names, for messages */
    uint32_t hash;
};

struct mk__vhosts {
    struct mk_arena *arena;
    struct mk__vhost *slots; /* at least twice as many as names, a power of two */
    uint32_t mask;
    uint32_t dots_max; /* the most dots of any wildcard: longer suffixes need no probe */
    uint32_t point;    /* these two are the secret of the hash */
    uint64_t seed;
};

/* Makes room for `names` names. Returns 0, -ENOMEM, or as mk_random(). */
int mk__vhost_init(struct mk__vhosts *t, struct mk_arena *arena, size_t names);

/*
 * Adds a name or a wildcard as it was configured. Returns 0, -EINVAL (malformed, `*ret_reason` says why), -EEXIST
 * (`*ret_first` has it already) or -ENOMEM.
 */
int mk__vhost_add(struct mk__vhosts *t, struct mk_str name, struct mk_host *host, uint32_t nth, const char **ret_reason,
                  const struct mk__vhost **ret_first);

/*
 * Returns the host of a name without its port, as mk__uri_split_authority() splits it. Case, a trailing dot and the
 * form of an IPv6 address do not matter. The exact name wins, then the longest wildcard. NULL: no host has the name.
 */
struct mk_host *mk__vhost_find(const struct mk__vhosts *t, struct mk_str name);

#endif

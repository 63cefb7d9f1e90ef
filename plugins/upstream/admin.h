// SPDX-License-Identifier: Apache-2.0
/*
 * Whether a server gets requests by the will of its operator: what its line says, unless the shell has set something
 * else. What the shell has set belongs to the line `Server` of a group, with all addresses of its name, and to the
 * process: it stays over reloads and ends with the process.
 *
 *     up      gets requests
 *     drain   gets only those whose sticky cookie names it
 *     down    gets none
 *
 * Requests under way continue in any case.
 */
#ifndef UPSTREAM_ADMIN_H
#define UPSTREAM_ADMIN_H

#include <monkey/str.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum admin_state { ADMIN_UNSET, ADMIN_UP, ADMIN_DRAIN, ADMIN_DOWN, ADMIN_STATES };

/* What the shell has set. */
struct admin {
    struct admin *next;
    struct mk_str group, line;
    unsigned refs;                /* servers, and groups with the line, which may have no server now; under the lock */
    _Atomic uint32_t state;       /* enum admin_state */
    _Atomic uint32_t weight_plus; /* the weight and one; 0: it was not set */
};

/* "up", "drain", "down"; "" for ADMIN_UNSET. */
extern const char *const admin_state_names[ADMIN_STATES];

/* Returns the state of that name; ADMIN_UNSET: there is none. */
enum admin_state admin_find_state(struct mk_str name);

/* Returns what was set for a line of a group; NULL without memory. Any thread. */
struct admin *admin_hold(struct mk_str group, struct mk_str line);
/* `admin` may be NULL. Any thread. */
void admin_release(struct admin *admin);

#endif

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

#include <monkey/counters.h>
#include <monkey/str.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum admin_state { ADMIN_UNSET, ADMIN_UP, ADMIN_DRAIN, ADMIN_DOWN, ADMIN_STATES };

enum { ADMIN_COUNTS = ADMIN_STATES - ADMIN_DRAIN };

/* What the shell has set, and what the configuration says that is in use. */
struct admin {
    struct admin *next;
    struct mk_str group, line;
    unsigned refs;                /* servers, and groups with the line, which may have no server now; under the lock */
    _Atomic uint32_t state;       /* enum admin_state, set by the shell */
    _Atomic uint32_t weight_plus; /* likewise: the weight and one; 0: it was not set */
    /* under the lock */
    enum admin_state configured;                     /* ADMIN_UNSET: the configuration in use has no such line */
    uint32_t weight;                                 /* of the configuration */
    bool is_current;                                 /* admin_configure() has named it */
    enum admin_state shown;                          /* by the counters */
    const struct mk_counter *counters[ADMIN_COUNTS]; /* for `drain` and `down`: 1 while it holds */
};

/* "up", "drain", "down"; "" for ADMIN_UNSET. */
extern const char *const admin_state_names[ADMIN_STATES];

/* Returns the state of that name; ADMIN_UNSET: there is none. */
enum admin_state admin_find_state(struct mk_str name);

/* Returns what was set for a line of a group; NULL without memory. Any thread. */
struct admin *admin_hold(struct mk_str group, struct mk_str line);
/* `admin` may be NULL. Any thread. */
void admin_release(struct admin *admin);

/* Tells whether there is such a line; names of counters may be cut. Any thread. */
bool admin_has(struct mk_str group, struct mk_str line);

/* Returns the state that is in force: up, drain or down. Any thread. */
enum admin_state admin_get_state(struct admin *admin);

/* Sets the state by the shell; ADMIN_UNSET: that of the configuration holds. Any thread. */
void admin_set_state(struct admin *admin, enum admin_state state);

/*
 * A configuration is in use from now on: admin_configure() for each of its lines, then admin_end_configuring(), which
 * finds those that are gone. Changes are logged, with `is_reload` also lines that are new. One thread at a time.
 */
void admin_configure(struct admin *admin, enum admin_state state, uint32_t weight, bool is_reload);
void admin_end_configuring(void);

#endif

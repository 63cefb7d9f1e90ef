// SPDX-License-Identifier: Apache-2.0
/*
 * Counts failed logins of each client network (an IPv4 address, an IPv6 /64), and those that are being checked, over
 * all workers and reloads, with bounded memory (<monkey/client_table.h>). Clients of Unix sockets are not counted: they
 * are one address. Any thread.
 */
#ifndef AUTH_FAILURES_H
#define AUTH_FAILURES_H

#include <monkey/client_table.h>

enum { FAILURES_CLIENTS = 65536, FAILURES_EVICTIONS_MS = 60000 };

/* What is known of the clients that were evicted from a full table; zeroed at the start. */
struct failures_evictions {
    _Atomic uint64_t checked_ms, count;
};

struct failures_limits {
    uint32_t max;     /* failures of a client within the window; 0: no limit */
    uint32_t time_ms; /* the window, which begins with the first failure */
    uint32_t running; /* attempts of a client that are checked at once */
};

/* Returns an empty table, which mk_client_table_free() frees; NULL without memory. */
struct mk_client_table *failures_new(void);

/* Returns 0, or how many milliseconds the client has to wait because it has failed too often. */
uint32_t failures_wait_ms(struct mk_client_table *t, const struct mk_address *client, uint64_t now_ms,
                          const struct failures_limits *limits);

/*
 * Begins an attempt. Returns false if the client has too many already, or as many as may still fail; else
 * failures_end() must follow.
 */
bool failures_begin(struct mk_client_table *t, const struct mk_address *client, uint64_t now_ms,
                    const struct failures_limits *limits);
/*
 * Ends an attempt, which has failed or not (it was right, or not decided); `limits` may then be NULL. Returns true if
 * this failure was the last one that is allowed.
 */
bool failures_end(struct mk_client_table *t, const struct mk_address *client, uint64_t now_ms,
                  const struct failures_limits *limits, bool failed);

/* Counts a failure that no attempt of failures_begin() had. Returns as failures_end(). */
bool failures_add(struct mk_client_table *t, const struct mk_address *client, uint64_t now_ms,
                  const struct failures_limits *limits);

/* Returns how many clients were evicted since the last answer, but 0 within FAILURES_EVICTIONS_MS after that. */
uint64_t failures_take_evictions(struct failures_evictions *e, struct mk_client_table *t, uint64_t now_ms);

#endif

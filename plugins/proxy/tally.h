// SPDX-License-Identifier: Apache-2.0
/*
 * What the proxy counts for each backend: counters with the label `backend`, the text of `To` up to its path, and for
 * those of a group with the label `server`, the line `Server`. They are shown as long as a configuration names them,
 * and have their values again when one names them anew. The sums over all backends are those of counters.h.
 */
#ifndef PROXY_TALLY_H
#define PROXY_TALLY_H

#include <monkey/counters.h>
#include <monkey/list.h>
#include <monkey/request.h>
#include <monkey/upstreams.h>

enum tally_counter {
    TALLY_REQUESTS,
    TALLY_RESPONSES,                     /* five: by class, 1xx first */
    TALLY_RETRIES = TALLY_RESPONSES + 5, /* by enum mk_upstream_loss, the reason */
    TALLY_FAILURES = TALLY_RETRIES + 4,
    TALLY_TIMEOUTS,
    TALLY_OPENED, /* connections */
    TALLY_BUSY,   /* connections, now */
    TALLY_IDLE,   /* likewise */
    TALLY_SENT_BYTES,
    TALLY_RECEIVED_BYTES,
    TALLY_CONNECT_DURATION,
    TALLY_HEAD_DURATION,
    TALLY_DURATION,
    TALLY_COUNTERS
};

/* Those of a backend. Lasts as long as the process. */
struct tally {
    struct mk_list node;
    unsigned refs;                 /* sections that name the backend */
    struct mk_str backend, server; /* `server`: of a group; or empty */
    const struct mk_counter *counters[TALLY_COUNTERS];
};

/*
 * Returns the tally of a backend, or of a server of it, and holds it; NULL without memory. In the hooks of the
 * configuration, as the next.
 */
struct tally *tally_get(struct mk_str backend, struct mk_str server);
void tally_put(struct tally *tally);
/* Hides the counters of backends and servers that no section names. */
void tally_hide_unused(void);
/* A generation begins, and has ended: what only it has named is hidden then, unless the process ends, too. */
void tally_begin_generation(void);
void tally_end_generation(void);
/* Frees all of them, at the end of the process. */
void tally_free_all(void);

static inline void tally_add(const struct tally *tally, enum tally_counter counter, const struct mk_worker *worker,
                             int64_t n)
{
    mk_counter_add(tally->counters[counter], worker, n);
}

#endif

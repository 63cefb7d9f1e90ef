// SPDX-License-Identifier: Apache-2.0
/*
 * What an exchange leaves for operators: counters of all backends and of its own, times, and notes for the log
 * (`upstream` and others, see docs/guide/logs.md). Times and notes are left out unless a loaded plugin wants times
 * (MK_PLUGIN_TIMES).
 *
 *     report_begin ─► report_connected ─► report_head ─► report_end
 *          │               ▲    └─ report_retry ─┐
 *          └───────────────┴─────────────────────┴──► report_failure
 */
#ifndef PROXY_REPORT_H
#define PROXY_REPORT_H

#include "backend.h"

struct report {
    struct mk_request *req;
    const struct tally *tally;
    uint64_t began_us;         /* 0: no times are wanted */
    unsigned retries, servers; /* of a group, given to it */
};

/* The request is for this backend. `is_group`: report_server() follows. */
void report_begin(struct report *r, struct mk_request *req, const struct tally *tally, bool is_group);
/* It goes to this server of a group; after another one, whose `loss` is the reason. */
void report_server(struct report *r, const struct tally *tally, struct mk_str address, enum mk_upstream_loss loss);
/* It has a connection, kept or new. */
void report_connected(const struct report *r);
/* A new connection was opened; it is ready for the request, this long after its dial began. */
void report_opened(const struct report *r);
void report_ready(const struct report *r, uint64_t connect_us);
/* The request is sent again. */
void report_retry(struct report *r, enum mk_upstream_loss reason);
/* The head of the response has come, with this status. */
void report_head(const struct report *r, unsigned status);
/* The response is complete, or has become a tunnel. */
void report_end(const struct report *r);
/* The exchange has failed, with -errno. */
void report_failure(const struct report *r, int err);

#endif

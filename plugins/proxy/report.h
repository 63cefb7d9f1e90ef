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

/* The request is for this backend. */
void report_begin(struct report *r, struct mk_request *req, const struct tally *tally);
/* It goes to this server of a group; may be called again. */
void report_server(struct report *r, struct mk_str name);
/* It has a connection, kept or new. */
void report_connected(const struct report *r);
/* A new connection was opened. */
void report_opened(const struct report *r);
/* The connection is lost; the request is sent again. */
void report_retry(struct report *r);
/* The head of the response has come, with this status. */
void report_head(const struct report *r, unsigned status);
/* The response is complete, or has become a tunnel. */
void report_end(const struct report *r);
/* The exchange has failed, with -errno. */
void report_failure(const struct report *r, int err);

#endif

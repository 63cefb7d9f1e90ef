// SPDX-License-Identifier: Apache-2.0
/*
 * What an exchange leaves for operators: counters of all backends and its own, times, and notes for the log
 * (`upstream` and others, see docs/guide/logs.md). Times and notes are left out unless a loaded plugin wants times
 * (MK_PLUGIN_TIMES). Those of the notes begin with the exchange; a histogram of a server has what that server took,
 * without the waits and the servers before.
 *
 *     mk__gw_report_begin ─► mk__gw_report_connected ─► mk__gw_report_head ─► mk__gw_report_end
 *          │               ▲    └─ mk__gw_report_retry ─┐
 *          └───────────────┴─────────────────────┴──► mk__gw_report_failure
 */
#ifndef MK_GATEWAY_REPORT_H
#define MK_GATEWAY_REPORT_H

#include "backend.h"

struct mk__gw_report {
    struct mk_request *req;
    const struct mk_gateway *gateway;
    const struct mk_backend_stats *stats;
    uint64_t began_us;         /* 0: no times are wanted */
    uint64_t server_us;        /* when the request went to its server, or to the only one */
    unsigned retries, servers; /* of a group, given to it */
};

/* The request is for this route. With a group, mk__gw_report_server() follows. */
void mk__gw_report_begin(struct mk__gw_report *r, struct mk_request *req, const struct mk_gateway_route *route);
/* It goes to this server of a group; after another one, whose `failure` is the reason. */
void mk__gw_report_server(struct mk__gw_report *r, const struct mk_backend_stats *stats, struct mk_str address,
                          enum mk_upstream_failure failure);
/* It has a connection, kept or new. */
void mk__gw_report_connected(const struct mk__gw_report *r);
/* A new connection was opened; it is ready for the request, this long after its dial began. */
void mk__gw_report_opened(const struct mk__gw_report *r);
void mk__gw_report_ready(const struct mk__gw_report *r, uint64_t connect_us);
/* The request is sent again. */
void mk__gw_report_retry(struct mk__gw_report *r, enum mk_upstream_failure reason);
/* The head of the response has come, with this status. */
void mk__gw_report_head(const struct mk__gw_report *r, unsigned status);
/* Instead of a head, or after it, this try has ended with an error: its type (RFC 9209 section 2.3). */
void mk__gw_report_error(const struct mk__gw_report *r, const char *type);
/* The response is complete, or has become a tunnel. */
void mk__gw_report_end(const struct mk__gw_report *r);
/* The exchange has failed, with -errno. */
void mk__gw_report_failure(const struct mk__gw_report *r, int err);

#endif

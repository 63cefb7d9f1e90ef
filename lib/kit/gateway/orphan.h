// SPDX-License-Identifier: Apache-2.0
/*
 * Requests whose clients have left, with `OnClientLeave Finish`: what the backend has begun is brought to its end, and
 * its response is read and dropped.
 *
 * An orphan holds the worker under which it began, and so the configuration; a stop of the server waits for it up to
 * ShutdownTimeout. All in the thread of the loop.
 */
#ifndef MK_GATEWAY_ORPHAN_H
#define MK_GATEWAY_ORPHAN_H

#include "backend.h"
#include "download.h"
#include "received.h"
#include "upload.h"

enum { MK__GW_ORPHANS_MAX = 256, MK__GW_ORPHAN_MS_MAX = 3600000 }; /* of a thread; for one without a Deadline */

/* What an exchange has of a request that was received as a whole. */
struct mk__gw_orphan_parts {
    struct mk_worker *worker;
    const struct mk_gateway_call *call;
    struct mk__gw_backend_conn *conn;
    struct mk__gw_upload *up;
    struct mk__gw_received *received;
    struct mk__gw_download *down;
    bool has_head; /* the response has begun */
    uint64_t deadline_ms;
};

/*
 * Takes the connection over, with the hold of its backend, and what the other parts own. Returns false, and has taken
 * nothing, without memory or if there are MK__GW_ORPHANS_MAX already.
 */
bool mk__gw_orphan_adopt(const struct mk__gw_orphan_parts *parts);
/* Drops those of a worker that stops; in worker_stop. */
void mk__gw_orphans_stop(struct mk__gw_thread *t, const struct mk_worker *worker);

#endif

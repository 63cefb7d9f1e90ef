// SPDX-License-Identifier: Apache-2.0
/*
 * Requests whose clients have left, with `OnClientLeave Finish`: what the backend has begun is brought to its end, and
 * its response is read and dropped.
 *
 * An orphan holds the worker under which it began, and so the configuration. All in the thread of the loop.
 */
#ifndef PROXY_ORPHAN_H
#define PROXY_ORPHAN_H

#include "backend.h"
#include "download.h"
#include "received.h"
#include "upload.h"

enum { ORPHANS_MAX = 256, ORPHAN_MS_MAX = 3600000 }; /* of a thread; for one without a Deadline */

/* What an exchange has of a request that was received as a whole. */
struct orphan_parts {
    struct mk_worker *worker;
    const struct proxy_conf *conf;
    struct backend_conn *conn;
    struct upload *up;
    struct received *received;
    struct download *down;
    bool has_head; /* the response has begun */
    uint64_t deadline_ms;
};

/*
 * Takes the connection over, with the hold of its backend, and what the other parts own. Returns false, and has taken
 * nothing, without memory or if there are ORPHANS_MAX already.
 */
bool orphan_adopt(const struct orphan_parts *parts);
/* Drops those of a worker that stops; in worker_stop. */
void orphans_stop(struct thread *t, const struct mk_worker *worker);

#endif

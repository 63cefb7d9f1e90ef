// SPDX-License-Identifier: Apache-2.0
/*
 * What looks at the connections of a thread: cursors and traces. It exists as long as there is one of them.
 */
#ifndef MK_SERVER_INSPECT_CONNS_H
#define MK_SERVER_INSPECT_CONNS_H

#include "server/inspect/core.h"

#include <monkey/inspect.h>

struct mk__inspect_conns {
    struct mk__inspector base;
    struct mk__context *http;
    struct mk_list cursors, traces;
};

/* Returns that of a thread, which is made if there is none; NULL without memory. */
struct mk__inspect_conns *mk__inspect_conns_get(const struct mk_worker *worker);
/* Frees it if there is no cursor and no trace left. */
void mk__inspect_conns_put(struct mk__inspect_conns *all);

/* Returns the id of a connection, which is assigned if it has none. */
uint64_t mk__inspect_conns_id(struct mk__conn *c);

/* trace.c: the callbacks of struct mk__inspector. */
void mk__inspect_trace_open(struct mk__inspector *i, struct mk__conn *c);
void mk__inspect_trace_state(struct mk__inspector *i, const struct mk__conn *c, enum mk__conn_state next);

#endif

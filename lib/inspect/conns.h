// SPDX-License-Identifier: Apache-2.0
/*
 * What looks at the connections of a thread: cursors and traces. It exists as long as there is one of them.
 */
#ifndef MK_INSPECT_CONNS_H
#define MK_INSPECT_CONNS_H

#include "server/inspect_core.h"

#include <monkey/inspect.h>

struct mk__inspect_conns {
    struct mk__inspector base;
    struct mk__context *http;
    struct mk_list cursors, traces;
};

/* Returns that of a thread, which is made if there is none; NULL without memory. */
struct mk__inspect_conns *mk__inspect_conns_get(struct mk__context *http);
/* Frees it if there is no cursor and no trace left. */
void mk__inspect_conns_put(struct mk__inspect_conns *all);

/* Returns the id of a connection, which is assigned if it has none. */
uint64_t mk__inspect_conns_id(struct mk__conn *c);

/* mk_inspect_open() and mk_inspect_trace_start() for the connections of `http`. Return 0 or -ENOMEM. */
int mk__inspect_conns_open(struct mk_inspect_cursor *cursor, struct mk__context *http);
int mk__inspect_trace_start(struct mk_inspect_trace *trace, struct mk__context *http);

/* trace.c: the callbacks of struct mk__inspector. */
void mk__inspect_trace_open(struct mk__inspector *i, struct mk__conn *c);
void mk__inspect_trace_state(struct mk__inspector *i, const struct mk__conn *c, enum mk__conn_state next);

#endif

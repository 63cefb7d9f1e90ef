// SPDX-License-Identifier: Apache-2.0
/*
 * What the sources of connections to other servers share (<monkey/kit/upstream.h>).
 */
#ifndef KIT_UPSTREAM_H
#define KIT_UPSTREAM_H

#include <monkey/kit/upstream.h>

typedef void (*mk__upstream_fn)(struct mk_upstream_conn *conn, int64_t argument);

/* ── upstream.c ── */

/* Calls a function below the pool's `enter`. */
void mk__upstream_enter(struct mk_upstream_conn *conn, mk__upstream_fn fn, int64_t argument);
/* Sets the error of a server, of a clause. */
void mk__upstream_set_error(struct mk_upstream *server, int err, const char *text);
/* Returns whether calls that wait for the server fail. */
bool mk__upstream_is_wait_timed_out(const struct mk_upstream *server);
/* The server has closed a connection that was not in use. */
void mk__upstream_close_idle(struct mk_upstream_conn *conn);

/* ── calls.c ── */

/* Prepares the event, the timer and the task of a connection. */
void mk__upstream_io_init(struct mk_upstream_conn *conn);
/* Fails all calls of a list, and frees them. What they begin meanwhile is in other lists. */
void mk__upstream_fail_calls(struct mk_upstream_conn *conn, struct mk_list *calls, int err, const char *text);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * WhenFull wait, for one log in one worker: requests wait at the gate while too much of the log is not written. The
 * worker's loop continues; the writer sends it a message when there is room.
 *
 *     open ── half of `Buffer` waits to be written ──► closed ── a quarter or less waits ──► open: requests go on
 */
#ifndef LOGGER_GATE_H
#define LOGGER_GATE_H

#include <monkey/plugin.h>

#include "queue.h"

struct gate;

/* Returns a gate, which lives as long as the producer of `q`; NULL without memory. */
struct gate *gate_new(struct mk_loop *loop, const struct queue *q);
void gate_free(struct gate *g);

/*
 * Lets a request pass or wait; in the worker's thread.
 * Returns MK_DECLINED (it passes), 0 (it waits; mk_request_decline() is called later, unless it ends before) or
 * -ENOMEM.
 */
int gate_pass(struct gate *g, struct mk_request *req);

/* Opens the gate if there is room; called after lines were written. `g` may be NULL. Any thread. */
void gate_check(struct gate *g);

#endif

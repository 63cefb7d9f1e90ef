// SPDX-License-Identifier: Apache-2.0
/*
 * The gate of a log that must be complete (WhenFull wait), in one worker: requests wait at it while too much of that
 * log is not written yet. The worker's loop goes on; the writer tells it when there is room.
 *
 *     open ── half of `Buffer` waits to be written ──► shut ── a quarter or less waits ──► open: who waits goes on
 */
#ifndef LOGGER_GATE_H
#define LOGGER_GATE_H

#include <monkey/plugin.h>

#include "queue.h"

struct gate;

/* Both live as long as the producer. NULL without memory. */
struct gate *gate_new(struct mk_loop *loop, const struct queue *q);
void gate_free(struct gate *g);

/*
 * The worker: MK_DECLINED when the request may go on. 0: it waits, and mk_request_decline() is called later, unless it
 * ends before. -ENOMEM.
 */
int gate_pass(struct gate *g, struct mk_request *req);

/* After lines have been written; `g` may be NULL. Any thread. */
void gate_check(struct gate *g);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * WhenFull wait, for one log in one worker: requests wait at the gate while too much of the log is not written. The
 * worker's loop continues; the writer sends it a message when there is room.
 *
 *     open ── half of `Buffer` waits to be written ──► closed ── a quarter or less waits ──► open: requests continue
 */
#ifndef LOGGER_GATE_H
#define LOGGER_GATE_H

#include <monkey/list.h>
#include <monkey/log_writer.h>
#include <monkey/plugin.h>

#include <stdatomic.h>

/*
 * The worker sets `closed` and then reads how much waits; the writer takes lines and then reads `closed`. So at least
 * one sees what the other did. The thread that resets `closed` opens the gate: the writer by a message, the worker
 * directly.
 */
struct gate {
    struct mk_message message; /* from the writer to the loop */
    struct mk_loop *loop;
    const struct mk_log_producer *producer;
    struct mk_list waiting;   /* waiters, the oldest first; for the worker */
    struct mk_worker *worker; /* held while the gate is closed, so that it is not freed */
    _Atomic bool closed;
};

/* Prepares the gate of a producer, which is part of it. */
void gate_init(struct gate *g, struct mk_loop *loop, const struct mk_log_producer *producer);

/*
 * Lets a request pass or wait; in the worker's thread.
 * Returns MK_DECLINED (it passes), 0 (it waits; mk_request_decline() is called later, unless it ends before) or
 * -ENOMEM.
 */
int gate_pass(struct gate *g, struct mk_request *req);

/* Opens the gate if there is room; called after lines were written. Any thread. */
void gate_check(struct gate *g);

#endif

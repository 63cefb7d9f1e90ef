// SPDX-License-Identifier: Apache-2.0
/*
 * The thread that writes all logs of the process, and the registry of them.
 *
 * It sleeps until somebody has a line for it. Lines wait for company: until a ring is half full, or for the time of
 * `Flush`. Nobody waits for the writer but the end of the process, and that not for long.
 */
#ifndef LOGGER_WRITER_H
#define LOGGER_WRITER_H

#include <monkey/loop.h>

#include "line.h"
#include "log_target.h"

/* The log at that place, made if there is none yet; NULL without memory. Any thread. */
struct log_target *writer_get_target(const struct log_dest *dest);
/* Nobody of that configuration wants it any more. It is closed after its last line. */
void writer_put_target(struct log_target *s);

/*
 * The way of a worker's loop to a log, of `bytes` at the most; several gets share it. `wait`: it has a gate. NULL
 * without memory. The loop's thread.
 */
struct log_producer *writer_get_producer(struct log_target *s, struct mk_loop *owner, size_t bytes, bool wait);
void writer_put_producer(struct log_producer *c);

/* The owner: room for a line of LINE_BYTES_MAX, to be sent; NULL: it is full, and the line is counted as lost. */
static inline char *writer_reserve(struct log_producer *c)
{
    char *room = queue_reserve(&c->queue, LINE_BYTES_MAX, c->gate);
    if (MK_UNLIKELY(!room)) {
        c->lost++;
        atomic_fetch_add_explicit(&c->lost_total, 1, memory_order_relaxed);
    }
    return room;
}
/* A whole line, with its end. */
void writer_send(struct log_producer *c, size_t bytes);

/* Starts the thread if it does not run. 0 or -errno. Any thread. */
int writer_start(uint32_t flush_ms);
/* Writes what is there, waits a moment for what does not take it, and ends. */
void writer_stop(void);
/* Opens all files anew, after what is there has been written to the old ones. Does not wait. */
void writer_reopen(void);

#endif

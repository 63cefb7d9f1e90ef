// SPDX-License-Identifier: Apache-2.0
/*
 * The thread that writes all logs of the process, and the registry of logs: the state of the plugin's start.
 *
 * It sleeps until a worker has a line. Then it waits until a ring is half full, or for `Flush`, to write several lines
 * together. Only the end of the process waits for the writer, for a second at most.
 */
#ifndef LOGGER_WRITER_H
#define LOGGER_WRITER_H

#include <monkey/loop.h>

#include "line.h"
#include "log_target.h"

struct writer;

/* Returns the log of that destination, with a reference; makes it if there is none. NULL without memory. Any thread. */
struct log_target *writer_get_target(struct writer *w, const struct log_dest *dest);
/* Releases a reference. The log is closed after its last line. Any thread. */
void writer_put_target(struct log_target *target);

/*
 * Returns the producer of a worker's loop for a log, with a reference; `bytes`: the maximum of its queue. `wait`: it
 * gets a gate. NULL without memory. In the loop's thread.
 */
struct log_producer *writer_get_producer(struct log_target *target, struct mk_loop *owner, size_t bytes, bool wait);
void writer_put_producer(struct log_producer *producer);

/* Returns room for a line of LINE_BYTES_MAX, for the worker; NULL: the queue is full, the line is counted as lost. */
static inline char *writer_reserve(struct log_producer *producer)
{
    char *room = queue_reserve(&producer->queue, LINE_BYTES_MAX, producer->gate);
    if (MK_UNLIKELY(!room)) {
        producer->lost++;
        log_producer_lose(producer, 1);
    }
    return room;
}
/* Sends the line of writer_reserve(), with its newline. */
void writer_send(struct log_producer *producer, size_t bytes);

/* Starts the thread if it does not run. Returns 0 or -errno. Any thread. */
int writer_start(struct writer *w);
/* Sets Flush; from the next wait on. Any thread. */
void writer_set_flush(struct writer *w, uint32_t flush_ms);
/* Returns a writer without a thread; NULL without memory. */
struct writer *writer_new(void);
/* Writes the lines that wait, for a second at most, ends the thread and frees the writer. Not in workers. */
void writer_free(struct writer *w);
/* Has all files opened again after the lines that wait were written to the old ones. Does not wait. */
void writer_reopen(struct writer *w);

#endif

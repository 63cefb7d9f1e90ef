// SPDX-License-Identifier: Apache-2.0
/*
 * Guests: descriptors that another thread has put into this loop's queue, edge-triggered, with a tag in place of an
 * event. The loop finds what serves them by a table.
 *
 *     tag:    63 ... sequence ... 32 | 31 ... descriptor ... 1 | 1     (the pointer of an event is even)
 *     table:  [descriptor] ─► {sequence, event}
 *
 * The registration is never touched: it came before the loop knew of the descriptor, and close(2) ends it. A number
 * may be closed and given out again while events of its last owner still lie in a batch: they carry an older sequence,
 * or meet a place that nobody takes any more, and are dropped. One thread, but for mk__handoff_tag().
 */
#ifndef MK_LOOP_HANDOFF_H
#define MK_LOOP_HANDOFF_H

#include <monkey/arena.h>
#include <monkey/loop.h>

struct mk__handoff;

/* A first event: to be admitted, or to be dropped when the other thread knows nothing of it (any more). */
typedef void (*mk__handoff_fn)(struct mk__handoff *g, int fd, uint32_t sequence, uint32_t events);

struct mk__handoff {
    mk__handoff_fn on_new_fd;
    struct mk_account *account; /* the table is drawn on it */
    struct mk__handoff_fd {
        struct mk_event *event; /* NULL: gone */
        uint32_t sequence;
    } * table;
    uint32_t n;
    int fd;          /* the one that was admitted last ... */
    uint32_t events; /* ... and what is true of it, until it is taken */
};

void mk__handoff_init(struct mk__handoff *g, struct mk_account *account, mk__handoff_fn on_new_fd);
void mk__handoff_release(struct mk__handoff *g);

/* Sequences begin at 1. */
static inline uint64_t mk__handoff_tag(int fd, uint32_t sequence)
{
    return (uint64_t)sequence << 32 | (uint32_t)fd << 1 | 1;
}

/* Makes a place for a new entry, whose event mk__handoff_take() will name. 0 or -ENOMEM. */
int mk__handoff_admit(struct mk__handoff *g, int fd, uint32_t sequence, uint32_t events);
/* Is `event` that of the entry who was just admitted? Then it is called back from now on: the events of its arrival. */
uint32_t mk__handoff_take(struct mk__handoff *g, struct mk_event *event);
/* For mk_event_del(): is it a entry's? Then it is forgotten. */
bool mk__handoff_forget(struct mk__handoff *g, const struct mk_event *event);

/* An event of the loop's batch. */
void mk__handoff_dispatch(struct mk__handoff *g, uint64_t tag, uint32_t events);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Handoff: descriptors that another thread has added to this loop's epoll instance, edge-triggered, with a tag in place
 * of an event pointer. A table leads from the tag to the event.
 *
 *     tag:    63 ... sequence ... 32 | 31 ... descriptor ... 1 | 1     (the pointer of an event is even)
 *     table:  [descriptor] ─► {sequence, event}
 *
 * The loop never changes the registration: it was made before the loop knew of the descriptor, and close(2) ends it. A
 * number may be closed and reused while events of its former connection are still in a batch. Such events are dropped:
 * they carry an older sequence, or their entry has no event any more.
 *
 * Everything is called by the loop's thread, except mk__handoff_tag().
 */
#ifndef MK_LOOP_HANDOFF_H
#define MK_LOOP_HANDOFF_H

#include <monkey/arena.h>
#include <monkey/loop.h>

struct mk__handoff;

/* The first event of a descriptor. The callback calls mk__handoff_admit(), or ignores an event that is out of date. */
typedef void (*mk__handoff_fn)(struct mk__handoff *g, int fd, uint32_t sequence, uint32_t events);

struct mk__handoff {
    mk__handoff_fn on_new_fd;
    struct mk_account *account; /* pays for the table */
    struct mk__handoff_fd {
        struct mk_event *event; /* NULL: removed */
        uint32_t sequence;
    } * table;
    uint32_t n;
    int fd;          /* the descriptor admitted last */
    uint32_t events; /* its first events, until mk__handoff_take() returns them */
};

/* Initializes an empty table; `on_new_fd` is called for descriptors that are not in it. */
void mk__handoff_init(struct mk__handoff *g, struct mk_account *account, mk__handoff_fn on_new_fd);
void mk__handoff_release(struct mk__handoff *g);

/* Returns the epoll tag of a descriptor. Sequences begin at 1. Any thread. */
static inline uint64_t mk__handoff_tag(int fd, uint32_t sequence)
{
    return (uint64_t)sequence << 32 | (uint32_t)fd << 1 | 1;
}

/* Makes an entry for a new descriptor; mk__handoff_take() sets its event. Returns 0 or -ENOMEM. */
int mk__handoff_admit(struct mk__handoff *g, int fd, uint32_t sequence, uint32_t events);
/*
 * Connects `event` with the descriptor that was just admitted; it is called back from now on.
 * Returns the events with which the descriptor arrived, or 0 when `event` is not that of the admitted descriptor.
 */
uint32_t mk__handoff_take(struct mk__handoff *g, struct mk_event *event);
/* For mk_event_del(): removes `event` from its entry. Returns false when no entry has it. */
bool mk__handoff_forget(struct mk__handoff *g, const struct mk_event *event);

/* Handles an event of the loop's batch: calls back the entry's event, or `on_new_fd`. */
void mk__handoff_dispatch(struct mk__handoff *g, uint64_t tag, uint32_t events);

#endif

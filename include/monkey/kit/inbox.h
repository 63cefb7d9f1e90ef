// SPDX-License-Identifier: Apache-2.0
/*
 * A queue of items for the thread of a loop, to which any thread may add until it is closed: also when the loop has
 * ended, as it does before a worker_stop (<monkey/plugin.h>).
 *
 *     any thread                            the loop's thread
 *     mk_inbox_add() ──► items (lock) ──►   fn(inbox, items)     once for all that were added meanwhile
 *
 * In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_INBOX_H
#define MONKEY_INBOX_H

#include <pthread.h>

#include "../loop.h"

MK_C_BEGIN

/* Is part of what is added, and belongs to the inbox until it is passed on. */
struct mk_inbox_item {
    struct mk_inbox_item *next;
};

struct mk_inbox;
/* Takes the items, the oldest first. It may close and free the inbox. */
typedef void (*mk_inbox_fn)(struct mk_inbox *inbox, struct mk_inbox_item *first);

/* Its members are the library's. */
struct mk_inbox {
    struct mk_loop *loop;
    mk_inbox_fn fn;
    struct mk_message message;
    pthread_mutex_t lock; /* of what follows */
    struct mk_inbox_item *first, **end;
    bool posted, closed;
};

/* Opens an inbox. Nothing is allocated. */
MK_API void mk_inbox_open(struct mk_inbox *inbox, struct mk_loop *loop, mk_inbox_fn fn);
/*
 * Closes it: `fn` is not called any more. Returns the items that wait, the oldest first. In the loop's thread, or in a
 * worker_stop whose thread has ended.
 */
MK_API struct mk_inbox_item *mk_inbox_close(struct mk_inbox *inbox);
/* Releases a closed inbox. No thread may use it any more. */
MK_API void mk_inbox_release(struct mk_inbox *inbox);

/* Adds an item. Returns 0, or -ECANCELED (it is closed; the item is the caller's then). Any thread. */
MK_API int mk_inbox_add(struct mk_inbox *inbox, struct mk_inbox_item *item);

MK_C_END

#endif

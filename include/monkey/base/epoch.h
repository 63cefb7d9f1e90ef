// SPDX-License-Identifier: Apache-2.0
/*
 * Epochs: memory that several threads read without a lock is freed once no thread can see it any more.
 *
 *     loop:    │ wait │ turn: finds A ...          │ wait │ turn: cannot find A │
 *     writer:              unlinks A ── retires A ─────────► frees A (in any thread)
 *
 * A loop that has joined sees what it finds until its turn ends; while it waits for events it sees nothing. So the
 * memory of an unlinked object may be freed when each loop that has joined has ended the turn in which the object may
 * have been found. Threads without a loop must not search such memory; they hold references instead.
 */
#ifndef MONKEY_EPOCH_H
#define MONKEY_EPOCH_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "../loop.h"
#include "../status.h"

MK_C_BEGIN

/*
 * The loop takes part from now on, or no longer: what it found before mk_epoch_join() is not protected, and what it
 * found before mk_epoch_leave() is not any more. Counted: several users of a loop may join it, each leaves once. In the
 * loop's thread, or while no thread runs the loop. Closing a loop ends its part. A loop that takes part stores a number
 * with a full barrier in each turn; one that does not makes one comparison.
 */
MK_API void mk_epoch_join(struct mk_loop *loop);
MK_API void mk_epoch_leave(struct mk_loop *loop);

/* Embedded in an object that is to be freed. */
struct mk_retired {
    struct mk_retired *next;
    uint64_t epoch;
    void (*free)(struct mk_retired *retired);
};

/*
 * The objects of one owner that wait to be freed, oldest first. An owner has its own queue so that it can free all
 * of them before its code is unloaded.
 */
struct mk_epoch_queue {
    pthread_mutex_t lock;
    struct mk_retired *first, **end;
    size_t waiting;
};

/* Initializes an empty queue. */
MK_API void mk_epoch_queue_init(struct mk_epoch_queue *queue);
/* Frees the objects that still wait, at once: no thread may use them any more. */
MK_API void mk_epoch_queue_release(struct mk_epoch_queue *queue);

/*
 * Frees an object later, which was unlinked before this call: `free` is called once no loop can see it, by a thread
 * that calls mk_epoch_reclaim() or mk_epoch_queue_release(). Any thread.
 */
MK_API void mk_epoch_retire(struct mk_epoch_queue *queue, struct mk_retired *retired,
                            void (*free)(struct mk_retired *retired));
/*
 * Frees what no loop can see any more, under no lock. Returns how many objects still wait. Any thread, also within
 * `free`. A call while none waits costs one load.
 */
MK_API size_t mk_epoch_reclaim(struct mk_epoch_queue *queue);

MK_C_END

#endif

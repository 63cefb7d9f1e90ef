// SPDX-License-Identifier: Apache-2.0
/*
 * What a loop does for <monkey/base/epoch.h>.
 */
#ifndef MK_LOOP_EPOCH_H
#define MK_LOOP_EPOCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <monkey/base/list.h>

/* Where a loop stands. */
struct mk__epoch_reader {
    _Atomic uint64_t seen; /* the epoch in which the turn began; 0: the loop sees nothing */
    unsigned users;        /* that have joined; 0: the reader is in no list */
    struct mk_list node;
};

/* Returns true if the loop calls mk__epoch_idle() before it waits and mk__epoch_enter() afterwards. */
static inline bool mk__epoch_joined(const struct mk__epoch_reader *reader)
{
    return MK_UNLIKELY(reader->users);
}

/* Marks the loop as one that sees nothing. */
void mk__epoch_idle(struct mk__epoch_reader *reader);
/* Publishes that the loop may see what is linked from now on. */
void mk__epoch_enter(struct mk__epoch_reader *reader);

/* Returns the epoch before which objects must have been retired, so that no loop sees them. Any thread. */
uint64_t mk__epoch_oldest(void);

void mk__epoch_add(struct mk__epoch_reader *reader);
void mk__epoch_remove(struct mk__epoch_reader *reader);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Tags of processes: by its tag a descendant of a child is found whatever its parent, group and session are by now.
 *
 * The tag is the hard limit RLIMIT_LOCKS, which has no effect since Linux 2.4. fork(2) and execve(2) keep it, only a
 * process with CAP_SYS_RESOURCE can raise it, and other processes of the user can read it. The starters of a plugin, of
 * which one takes the place of another, have a range of tags, at random, and each child has one of them. After a fork:
 * nothing here allocates.
 */
#ifndef MK_KIT_CHILD_TAG_H
#define MK_KIT_CHILD_TAG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { MK__TAG_INDEX_BITS = 12 };

struct mk__tags {
    uint64_t first;         /* 0: there are none */
    uint64_t begin, serial; /* the first serial number of this starter, and the next one */
};

/* Chooses the signal for a process, by its tag; 0: it has none. Returns 0: no signal. */
typedef int (*mk__tag_choose_fn)(pid_t pid, uint64_t tag);

/* Chooses the range. There is none if the limit of this process is low already. */
void mk__tag_open(struct mk__tags *tags);
/* Begins to use the range in a starter, whose number tells its tags from others. None if limits cannot be set. */
void mk__tag_begin(struct mk__tags *tags, uint64_t starter);
/* Returns a tag with an index below 2^MK__TAG_INDEX_BITS; 0: there are none. */
uint64_t mk__tag_new(struct mk__tags *tags, unsigned index);
/* Returns the index of a tag of this range. */
unsigned mk__tag_index(const struct mk__tags *tags, uint64_t tag);
/* Tells whether this starter has made a tag of the range, not a former one. */
bool mk__tag_is_own(const struct mk__tags *tags, uint64_t tag);
/* Calls `choose` for each process, zombies included, twice if it returns a signal, and sends that one. */
void mk__tag_each(const struct mk__tags *tags, mk__tag_choose_fn choose);

#endif

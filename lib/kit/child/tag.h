// SPDX-License-Identifier: Apache-2.0
/*
 * Tags of processes: by its tag a descendant of a child is found whatever its parent, group and session are by now.
 *
 * The tag is the hard limit RLIMIT_RTTIME, a number of microseconds that no process reaches. fork(2) and execve(2) keep
 * it, only a process with CAP_SYS_RESOURCE can raise it, and other processes of the user can read it. Each starter has
 * a range of tags, at random, and each child one of them. After a fork: nothing here allocates.
 */
#ifndef MK_KIT_CHILD_TAG_H
#define MK_KIT_CHILD_TAG_H

#include <stdint.h>
#include <sys/types.h>

enum { MK__TAG_INDEX_BITS = 12 };

struct mk__tags {
    uint64_t first; /* 0: there are none */
    uint64_t serial;
};

/* Chooses the range. There is none if the limit of this process is low already. */
void mk__tag_open(struct mk__tags *tags);
/* Returns a tag with an index below 2^MK__TAG_INDEX_BITS; 0: there are none. */
uint64_t mk__tag_new(struct mk__tags *tags, unsigned index);
/* Returns the index of a tag of this range. */
unsigned mk__tag_index(const struct mk__tags *tags, uint64_t tag);
/*
 * Calls `choose` for each process with a tag of this range, zombies included, and sends it the signal that is returned;
 * 0: none.
 */
void mk__tag_each(const struct mk__tags *tags, int (*choose)(pid_t pid, uint64_t tag));

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Starts one program, in the starter.
 */
#ifndef MK_KIT_CHILD_SPAWN_H
#define MK_KIT_CHILD_SPAWN_H

#include "message.h"

/* What to start; all of it is valid until the call returns. */
struct mk__spawn {
    const char *path, *folder;
    char *const *argv;
    char *const *envp;
    const int *fds; /* three; -1: that of the caller */
    const struct mk_child_limits *limits;
    uint64_t tag; /* tag.h; 0: none */
};

/*
 * Starts it, and returns once it runs: in its own session, without signals that are blocked or ignored.
 * Returns its number, with a pidfd in `ret_pidfd`, or -errno with the step that has failed.
 */
pid_t mk__spawn_start(const struct mk__spawn *s, int *ret_pidfd, enum mk_child_step *ret_step);

#endif

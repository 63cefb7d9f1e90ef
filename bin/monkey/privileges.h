// SPDX-License-Identifier: Apache-2.0
/*
 * Dropping root's privileges irrevocably.
 */
#ifndef MONKEY_PRIVILEGES_H
#define MONKEY_PRIVILEGES_H

#include <monkey/monkey.h>

/*
 * Sets no_new_privs: programs that this process executes gain no privileges. Call before any thread exists, since
 * threads inherit it.
 * Returns 0, or -errno after a message on stderr.
 */
int privileges_set_no_new_privs(void);

/* Has the kernel write no core file, and let only root look into this process: no other program of its user. */
void privileges_forbid_dumps(void);
/* Forbids or allows that, as CoreDumps says; after the user has changed, when the kernel decides anew. */
void privileges_apply_core_dumps(const struct mk_server *server);

/* Returns whether this process is root and User names another user. */
bool privileges_must_drop(const struct mk_server_process *p);

/*
 * Becomes that user (ids, groups, capabilities) and verifies it. Call before any thread exists.
 * Returns 0, or -errno after a message on stderr: the server must not start then.
 */
int privileges_drop(const struct mk_server_process *p);

/* Calls `check` as that user in a child process. Returns its result, or 0 if the child could not run it. */
int privileges_run_as_user(const struct mk_server_process *p, int (*check)(void *ctx), void *ctx);

#endif

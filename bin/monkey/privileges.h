// SPDX-License-Identifier: Apache-2.0
/*
 * Giving up the rights of root, for good.
 */
#ifndef MONKEY_PRIVILEGES_H
#define MONKEY_PRIVILEGES_H

#include <monkey/monkey.h>

/*
 * No program that we may run has more rights than we have. Before there are threads: it is theirs from then on. 0, or
 * -errno after a sentence on stderr.
 */
int privileges_set_no_new_privs(void);

/* Does the configuration want another user than root, who we are? */
bool privileges_must_drop(const struct mk_server_process *p);

/*
 * Becomes that user, in every respect that the kernel knows, and looks whether it is true. 0, or -errno after a
 * sentence on stderr: nothing may be served then. Before there are threads.
 */
int privileges_drop(const struct mk_server_process *p);

/* In a process of its own, as that user: `check` returns how many things are wrong. */
int privileges_run_as_user(const struct mk_server_process *p, int (*check)(void *ctx), void *ctx);

#endif

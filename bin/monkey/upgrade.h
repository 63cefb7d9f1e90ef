// SPDX-License-Identifier: Apache-2.0
/*
 * Replaces the running program by the one now at its path: the new process serves before the old one drains.
 */
#ifndef MONKEY_UPGRADE_H
#define MONKEY_UPGRADE_H

#include <monkey/monkey.h>

/*
 * Starts the program now at our path with our sockets, and waits until it is ready; under a supervisor, the supervisor
 * has done that already.
 * Returns true if the new process serves and this server shall stop; false if not: the log says why.
 */
bool upgrade_run(struct mk_server *server);

#endif

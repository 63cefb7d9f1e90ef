// SPDX-License-Identifier: Apache-2.0
/*
 * The parent process of the server: holds the listening sockets, so that no connection is refused while no server runs,
 * restarts a server that crashed, and replaces it at an upgrade.
 */
#ifndef MONKEY_SUPERVISOR_H
#define MONKEY_SUPERVISOR_H

#include "options.h"

/* Runs until all servers have ended. Returns the exit code. */
int supervisor_run(const struct options *o);

#endif

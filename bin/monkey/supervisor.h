// SPDX-License-Identifier: Apache-2.0
/*
 * The process above the server: it holds the listening sockets, so that no connection is refused while there is no
 * server, starts one again that crashed, and changes one for another.
 */
#ifndef MONKEY_SUPERVISOR_H
#define MONKEY_SUPERVISOR_H

#include "options.h"

/* Runs to the end of all servers; the exit code. */
int supervisor_run(const struct options *o);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Runs a server from its start to its end.
 */
#ifndef MONKEY_SERVE_H
#define MONKEY_SERVE_H

#include <monkey/monkey.h>

#include "options.h"

/* Runs a server whose configuration is loaded, until a signal ends it. Returns the exit code. */
int serve_run(struct mk_server *server, const struct options *o);

#endif

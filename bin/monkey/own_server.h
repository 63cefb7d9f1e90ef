// SPDX-License-Identifier: Apache-2.0
/*
 * Recognizes the processes of the server that serves a configuration already, for `monkey -t`.
 */
#ifndef MONKEY_OWN_SERVER_H
#define MONKEY_OWN_SERVER_H

#include "options.h"

/* Returns whether the process was started with the configuration of these options: mk_server_is_own_fn. */
bool own_server_is(int pid, void *options);

#endif

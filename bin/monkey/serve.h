// SPDX-License-Identifier: Apache-2.0
/*
 * Loads a configuration and runs a server from its start to its end.
 */
#ifndef MONKEY_SERVE_H
#define MONKEY_SERVE_H

#include <monkey/monkey.h>

#include "options.h"

/* Runs a server whose configuration is loaded, until a signal ends it. Returns the exit code. */
int serve(struct mk_server *server, const struct options *o);
/* Prints the server's problems on stderr. Returns `code`. */
int print_problems(const struct mk_server *server, int code);

/* Loads the configuration that the options name; `listen_text` must live as long as the server. Returns as
 * mk_server_load(). */
int load_config(struct mk_server *server, const struct options *o, char *listen_text, unsigned size);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * A server from its start to its end.
 */
#ifndef MONKEY_SERVE_H
#define MONKEY_SERVE_H

#include <monkey/monkey.h>

#include "options.h"

/* With a configuration that has been loaded; the exit code. */
int serve(struct mk_server *server, const struct options *o);
/* Prints what was wrong, and returns `code`. */
int print_problems(const struct mk_server *server, int code);

/* Loads what the options name: the result of mk_server_load(). `listen_text` must stay with the server. */
int load_config(struct mk_server *server, const struct options *o, char *listen_text, unsigned size);

#endif

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

/*
 * Looks at the configuration again as the user that the server will be, and warns of what that one cannot do. `o` says
 * where it lies.
 */
void check_as_user(const struct mk_server *server, const struct options *o);

#endif

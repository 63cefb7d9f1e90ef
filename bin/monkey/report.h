// SPDX-License-Identifier: Apache-2.0
/*
 * What `monkey -t` prints: the problems of a configuration, for people or as one JSON document, and what to make of
 * them. Builds for small devices print the list alone.
 */
#ifndef MONKEY_REPORT_H
#define MONKEY_REPORT_H

#include <monkey/monkey.h>

#include "options.h"

/* Looks at everything, prints it, and returns the exit code. `loaded` is the result of mk_server_load(). */
int report_test(struct mk_server *server, const struct options *o, int loaded);

/*
 * Before a start as root: warns on stderr of what the user that the server will run as cannot read. Returns nothing:
 * the server can start, but that user can not reload.
 */
void report_as_user(const struct mk_server *server, const struct options *o);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The output of `monkey -t`: the problems of a configuration as text or as one JSON document, and a summary.
 */
#ifndef MONKEY_REPORT_H
#define MONKEY_REPORT_H

#include <monkey/monkey.h>

#include "options.h"

/* Checks and prints everything. `loaded` is the result of mk_server_load(). Returns the exit code. */
int report_test(struct mk_server *server, const struct options *o, int loaded);

/*
 * Before a start as root: warns on stderr of files that the configured User cannot read. The server can start all the
 * same, but a later reload would fail.
 */
void report_as_user(const struct mk_server *server, const struct options *o);

#endif

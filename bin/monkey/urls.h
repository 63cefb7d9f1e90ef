// SPDX-License-Identifier: Apache-2.0
/*
 * The addresses of a running server in the form that a browser takes.
 */
#ifndef MONKEY_URLS_H
#define MONKEY_URLS_H

#include <monkey/monkey.h>

/*
 * Prints the folder `root` and the URLs of all listeners on stdout. For a listener on all addresses these are localhost
 * and the addresses of the network interfaces, without link-local ones.
 */
void urls_print(const struct mk_server *server, const char *root);

/* Prints the URLs on stderr, if that is a terminal: after the log's lines of the start. */
void urls_print_on_terminal(const struct mk_server *server);

#endif

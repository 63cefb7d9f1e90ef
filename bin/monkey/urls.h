// SPDX-License-Identifier: Apache-2.0
/*
 * The addresses of a running server in the form that a browser takes.
 */
#ifndef MONKEY_URLS_H
#define MONKEY_URLS_H

#include <monkey/monkey.h>

/*
 * Prints the folder `root` and the URLs of all listeners on stdout. For a listener on all addresses these are localhost
 * and the addresses of the network interfaces, without link-local ones. `https`: the scheme.
 */
void urls_print(const struct mk_server *server, const char *root, bool https);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The configuration that the command line names.
 */
#ifndef MONKEY_CONFIG_H
#define MONKEY_CONFIG_H

#include <monkey/monkey.h>

#include "options.h"

/*
 * Sets o->dir to the directory of the configuration: -c, else ./conf, else the installed one; it stays NULL with -o.
 * Returns 0, or EXIT_CONFIG after a message on stderr that there is none. With --json loading reports it.
 */
int config_find(struct options *o);
/* Returns the installed directory of the configuration. */
const char *config_find_installed(void);
/* Loads it; `listen_text` must live as long as the server. Returns as mk_server_load(). */
int config_load(struct mk_server *server, const struct options *o, char *listen_text, unsigned size);

#endif

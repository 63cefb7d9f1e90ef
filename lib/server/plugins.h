// SPDX-License-Identifier: Apache-2.0
/*
 * The plugins of a generation, in their order.
 */
#ifndef MK_SERVER_PLUGINS_H
#define MK_SERVER_PLUGINS_H

#include "server/generation.h"

/* Small builds have only plugins that need neither start nor stop but for hosts. */
enum { MK__PLUGIN_STARTS = !MK_SMALL };

/* Reads plugins.load and opens what it names; its problems are in g->load_conf. 0 or -ENOMEM. */
int mk__plugins_read(struct mk_generation *g, const struct mk__generation_source *source);
/* Declares what the core and the plugins have in the configuration, also of those that are not loaded. 0 or -errno. */
int mk__plugins_declare(struct mk_generation *g);

/* Before the hosts. What is wrong is among the problems of g->conf. 0 or -ENOMEM. */
int mk__plugins_start(struct mk_generation *g);
/* Once all hosts are there; as above. */
int mk__plugins_check(struct mk_generation *g);
/* After the hosts. */
void mk__plugins_stop(struct mk_generation *g);
/* Closes the modules: no row, no name and no function of theirs may be used any more. */
void mk__plugins_close(struct mk_generation *g);

#endif

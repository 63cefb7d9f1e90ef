// SPDX-License-Identifier: Apache-2.0
/*
 * Loads, starts and stops the plugins of a generation. For the thread that loads it, and the one that frees it.
 */
#ifndef MK_SERVER_PLUGINS_H
#define MK_SERVER_PLUGINS_H

#include "server/generation/generation.h"

/* Adds where in plugins.load, which was read, the line of a plugin belongs (server/plugins/load_order.h). */
MK_COLD void mk__plugins_describe_place(const char *name, struct mk_buf *out, void *generation);
/* Reads plugins.load and opens what it names; the problems are in g->load_conf. Returns 0 or -ENOMEM. */
MK_COLD int mk__plugins_read(struct mk_generation *g, const struct mk__generation_source *source);
/*
 * Loads a transport that is installed, as if plugins.load had a line for it, in front of all plugins that are none;
 * does nothing if it is loaded.
 */
MK_COLD void mk__plugins_add_transport(struct mk_generation *g, const struct mk__generation_source *source,
                                       const char *name);
/* Declares the sections of the core and the plugins, also of plugins that are not loaded. Returns 0 or -errno. */
MK_COLD int mk__plugins_declare(struct mk_generation *g);

/* Declares the sections of the core and of all plugins of the build, for the manual. Returns 0 or -errno. */
MK_COLD int mk__plugins_declare_all(struct mk__conf *conf);

/* Starts the plugins, before the hosts are read. Errors go to g->conf. Returns 0 or -ENOMEM. */
MK_COLD int mk__plugins_start(struct mk_generation *g);
/* Calls generation_check of the plugins without errors, when all hosts are read. Errors go to g->conf. 0 or -ENOMEM. */
MK_COLD int mk__plugins_check(struct mk_generation *g);
/* Stops the plugins, after the hosts. */
MK_COLD void mk__plugins_stop(struct mk_generation *g);
/* Closes the modules: their functions, strings and tables are unmapped. */
MK_COLD void mk__plugins_close(struct mk_generation *g);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * [HANDLERS]: which plugin answers for which paths of a host. Lives by the clock of the generation.
 */
#ifndef MK_SERVER_HANDLERS_H
#define MK_SERVER_HANDLERS_H

#include "server/generation.h"

extern const struct mk_conf_section mk__section_handlers;

/* Finds the plugins that the host's lines name, and reports what is wrong with them. */
void mk__handlers_resolve(struct mk_generation *g, struct mk_host *host);

/*
 * The first line that matches; NULL: all plugins are asked. 0, or -errno: it cannot be told whether a line matches
 * (mk_pattern_match), and nobody may be asked.
 */
int mk__handlers_find(const struct mk_host *host, struct mk_str path, const struct mk__handler **ret_handler);

#endif

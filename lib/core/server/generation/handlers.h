// SPDX-License-Identifier: Apache-2.0
/*
 * [HANDLERS]: the plugin that answers for some paths of a host. Lives as long as the generation.
 */
#ifndef MK_SERVER_HANDLERS_H
#define MK_SERVER_HANDLERS_H

#include "server/generation/generation.h"

extern const struct mk_conf_section mk__section_handlers;

/*
 * Makes the host's list of the lines of its sections and those in monkey.conf, finds the plugins that they name, and
 * reports errors. Returns 0 or -ENOMEM.
 */
int mk__handlers_resolve(struct mk_generation *g, struct mk_host *host);

/*
 * Finds the first line that matches the path; NULL: none, all plugins are asked. Returns 0, or -errno: it is unknown
 * whether a line matches (mk_pattern_match), and no plugin may answer. Any thread.
 */
int mk__handlers_find(const struct mk_host *host, struct mk_str path, const struct mk__handler **ret_handler);

#endif

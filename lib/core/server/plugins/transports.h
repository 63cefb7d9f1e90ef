// SPDX-License-Identifier: Apache-2.0
/*
 * Transports of plugins that open connections themselves.
 */
#ifndef MK_SERVER_TRANSPORTS_H
#define MK_SERVER_TRANSPORTS_H

#include "server/generation/generation.h"

/*
 * Loads the transports that the plugins of the generation need for this configuration (mk_plugin_interfaces.needs),
 * before the sections are declared. Returns 0 or -ENOMEM.
 */
MK_COLD int mk__transports_load_needed(struct mk_generation *g, const struct mk__generation_source *source);

#endif

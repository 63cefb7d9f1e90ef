// SPDX-License-Identifier: Apache-2.0
/*
 * The plugins of this build, and those that a configuration loads.
 */
#ifndef MK_SERVER_PLUGIN_H
#define MK_SERVER_PLUGIN_H

#include <monkey/plugin.h>

/* Ends with NULL; made by the build. */
extern const struct mk_plugin *const mk__builtin_plugins[];

/* NULL when there is none of that name. */
const struct mk_plugin *mk__plugin_find(struct mk_str name);

#endif

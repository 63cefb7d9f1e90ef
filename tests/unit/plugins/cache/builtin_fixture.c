// SPDX-License-Identifier: Apache-2.0
/* The plugins of the server in which the tests of the cache run. */
#include <monkey/plugin.h>

#include "server/plugins/module.h"

extern const struct mk_plugin mk_plugin_liana, mk_plugin_cache;

const struct mk_plugin *const mk__builtin_plugins[] = {&mk_plugin_liana, &mk_plugin_cache, NULL};
const char *const mk__plugin_order[] = {"liana", "cache", NULL};

// SPDX-License-Identifier: Apache-2.0
/*
 * Finding plugins by their name. Which of them run is decided by the configuration (generation.c).
 */
#include "server/plugin.h"

const struct mk_plugin *mk__plugin_find(struct mk_str name)
{
    for (const struct mk_plugin *const *p = mk__builtin_plugins; *p; p++)
        if (mk_str_ieq(mk_str_c((*p)->name), name))
            return *p;
    return NULL;
}

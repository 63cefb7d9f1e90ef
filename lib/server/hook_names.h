// SPDX-License-Identifier: Apache-2.0
/*
 * The names of the plugins' hooks, for the output of `monkey -b`. Left out of small builds.
 */
#ifndef MK_SERVER_HOOK_NAMES_H
#define MK_SERVER_HOOK_NAMES_H

#include <monkey/plugin.h>

/* Appends the names of a plugin's hooks in the order in which they are called, separated by blanks. */
void mk__hook_names_print(const struct mk_plugin *plugin, struct mk_buf *out);

#endif

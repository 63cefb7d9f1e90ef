// SPDX-License-Identifier: Apache-2.0
/*
 * The moments at which plugins are asked or told, as a table: for people who want to know what a build does when.
 */
#ifndef MK_SERVER_HOOK_NAMES_H
#define MK_SERVER_HOOK_NAMES_H

#include <monkey/plugin.h>

/* Appends the moments at which a plugin has a say, in the order of their coming, with blanks between them. */
void mk__hook_names_print(const struct mk_plugin *plugin, struct mk_buf *out);

#endif

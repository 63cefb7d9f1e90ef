// SPDX-License-Identifier: Apache-2.0
/*
 * What the plugin adds to `monkey shell`: the command `cache`.
 */
#ifndef CACHE_COMMANDS_H
#define CACHE_COMMANDS_H

#include <monkey/command.h>

/* Ends with a row without a name. */
extern const struct mk_command cache_commands[];

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * What the plugin adds to `monkey shell`: the commands `upstreams` and `upstream`.
 */
#ifndef UPSTREAM_COMMANDS_H
#define UPSTREAM_COMMANDS_H

#include <monkey/kit/command.h>

/* Ends with a row without a name. */
extern const struct mk_command upstream_commands[];

#endif

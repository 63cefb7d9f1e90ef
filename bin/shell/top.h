// SPDX-License-Identifier: Apache-2.0
/*
 * Shows the load of the server live, until q is pressed.
 */
#ifndef SHELL_TOP_H
#define SHELL_TOP_H

#include "view.h"

/*
 * Refreshes every `seconds`; on something other than a terminal it adds a line each time, until input or output ends.
 * Returns as view_ask().
 */
int top_run(struct link *l, double seconds, const struct view_options *options);

#endif

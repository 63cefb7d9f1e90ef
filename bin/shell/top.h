// SPDX-License-Identifier: Apache-2.0
/*
 * Shows the load of the server live, until q is pressed.
 */
#ifndef SHELL_TOP_H
#define SHELL_TOP_H

#include "view.h"

/*
 * Draws the screen every `seconds`. Elsewhere than on a terminal it writes a line each time, with --json an object,
 * until its output is closed, a signal ends it or, if both ends are a terminal, a line is entered. Returns as
 * view_ask().
 */
int top_run(struct link *l, double seconds, const struct view_options *options);

#endif

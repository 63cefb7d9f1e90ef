// SPDX-License-Identifier: Apache-2.0
/*
 * `top` as a screen.
 */
#ifndef SHELL_TOP_SCREEN_H
#define SHELL_TOP_SCREEN_H

#include "top_view.h"

/* Appends `rows` lines, of style.columns at most; three at least. */
void top_screen_draw(const struct top_view *v, struct mk_buf *out);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The tables of `top`: the hosts with the most requests, and the paths that were under way most often.
 */
#ifndef SHELL_TOP_TABLES_H
#define SHELL_TOP_TABLES_H

#include "top_view.h"

/* Append a heading and `n` rows at most; of hosts there must be so many. */
void top_add_hosts(const struct top_view *v, size_t n, struct mk_buf *out);
void top_add_paths(const struct top_view *v, size_t n, struct mk_buf *out);

#endif

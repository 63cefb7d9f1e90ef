// SPDX-License-Identifier: Apache-2.0
/* TryFiles: the names that stand for a path, in their order. Lean builds go without. */
#ifndef STATIC_TRYFILES_H
#define STATIC_TRYFILES_H

#include "static.h"

/* Checks the words of the directive and reads a last "=CODE" off them; complains about the line. */
void tryfiles_check(const struct mk_conf_check *check, struct static_host *host);

/* The first name that exists. As find_path. */
struct find_result tryfiles_find(struct static_site *site, struct mk_str path, const struct mk_accept *accept,
                                 bool cached);

#endif

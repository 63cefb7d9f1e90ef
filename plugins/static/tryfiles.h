// SPDX-License-Identifier: Apache-2.0
/* TryFiles: the names that are tried for a path. Small builds have none. */
#ifndef STATIC_TRYFILES_H
#define STATIC_TRYFILES_H

#include "static.h"

/* Checks the words of the directive, parses a last "=CODE", and reports errors. */
void tryfiles_check(const struct mk_conf_check *check, struct static_host *host);

/* Finds the first name that exists; as find_path(). */
struct find_result tryfiles_find(struct static_site *site, struct mk_str path, const struct mk_accept *accept,
                                 bool cached);

#endif

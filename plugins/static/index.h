// SPDX-License-Identifier: Apache-2.0
/*
 * Opens the file of a path, or the index of its directory.
 */
#ifndef STATIC_INDEX_H
#define STATIC_INDEX_H

#include "static.h"

/* Finds the file of `path`, NUL-terminated, without TryFiles; else as find_path(). */
struct find_result index_find(struct static_site *site, struct mk_str path, const struct mk_accept *accept,
                              bool cached);

#endif

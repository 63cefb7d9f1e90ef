// SPDX-License-Identifier: Apache-2.0
/*
 * A path: the file that it names, or the index of its directory.
 */
#ifndef STATIC_INDEX_H
#define STATIC_INDEX_H

#include "static.h"

/* One name, NUL-terminated: a file, the index of a directory, or a directory without its slash. */
struct find_result index_find(struct static_site *site, struct mk_str path, const struct mk_accept *accept,
                              bool cached);

#endif

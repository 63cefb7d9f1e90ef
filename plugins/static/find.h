// SPDX-License-Identifier: Apache-2.0
/*
 * What a request finds at a host, wholly of one root. Pure file system: no requests here.
 */
#ifndef STATIC_FIND_H
#define STATIC_FIND_H

#include "static.h"

/*
 * Finds what `path` (decoded, normalized, NUL-terminated, with a leading slash) names: a file, the index of a
 * directory, or a directory that was asked for without its slash. With `accept`, a variant that is welcome is
 * preferred. With `cached` only what the kernel can say without waiting for a disk; then the errno may be
 * EAGAIN: call again without it, on a thread that may wait. `path` must not change while it is used.
 */
struct find_result find_path(struct static_site *site, struct mk_str path, const struct mk_accept *accept, bool cached);

#endif

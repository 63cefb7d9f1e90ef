// SPDX-License-Identifier: Apache-2.0
/*
 * What a backend says of itself in a response, as the client sees it: Location, Content-Location and Set-Cookie. Pure
 * but for the arena. Each function returns `value` itself if nothing changes, or without memory.
 */
#ifndef PROXY_REWRITE_H
#define PROXY_REWRITE_H

#include "conf.h"

/*
 * Returns the location that the client can use: a path, if the backend has named itself or this host, and with the
 * prefix that the backend does not know. Others stay as they are. `authority` is what the client has asked for.
 */
struct mk_str rewrite_location(const struct proxy_conf *conf, struct mk_str authority, struct mk_str value,
                               struct mk_arena *arena);
/*
 * Returns a cookie whose Path has that prefix, and whose Domain is `host`, which the client has asked for, if it was
 * the backend's. Only the last attribute of each name counts (RFC 6265 section 5.3); all else stays byte for byte.
 * Cookies whose name begins with `__Host-` stay, because they must have the path `/`.
 */
struct mk_str rewrite_cookie(const struct proxy_conf *conf, struct mk_str host, struct mk_str value,
                             struct mk_arena *arena);

#endif

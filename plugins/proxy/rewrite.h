// SPDX-License-Identifier: Apache-2.0
/*
 * URLs of a backend in a response, as the client sees them, and those of the client in a request, as the backend does.
 * Pure but for the arena.
 *
 *     Location, Content-Location    /x, http://backend/x
 *     Refresh                       5; url=/x
 *     Link                          </x>; rel=preload, <http://backend/y>; rel=next
 *     Set-Cookie                    a=b; Path=/x; Domain=backend
 *     Destination                   http://site.example/app/x (of a request)
 *     If                            <http://site.example/app/x> (<urn:uuid:1>) (of a request)
 */
#ifndef PROXY_REWRITE_H
#define PROXY_REWRITE_H

#include "mapping.h"

/* Returns the value of a header for the client: `value` itself if nothing changes, or without memory. */
typedef struct mk_str (*rewrite_fn)(const struct mapping *m, struct mk_str value, struct mk_arena *arena);

/*
 * Returns a location that the client can use. A path, and a URL of the backend or of this host, becomes a path with the
 * prefix that the backend does not know, unless it is below that already. A URL of this host counts only with the
 * scheme of the request: `https://` in a response to an `http` request is a redirect that has to stay one.
 */
struct mk_str rewrite_location(const struct mapping *m, struct mk_str value, struct mk_arena *arena);
/* Returns a value of Refresh with such a location. */
struct mk_str rewrite_refresh(const struct mapping *m, struct mk_str value, struct mk_arena *arena);
/* Returns a value of Link (RFC 8288) with such targets; parameters stay. */
struct mk_str rewrite_link(const struct mapping *m, struct mk_str value, struct mk_arena *arena);
/*
 * Returns a cookie whose Path has that prefix, and whose Domain is the host that the client has asked for, if it was
 * the backend's. Only the last attribute of each name counts (RFC 6265 section 5.3); all else stays byte for byte.
 * Cookies whose name begins with `__Host-` stay, because they must have the path `/`.
 */
struct mk_str rewrite_cookie(const struct mapping *m, struct mk_str value, struct mk_arena *arena);

/*
 * Writes the URL of Destination (RFC 4918 section 10.3) for the backend: with its scheme, Host and path, since servers
 * compare these with what they know of themselves. Others than those of the section stay as they are.
 */
void rewrite_write_destination(const struct mapping *m, struct mk_str url, struct mk_buf *out);
/* Writes an If (RFC 4918 section 10.4) whose resource tags are such URLs; state tokens and entity tags stay. */
void rewrite_write_if(const struct mapping *m, struct mk_str value, struct mk_buf *out);

#endif

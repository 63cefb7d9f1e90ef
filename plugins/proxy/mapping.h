// SPDX-License-Identifier: Apache-2.0
/*
 * How the URLs of a site correspond to those of a backend: the origin and the prefix of the path.
 *
 *     https://site.example/app/x          Match /app, To http://127.0.0.1:8080/v2
 *     └ client ──────────────┘
 *     http://127.0.0.1:8080/v2/x
 *     └ backend ─────────────┘
 */
#ifndef PROXY_MAPPING_H
#define PROXY_MAPPING_H

#include "conf.h"

#include <monkey/request.h>

/* One of the two. The prefix is percent-encoded and has no slash at its end; both are empty if none is replaced. */
struct mapping_side {
    struct mk_str scheme, authorities[2]; /* each with or without a port; the second one may be empty */
    struct mk_str prefix;
};

struct mapping {
    struct mapping_side client, backend;
    struct mk_str host; /* what the client has asked for, without a port */
};

/* Returns host and port that the client asked for, as Host has them. */
struct mk_str mapping_get_authority(struct mk_request *req);
/* Returns the Host that the backend gets. */
struct mk_str mapping_get_backend_host(struct mk_request *req, const struct proxy_conf *conf);
/* Describes a request of a section. The texts live as long as the request. Returns 0 or -ENOMEM. */
int mapping_init(struct mapping *m, struct mk_request *req, const struct proxy_conf *conf);

/*
 * Splits the scheme and the authority off a URL; they are empty in a path, and the scheme is empty in `//host/path`.
 * Returns the rest, which is all of other references and of URLs with other schemes. Pure.
 */
struct mk_str mapping_split_origin(struct mk_str url, struct mk_str *ret_scheme, struct mk_str *ret_authority);
/* Tells whether two authorities with this scheme are the same; its default port may be left out. Pure. */
bool mapping_is_same(struct mk_str scheme, struct mk_str a, struct mk_str side_scheme, struct mk_str b);
/* Returns what follows a prefix in a path, if the path is that or below it; else `.p` is NULL. Pure. */
struct mk_str mapping_strip_prefix(struct mk_str path, struct mk_str prefix);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * What decides about the server of a request with `Balance Hash`: the value of HashBy.
 */
#ifndef UPSTREAM_HASH_BY_H
#define UPSTREAM_HASH_BY_H

#include <monkey/conf.h>
#include <monkey/request.h>

enum hash_by_kind {
    HASH_BY_CLIENT,
    HASH_BY_PATH,
    HASH_BY_URL,
    HASH_BY_HEADER,
    HASH_BY_COOKIE,
    HASH_BY_QUERY,
    HASH_BY_KINDS,
};

struct hash_by {
    uint8_t kind;       /* enum hash_by_kind */
    struct mk_str name; /* of the header, cookie or parameter */
};

/* Parses a value (mk_conf_parse_fn). */
int hash_by_parse(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);

/* Gets the hash of what the request has there; returns false if it has nothing. */
bool hash_by_get(const struct hash_by *by, struct mk_request *req, uint64_t *ret);

/* Finds a parameter in a query, neither of them decoded; `.p` NULL: there is none. Pure. */
struct mk_str hash_by_find_parameter(struct mk_str query, struct mk_str name);

#endif

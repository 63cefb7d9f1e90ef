// SPDX-License-Identifier: Apache-2.0
/*
 * The conditions under which a section applies to a request: all that are set must hold.
 */
#ifndef MANDRIL_CONDITIONS_H
#define MANDRIL_CONDITIONS_H

#include <monkey/inspect.h>

#include "networks.h"

enum header_kind { HEADER_CONTAINS, HEADER_EQUALS, HEADER_REGEX };

/* A request header, and what its value must, or must not, be. A missing header is an empty value. */
struct header_condition {
    struct header_condition *next;
    struct mk_str name, text; /* `text`: what was written behind the name */
    struct mk_str value;
    struct mk_pattern regex;
    uint8_t kind; /* enum header_kind */
    bool negated;
};

/* The fields of a section's struct. What is not set is empty, and holds for all requests. */
struct conditions {
    struct mk_pattern match;
    struct mk_networks networks;
    struct mk_str file;
    struct mk_conf_list methods;
    struct header_condition *headers;
    bool foreign_referer;
};

/* Parses a Header line. Returns as mk_conf_parse_fn. */
int conditions_parse_header(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                            struct mk_buf *error);

/* What a request is asked about. */
struct conditions_subject {
    struct mk_request *req; /* NULL: a request that is only explained */
    struct mk_str path, method;
    struct mk_address client;
    const struct mk_explain *explained; /* with `req` NULL: the request, and its host */
    const struct mk_host *host;
};

/*
 * Tells whether the conditions other than networks hold.
 * Returns 1, 0, or -errno: it is not known, because a pattern takes too much time or memory.
 */
int conditions_match(const struct conditions *c, const struct conditions_subject *subject);
/* Returns whether the conditions other than networks hold for every request for which those of `later` hold. */
bool conditions_cover(const struct conditions *c, const struct conditions *later);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The conditions under which a section applies to a request: all that are set must hold.
 */
#ifndef MANDRIL_CONDITIONS_H
#define MANDRIL_CONDITIONS_H

#include <monkey/inspect.h>
#include <monkey/when.h>

#include "networks.h"

/* The fields of a section's struct. What is not set is empty, and holds for all requests. */
struct conditions {
    struct mk_pattern match;
    struct mk_networks networks;
    struct mk_str file;
    struct mk_when when;
    bool foreign_referer;
};

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

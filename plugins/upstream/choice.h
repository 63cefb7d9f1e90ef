// SPDX-License-Identifier: Apache-2.0
/*
 * Which servers of a group may get a request, and which one of them does.
 */
#ifndef UPSTREAM_CHOICE_H
#define UPSTREAM_CHOICE_H

#include "members.h"

struct criteria {
    const struct mk_upstream_tries *tries; /* servers that it has had */
    const struct preference *preference;
    const struct server *only; /* NULL: any */
    bool is_probe;             /* also those that are ejected: none responds */
    uint64_t now_ms;
};

/*
 * Returns the member that gets the request. NULL: none does; `*ret_is_full`: only because those that could have as many
 * requests as they may have.
 */
struct member *choice_make(struct mk_upstream_group *group, const struct criteria *criteria, bool *ret_is_full);

#endif

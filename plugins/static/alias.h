// SPDX-License-Identifier: Apache-2.0
/*
 * [ALIAS]: paths that lead to a folder beside the document root, or to one file. Each is a site of its own, with the
 * settings of its host; TryFiles belongs to the document root. Lean builds have none.
 */
#ifndef STATIC_ALIAS_H
#define STATIC_ALIAS_H

#include <monkey/plugin.h>

#include "static.h"

/* What a section says. */
struct alias_rule {
    struct mk_pattern match; /* a prefix or an exact path */
    struct mk_str to;
};

extern const struct mk_conf_key alias_keys[]; /* of struct alias_rule */

/* Opens what the sections of the host name, in their order. 0 or -errno, the operator told; alias_free either way. */
int alias_load(struct mk_host *host, struct static_site *site, const struct mk_conf_section *section);
void alias_free(struct static_site *site);

/* The first alias of `at->site` that matches `at->path`: `at` is what lies below it then. */
bool alias_find(struct static_location *at);

/* Is it the root of a place, asked for without its slash? */
static inline bool alias_needs_slash(const struct static_location *at)
{
    return at->path.len == 0;
}

#endif

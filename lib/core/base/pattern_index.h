// SPDX-License-Identifier: Apache-2.0
/*
 * An index of many patterns (<monkey/base/pattern.h>), which finds those that can match a path without comparing the
 * path with each: by the text that all paths of a pattern begin with, its head.
 *
 * The different heads are in one sorted array. All heads that a path begins with are found from the greatest one that
 * is not above the path: each head names the longest other one that it begins with.
 */
#ifndef MK_BASE_PATTERN_INDEX_H
#define MK_BASE_PATTERN_INDEX_H

#include <monkey/base/pattern.h>

/* Returns whether an expression was written with ~*. */
static inline bool mk__pattern_index_ignores_case(const struct mk_pattern *pattern)
{
    return pattern->regex && pattern->text.p[-1] == '*'; /* its text begins right behind the signs ~ or ~* */
}

/* Returns the head: the longest text that is known to begin all paths of the pattern, a part of the pattern's text. */
struct mk_str mk__pattern_index_head(const struct mk_pattern *pattern);

/* Constant once it is made; any thread may search it. */
struct mk__pattern_index;

/* Makes an index of `n` patterns, at least one, which must live as long as it. Returns NULL without memory. */
struct mk__pattern_index *mk__pattern_index_new(const struct mk_pattern *const *patterns, uint32_t n,
                                                struct mk_arena *arena);

/*
 * Returns the number of the first pattern, from number `from` on, that may match a path which begins with `path`'s
 * bytes or is that path; UINT32_MAX: there is none. Whether it does match is for mk_pattern_match() to say.
 */
uint32_t mk__pattern_index_next(const struct mk__pattern_index *index, struct mk_str path, uint32_t from);

#endif

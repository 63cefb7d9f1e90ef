// SPDX-License-Identifier: Apache-2.0
/*
 * Indexes of patterns (<monkey/base/pattern.h>) find those that can match by the text that all paths of a pattern begin
 * with, its head.
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

/* Returns what a pattern that covers `later` (mk_pattern_covers()) has a head of: its head, or that of all paths. */
struct mk_str mk__pattern_index_cover_head(const struct mk_pattern *later);

/* So many patterns are compared one by one, which is faster. */
enum { MK__PATTERN_INDEX_MIN = 16 };

#endif

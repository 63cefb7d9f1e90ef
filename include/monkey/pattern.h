// SPDX-License-Identifier: Apache-2.0
/*
 * Patterns for paths, as directives name them (`Match`). A path is decoded and normalized, so that nobody gets
 * around a pattern by writing it differently.
 *
 *     =/exact       this path and no other
 *     /prefix       the path itself and everything below it: /prefix, /prefix/x, but not /prefixed
 *     /prefix/      everything below it
 *     *.css         a glob without a slash: the last segment's name
 *     /a/ * /c.html a glob with slashes: the whole path (written without the blanks)
 *     ~^/a/[0-9]+$  a regular expression of PCRE2, found anywhere in the path; ~* in place of ~ ignores the case
 *
 * In a glob `*` stands for any bytes but a slash, `**` for any bytes, `?` for one byte but a slash. Matching takes
 * no memory, and no more time than the product of both lengths.
 *
 * Expressions see bytes, not characters; a dot is any byte, and `$` the very end. One match may take 50,000
 * steps (a few milliseconds) and a mebibyte. Whether an expression matches that would take more cannot be told, which
 * is a result of its own: clients choose paths, so a rule that protects something must refuse then. The log names the
 * line of the rule, once in ten seconds.
 */
#ifndef MONKEY_PATTERN_H
#define MONKEY_PATTERN_H

#include "arena.h"
#include "buf.h"
#include "str.h"

enum { MK_PATTERN_GLOB_MAX = 255, MK_PATTERN_GROUPS = 10 };

enum mk_pattern_kind { MK_PATTERN_EXACT, MK_PATTERN_PREFIX, MK_PATTERN_GLOB, MK_PATTERN_NAME, MK_PATTERN_REGEX };

struct mk_regex;

/* Points into the text that it was made from. Any thread may match. */
struct mk_pattern {
    uint8_t kind;    /* enum mk_pattern_kind */
    uint16_t groups; /* how many parentheses of an expression capture */
    struct mk_str text;
    const struct mk_regex *regex; /* lives by the arena's clock; NULL for the other kinds */
};

/*
 * 0, -ENOMEM, or -EINVAL with a phrase in `error`, and `pattern->text` then begins where the mistake is. What no
 * normalized path has (`//`, `/./`, `/../`) is one, but for expressions. `text` must stay. Only expressions take
 * memory, of `arena` and, until it is released, of the heap; the first one of the process opens libpcre2-8.
 */
MK_API int mk_pattern_parse(struct mk_pattern *pattern, struct mk_str text, struct mk_arena *arena,
                            struct mk_buf *error);

/*
 * 1: it matches; 0: it does not; below 0: it cannot be told, -EOVERFLOW (it costs too much) or -ENOMEM. Only
 * expressions have that. As a condition it counts as a match: right for a rule that refuses, wrong for one that allows,
 * which asks for `> 0`.
 */
MK_API int mk_pattern_match(const struct mk_pattern *pattern, struct mk_str path);

/*
 * The same; and if it is 1, `groups` gets what an expression found: the whole match, then what its parentheses
 * captured, empty where they took no part. All are empty for the other kinds. They point into `path`.
 */
MK_API int mk_pattern_capture(const struct mk_pattern *pattern, struct mk_str path,
                              struct mk_str groups[MK_PATTERN_GROUPS]);

/* What of `path` lies behind a prefix, without a leading slash; empty for the other kinds. */
MK_API struct mk_str mk_pattern_rest(const struct mk_pattern *pattern, struct mk_str path);

/*
 * True when `first` matches every path (they begin with a slash) that `later` matches, so that behind it `later`
 * never has a turn. False when that is not certain, as with two different expressions.
 */
MK_API bool mk_pattern_covers(const struct mk_pattern *first, const struct mk_pattern *later);

#endif

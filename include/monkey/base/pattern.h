// SPDX-License-Identifier: Apache-2.0
/*
 * Patterns for paths, as directives such as `Match` use them. A path is decoded and normalized before it is matched, so
 * that a different spelling of it does not evade a pattern.
 *
 *     =/exact       this path and no other
 *     /prefix       the path itself and everything below it: /prefix, /prefix/x, but not /prefixed
 *     /prefix/      everything below it
 *     *.css         a glob without a slash: matches the last segment
 *     /a/ * /c.html a glob with slashes: matches the whole path (written without the blanks)
 *     ~^/a/[0-9]+$  a PCRE2 regular expression, found anywhere in the path; ~* in place of ~ ignores the case
 *
 * In a glob `*` matches any bytes but a slash, `**` any bytes, `?` one byte but a slash. Matching a glob allocates
 * nothing, and takes time proportional to the product of both lengths at most.
 *
 * Expressions match bytes, not characters; a dot matches any byte, and `$` only the end. A match may take 50,000 steps
 * (a few milliseconds) and 1 MiB of memory. If it would take more, it is not known whether the expression matches,
 * which is a separate result: clients choose paths, so a rule that protects something must then refuse. The log names
 * the line of the rule, at most once in ten seconds.
 */
#ifndef MONKEY_PATTERN_H
#define MONKEY_PATTERN_H

#include "arena.h"
#include "buf.h"
#include "str.h"

MK_C_BEGIN

enum { MK_PATTERN_GLOB_MAX = 255, MK_PATTERN_GROUPS = 10 };

enum mk_pattern_kind { MK_PATTERN_EXACT, MK_PATTERN_PREFIX, MK_PATTERN_GLOB, MK_PATTERN_NAME, MK_PATTERN_REGEX };

struct mk_regex;

/* Points into the text that it was parsed from. Constant once it is parsed; any thread may match it. */
struct mk_pattern {
    uint8_t kind;    /* enum mk_pattern_kind */
    uint16_t groups; /* number of capturing parentheses of an expression */
    struct mk_str text;
    const struct mk_regex *regex; /* lives as long as the arena; NULL for the other kinds */
};

/*
 * Parses a pattern. `text` must live as long as the pattern. A glob or path that contains what no normalized path has
 * (`//`, `/./`, `/../`) is an error. Only expressions allocate: from `arena`, and from the heap until the arena is
 * released; the first one of the process opens libpcre2-8.
 * Returns 0, -ENOMEM, or -EINVAL with a phrase in `error`; `pattern->text` then begins at the mistake.
 */
MK_API int mk_pattern_parse(struct mk_pattern *pattern, struct mk_str text, struct mk_arena *arena,
                            struct mk_buf *error);

/* Like mk_pattern_parse() for an expression, with its ~, that is compared with texts that need not be paths. */
MK_API int mk_pattern_parse_expression(struct mk_pattern *pattern, struct mk_str text, struct mk_arena *arena,
                                       struct mk_buf *error);

/*
 * Matches a path.
 * Returns 1 (it matches), 0 (it does not), or, for expressions only, -EOVERFLOW (it takes too much time or memory) or
 * -ENOMEM: it is not known whether it matches. As a condition a negative result counts as a match, which is right for a
 * rule that refuses; a rule that allows must test `> 0`.
 */
MK_API int mk_pattern_match(const struct mk_pattern *pattern, struct mk_str path);

/* Several patterns, of which one is to match (mk_conf_patterns()). */
struct mk_patterns {
    struct mk_pattern *items;
    uint32_t n;
};

/* Matches a path with each in turn. Returns the first result of mk_pattern_match() that is not 0; or 0: none matches.
 */
MK_API int mk_patterns_match(const struct mk_patterns *all, struct mk_str path);

/*
 * Like mk_pattern_match(). If it returns 1, `groups` gets what an expression found: the whole match, then the captured
 * texts, which are empty for groups that took no part. For other kinds all are empty. They point into `path`.
 */
MK_API int mk_pattern_capture(const struct mk_pattern *pattern, struct mk_str path,
                              struct mk_str groups[MK_PATTERN_GROUPS]);

/* Returns what follows a prefix in `path`, without leading slashes; empty for the other kinds. */
MK_API struct mk_str mk_pattern_rest(const struct mk_pattern *pattern, struct mk_str path);

/* Returns whether the pattern is a path that ends in a slash and one star: it matches names in this folder only. */
MK_API bool mk_pattern_is_one_level(const struct mk_pattern *pattern);

/*
 * Returns whether `first` matches every path (paths begin with a slash) that `later` matches, so that a rule with
 * `later` after one with `first` never applies. False when this is not certain, as with two different expressions.
 */
MK_API bool mk_pattern_covers(const struct mk_pattern *first, const struct mk_pattern *later);

/* Returns whether no path matches both. False when this is not certain. */
MK_API bool mk_pattern_is_apart(const struct mk_pattern *a, const struct mk_pattern *b);

/*
 * An index of patterns in order, for a plugin with thousands of rules: it leaves out those that cannot match, without
 * comparing the path with each. Constant once it is made; any thread may search it.
 *
 *     for (uint32_t i = 0; (i = mk_pattern_index_next(index, path, i)) < n; i++)
 *         if (mk_pattern_match(&rules[i].match, path))
 */
struct mk_pattern_index;

/* Returns the pattern with a number. One with an empty text is for all paths. */
typedef const struct mk_pattern *(*mk_pattern_get_fn)(const void *ctx, uint32_t number);
/*
 * Makes an index of `n` patterns, which `get` is asked for now. It is in the arena, and refers to their texts. Returns
 * NULL without memory.
 */
MK_API const struct mk_pattern_index *mk_pattern_index_new(mk_pattern_get_fn get, const void *ctx, uint32_t n,
                                                           struct mk_arena *arena);
/*
 * Returns the number of the first pattern, from number `from` on, that may match the path: whether it does is for
 * mk_pattern_match() to say. UINT32_MAX: none does.
 */
MK_API uint32_t mk_pattern_index_next(const struct mk_pattern_index *index, struct mk_str path, uint32_t from);
/* Returns the number of the first pattern, from number `from` on, for which mk_pattern_covers() may be true. */
MK_API uint32_t mk_pattern_index_next_cover(const struct mk_pattern_index *index, const struct mk_pattern *later,
                                            uint32_t from);

MK_C_END

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Regular expressions for patterns (<monkey/pattern.h>), by PCRE2, over bytes. The program is not linked against the
 * library: it is opened when the first expression is compiled, so that nobody else pays for it.
 */
#ifndef MK_BASE_REGEX_H
#define MK_BASE_REGEX_H

#include <monkey/arena.h>
#include <monkey/buf.h>

#include <errno.h>

/* One compiled expression. Lives as long as the arena that it was compiled for; any thread may match it. */
struct mk_regex;

#ifdef MK_REGEX

/*
 * Compiles `text`, `~expression` or `~*expression` (any case), which must stay. 0, -ENOMEM, or -EINVAL with a
 * sentence in `error`; `*ret_fault` then counts the bytes of `text` before the one where the mistake is.
 */
int mk__regex_new(const struct mk_regex **ret_regex, struct mk_str text, struct mk_arena *arena, struct mk_buf *error,
                  size_t *ret_fault);

/* Where it stands, for the log ("sites/default:3"); lives as long as the expression. */
void mk__regex_set_location(const struct mk_regex *regex, struct mk_str location);

/* How many of its parentheses capture. */
unsigned mk__regex_groups(const struct mk_regex *regex);

/*
 * Whether the expression matches somewhere in `path`; where it does, `groups` gets the whole match and then what was
 * captured (empty when the group took no part), `n` in all. 1, 0, or what mk_pattern_match() says of those that cannot
 * be told; the log tells. NULL matches nothing.
 */
int mk__regex_match(const struct mk_regex *regex, struct mk_str path, struct mk_str *groups, unsigned n);

#else

static inline unsigned mk__regex_groups(const struct mk_regex *regex)
{
    (void)regex;
    return 0;
}

static inline int mk__regex_new(const struct mk_regex **ret_regex, struct mk_str text, struct mk_arena *arena,
                                struct mk_buf *error, size_t *ret_fault)
{
    (void)ret_regex, (void)text, (void)arena, (void)ret_fault;
    mk_buf_addf(error, "this build has no regular expressions; use a glob");
    return -EINVAL;
}

static inline void mk__regex_set_location(const struct mk_regex *regex, struct mk_str location)
{
    (void)regex, (void)location;
}

static inline int mk__regex_match(const struct mk_regex *regex, struct mk_str path, struct mk_str *groups, unsigned n)
{
    (void)regex, (void)path, (void)groups, (void)n;
    return 0;
}

#endif

#endif

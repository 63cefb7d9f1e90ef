// SPDX-License-Identifier: Apache-2.0
/*
 * Regular expressions for patterns (<monkey/base/pattern.h>), by PCRE2, over bytes. The program is not linked against
 * libpcre2-8, but opens it when the first expression is compiled: configurations without expressions do not need it.
 */
#ifndef MK_BASE_REGEX_H
#define MK_BASE_REGEX_H

#include <monkey/base/arena.h>
#include <monkey/base/buf.h>

#include <errno.h>

/* A compiled expression. It lives as long as the arena that it was compiled for; any thread may match it. */
struct mk_regex;

#ifdef MK_REGEX

/*
 * Compiles `text`, which is `~expression` or `~*expression` (ignores case) and must live as long as the result. Returns
 * 0, -ENOMEM, or -EINVAL with a sentence in `error` and the offset of the mistake in `text` in `*ret_fault`.
 */
int mk__regex_new(const struct mk_regex **ret_regex, struct mk_str text, struct mk_arena *arena, struct mk_buf *error,
                  size_t *ret_fault);

/* Sets where the expression stands, for the log ("sites/default:3"). `location` must live as long as the expression. */
void mk__regex_set_location(const struct mk_regex *regex, struct mk_str location);

/* Returns the number of capturing parentheses. */
unsigned mk__regex_groups(const struct mk_regex *regex);

/*
 * Matches the expression anywhere in `path`. On a match `groups` (`n` items) gets the whole match, then the captured
 * texts, which are empty for groups that took no part. NULL matches nothing.
 *
 * Returns 1, 0, or -EOVERFLOW (it takes too many steps or too much memory) or -ENOMEM if the result is not known; these
 * two are logged.
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

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
 *
 * In a glob `*` stands for any bytes but a slash, `**` for any bytes, `?` for one byte but a slash. Matching takes
 * no memory, and no more time than the product of both lengths.
 */
#ifndef MONKEY_PATTERN_H
#define MONKEY_PATTERN_H

#include "buf.h"
#include "str.h"

enum { MK_PATTERN_GLOB_MAX = 255 };

enum mk_pattern_kind { MK_PATTERN_EXACT, MK_PATTERN_PREFIX, MK_PATTERN_GLOB, MK_PATTERN_NAME };

/* Points into the text that it was made from. */
struct mk_pattern {
    uint8_t kind; /* enum mk_pattern_kind */
    struct mk_str text;
};

/* 0, or -EINVAL with a phrase in `error`. `text` must stay. */
MK_API int mk_pattern_parse(struct mk_pattern *pattern, struct mk_str text, struct mk_buf *error);

MK_API bool mk_pattern_match(const struct mk_pattern *pattern, struct mk_str path);

/* What of `path` lies behind a prefix, without a leading slash; empty for the other kinds. */
MK_API struct mk_str mk_pattern_rest(const struct mk_pattern *pattern, struct mk_str path);

#endif

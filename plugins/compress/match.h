// SPDX-License-Identifier: Apache-2.0
/*
 * What is compressed, as far as strings tell: types, lists in fields. Pure.
 */
#ifndef COMPRESS_MATCH_H
#define COMPRESS_MATCH_H

#include <monkey/str.h>

/* A type as a rule may name it: `text/html`, `text/` with a star, or a star with `+json`. */
bool match_is_type_pattern(struct mk_str s);

/*
 * Does the pattern mean this Content-Type, whatever its parameters? A star never means text/event-stream: each such
 * stream would hold a compressor for as long as it lasts.
 */
bool match_type(struct mk_str pattern, struct mk_str type);

/* Does a list of words, as in Vary or Cache-Control, name `word`? */
bool match_list_has(struct mk_str list, struct mk_str word);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Compares media types and lists in headers. Keeps no state.
 */
#ifndef COMPRESS_MATCH_H
#define COMPRESS_MATCH_H

#include <monkey/str.h>

/* Returns true for a type as a rule may have it: `text/html`, `text/` with a star, or a star with `+json`. */
bool match_is_type_pattern(struct mk_str s);

/*
 * Returns true if the pattern matches this Content-Type, without its parameters. A star never matches
 * text/event-stream: each such stream would hold an encoder as long as it lasts.
 */
bool match_type(struct mk_str pattern, struct mk_str type);

#endif

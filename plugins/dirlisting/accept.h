// SPDX-License-Identifier: Apache-2.0
/*
 * The format that a client prefers, by its header Accept (RFC 9110 section 12.5.1).
 */
#ifndef DIRLISTING_ACCEPT_H
#define DIRLISTING_ACCEPT_H

#include <monkey/str.h>

/*
 * Returns true if `value` (`.p` NULL: no such header) gives application/json a higher weight than text/html. Of the
 * ranges that fit a type, the most specific counts. A malformed weight counts as 0.
 */
bool accept_prefers_json(struct mk_str value);

#endif

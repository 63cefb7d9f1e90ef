// SPDX-License-Identifier: Apache-2.0
/*
 * The conditions of a request for a listing or an archive (RFC 9110 section 13.1).
 */
#ifndef DIRLISTING_CONDITIONS_H
#define DIRLISTING_CONDITIONS_H

#include <monkey/plugin.h>

/*
 * Returns true if If-Match is not met: it compares strongly, and listings have weak entity tags, or none. So only `*`
 * matches.
 */
bool conditions_fail(struct mk_request *req);

/* Returns true if If-None-Match has the tag, which is compared weakly and is given without its `W/`. */
bool conditions_have_tag(struct mk_request *req, struct mk_str tag);

#endif

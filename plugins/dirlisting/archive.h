// SPDX-License-Identifier: Apache-2.0
/*
 * Responds with a folder as an archive. Memory is bounded: two buffers, one of which a disk thread fills while the
 * client takes the other.
 */
#ifndef DIRLISTING_ARCHIVE_H
#define DIRLISTING_ARCHIVE_H

#include "rules.h"

/*
 * Responds, at once or later, to GET or HEAD of a path that ends with a slash: with an archive of that kind ("tar.gz"),
 * 404 if Archives does not name it, or 503 if there are too many at once. Declines if there is no such folder.
 * Returns 0 or -errno (nothing was begun).
 */
int archive_send(struct mk_request *req, const struct listing_host *host, const struct listing_rule *rule,
                 struct mk_str kind);

#endif

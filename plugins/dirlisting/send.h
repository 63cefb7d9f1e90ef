// SPDX-License-Identifier: Apache-2.0
/*
 * Responds with the listing of a folder: a disk thread reads it, the worker leaves out what the client may not have,
 * and sends the rest as the client takes it.
 */
#ifndef DIRLISTING_SEND_H
#define DIRLISTING_SEND_H

#include "folder.h"
#include "query.h"

/*
 * Responds later to GET or HEAD of a path that ends with a slash; declines the request if there is no such folder.
 * Returns 0 or -errno (nothing was begun).
 */
int send_listing(struct mk_request *req, const struct listing_host *host, const struct listing_rule *rule,
                 const struct query *query);

#endif

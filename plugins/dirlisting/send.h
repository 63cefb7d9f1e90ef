// SPDX-License-Identifier: Apache-2.0
#ifndef DIRLISTING_SEND_H
#define DIRLISTING_SEND_H

#include "listing.h"

#include <monkey/plugin.h>

/*
 * The conditions of a request for a listing or an archive (RFC 9110 section 13.1).
 */
/*
 * Returns true if If-Match is not met: it compares strongly, and listings have weak entity tags, or none. So only `*`
 * matches.
 */
bool conditions_fail(struct mk_request *req);

/*
 * The listing as an HTML page.
 */
extern const struct listing_format page_format;

/*
 * Prepares the pages of a host: the themes that its sections name. Reports errors with mk_host_error(). Sets
 * `host->pages`, which belongs to the generation.
 * Returns 0, -EINVAL (reported) or -ENOMEM.
 */
int page_start_host(struct mk_host *host, struct listing_host *listing_host);

/* Hooks of the plugin, whose state for a generation holds the themes. Return as generation_start: 0 or -ENOMEM. */
int page_start_generation(struct mk_generation *g, void **ret_state);
void page_stop_generation(struct mk_generation *g, void *state);

/*
 * Responds with the listing of a folder: a disk thread reads it, the worker leaves out what the client may not have,
 * and sends the rest as the client takes it.
 */
/*
 * Responds later to GET or HEAD of a path that ends with a slash; declines the request if there is no such folder.
 * Returns 0 or -errno (nothing was begun).
 */
int send_listing(struct mk_request *req, const struct listing_host *host, const struct listing_rule *rule,
                 const struct query *query);

#endif

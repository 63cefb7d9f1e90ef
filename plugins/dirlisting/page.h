// SPDX-License-Identifier: Apache-2.0
/*
 * The listing as an HTML page.
 */
#ifndef DIRLISTING_PAGE_H
#define DIRLISTING_PAGE_H

#include "folder.h"

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

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The listing as an HTML page.
 */
#ifndef DIRLISTING_PAGE_H
#define DIRLISTING_PAGE_H

#include "folder.h"

extern const struct listing_format page_format;

/*
 * Prepares the pages of a host, such as the themes that its sections name; reports errors with mk_host_error(). May set
 * `host->pages`, which page_stop_host() frees; that is called in any case.
 * Returns 0, -EINVAL (reported) or -ENOMEM.
 */
int page_start_host(struct mk_host *host, struct listing_host *listing_host);
void page_stop_host(struct listing_host *listing_host);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * A host's own error pages. They are read when the host starts, so that an error never waits for a disk. Small builds
 * have none.
 */
#ifndef STATIC_ERRORS_H
#define STATIC_ERRORS_H

#include <monkey/plugin.h>

#include "site.h"

enum { ERROR_PAGE_BYTES_MAX = 64 * 1024 };

struct error_page {
    struct error_page *next;
    int status;
    struct mk_str name; /* of the file, for its media type; `.p` NULL: a text of the configuration */
    struct mk_str body;
    size_t bytes; /* of this struct and `file` */
    char file[];
};

/*
 * Reads the pages of `pairs` (status and page; NULL: none), files below the site's root.
 * Returns 0, -EINVAL (errors were reported) or -ENOMEM.
 */
int errors_load(struct mk_host *host, struct static_site *site, const struct mk_conf_pairs *pairs);
void errors_free(struct static_site *site);

/* Replaces the server's error page by the host's, if there is one for the status. */
void errors_apply(struct mk_request *req, const struct static_site *site);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * A host's own pages for errors: read when the host starts, so that an error never waits for a disk. Lean builds
 * have none.
 */
#ifndef STATIC_ERRORS_H
#define STATIC_ERRORS_H

#include <monkey/plugin.h>

#include "static.h"

enum { ERROR_PAGE_BYTES_MAX = 64 * 1024 };

struct error_page {
    struct error_page *next;
    int status;
    struct mk_str name; /* of the file, by which its type is told; `.p` NULL: a text of the configuration */
    struct mk_str body;
    size_t bytes; /* of this struct with its file */
    char file[];
};

/* Reads what `pairs` (status and page, NULL = none) name below the site's root. 0 or -errno, the operator told. */
int errors_load(struct mk_host *host, struct static_site *site, const struct mk_conf_pairs *pairs);
void errors_free(struct static_site *site);

/* Puts the host's page in the place of the server's own. */
void errors_apply(struct mk_request *req, const struct static_site *site);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * A host's own error pages. They are read when the host starts, so that an error never waits for a disk.
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

/* A section [ERROR_PAGES]. */
struct error_pages_conf {
    struct mk_conf_pairs pairs; /* status and page */
    struct mk_pattern match;
};

extern const struct mk_conf_key mk__static_error_pages_keys[]; /* of struct error_pages_conf */

/* The pages of a section. */
struct error_pages {
    struct error_pages *next;
    const struct error_pages_conf *conf;
    struct error_page *pages;
};

/*
 * Reads the pages of the host's sections; files are below the site's root. Call mk__static_errors_free() in any case.
 * Returns 0, -EINVAL (errors were reported) or -ENOMEM.
 */
int mk__static_errors_load(struct mk_host *host, struct static_site *site, const struct mk_conf_section *section);
void mk__static_errors_free(struct static_site *site);
/* Reports pages that are programs of another plugin, in generation_check. Returns 0 or -EINVAL. */
int mk__static_errors_check(struct mk_host *host, struct static_site *site);

/* Replaces the server's error page by that of the first section that matches the path, if it has one for the status. */
void mk__static_errors_apply(struct mk_request *req, const struct static_site *site,
                             const struct mk_conf_section *section);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Counts listings and archives. The counters are those of the process.
 */
#ifndef DIRLISTING_LISTING_COUNTERS_H
#define DIRLISTING_LISTING_COUNTERS_H

#include <monkey/counters.h>
#include <monkey/plugin.h>

enum listing_count {
    LISTING_COUNT_PAGES,              /* listings, in all formats */
    LISTING_COUNT_ARCHIVES,           /* archives that were begun */
    LISTING_COUNT_ARCHIVES_BUSY,      /* 503, because all archives are in use */
    LISTING_COUNT_ARCHIVES_OWN,       /* 429, because the client has as many as it may */
    LISTING_COUNT_ARCHIVES_TRUNCATED, /* that ended before their end */
    LISTING_COUNT_ARCHIVE_BYTES,
    LISTING_COUNTS,
};

/* Opens the counters. In the start of the plugin; opening them again changes nothing. */
void listing_counters_open(void);
/* Adds to a counter. In the thread of the request's worker. */
void listing_counters_add(enum listing_count count, const struct mk_request *req, size_t n);

#endif

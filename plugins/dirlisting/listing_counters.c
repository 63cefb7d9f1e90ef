// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of listing_counters.h.
 */
#include "listing_counters.h"

#include <assert.h>

static const struct mk_counter_info listings = {"dirlisting", "listings", "listings of folders", MK_COUNTER_SUM};
static const struct mk_counter_info archives = {"dirlisting", "archives", "archives of folders, by result",
                                                MK_COUNTER_SUM};
static const struct mk_counter_info bytes = {"dirlisting", "archive_bytes", "bytes of archives", MK_COUNTER_SUM};

static const struct mk_counter_row rows[LISTING_COUNTS] = {
    [LISTING_COUNT_PAGES] = {&listings, {0}},
    [LISTING_COUNT_ARCHIVES] = {&archives, {"result", "begun"}},
    [LISTING_COUNT_ARCHIVES_BUSY] = {&archives, {"result", "too_many"}},
    [LISTING_COUNT_ARCHIVES_OWN] = {&archives, {"result", "too_many_of_client"}},
    [LISTING_COUNT_ARCHIVES_TRUNCATED] = {&archives, {"result", "truncated"}},
    [LISTING_COUNT_ARCHIVE_BYTES] = {&bytes, {0}},
};

static const struct mk_counter *counters[LISTING_COUNTS];

void listing_counters_open(void)
{
    mk_counters_open(rows, LISTING_COUNTS, counters);
}

void listing_counters_add(enum listing_count count, const struct mk_request *req, size_t n)
{
    assert(count < LISTING_COUNTS && counters[count]);
    mk_counter_add(counters[count], mk_request_worker(req), (int64_t)n);
}

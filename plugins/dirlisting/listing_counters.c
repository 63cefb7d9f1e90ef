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

static const struct {
    const struct mk_counter_info *info;
    const char *result; /* NULL: no label */
} rows[LISTING_COUNTS] = {
    [LISTING_COUNT_PAGES] = {&listings, NULL},
    [LISTING_COUNT_ARCHIVES] = {&archives, "begun"},
    [LISTING_COUNT_ARCHIVES_BUSY] = {&archives, "too_many"},
    [LISTING_COUNT_ARCHIVES_OWN] = {&archives, "too_many_of_client"},
    [LISTING_COUNT_ARCHIVES_CUT] = {&archives, "cut"},
    [LISTING_COUNT_ARCHIVE_BYTES] = {&bytes, NULL},
};

static const struct mk_counter *counters[LISTING_COUNTS];

void listing_counters_open(void)
{
    for (unsigned i = 0; i < LISTING_COUNTS; i++) {
        struct mk_counter_label label = {"result", rows[i].result ? mk_str_c(rows[i].result) : MK_STR("")};
        const struct mk_counter *counter = mk_counter_open(rows[i].info, &label, rows[i].result != NULL);
        if (counters[i] != counter) /* requests that have outlived a stop of the plugin may be reading */
            counters[i] = counter;
    }
}

void listing_counters_add(enum listing_count count, const struct mk_request *req, size_t n)
{
    assert(count < LISTING_COUNTS && counters[count]);
    mk_counter_add(counters[count], mk_request_worker(req), (int64_t)n);
}

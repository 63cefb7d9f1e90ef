// SPDX-License-Identifier: Apache-2.0
/*
 * Counts the files that were sent, by how.
 */
#include "static.h"

#include <assert.h>

enum file_count {
    FILE_COUNT_WHOLE,
    FILE_COUNT_PRECOMPRESSED,
    FILE_COUNT_PART,
    FILE_COUNT_NOT_MODIFIED,
    FILE_COUNT_DISK_LOOKUPS,
    FILE_COUNT_OLD_VARIANTS,
    FILE_COUNTS
};

static const struct mk_counter_info files = {"static", "files", "files that were sent, or not modified, by kind",
                                             MK_COUNTER_SUM};
static const struct mk_counter_info lookups = {"static", "disk_lookups",
                                               "requests that waited until a file was found on a disk", MK_COUNTER_SUM};
static const struct mk_counter_info old_variants = {
    "static", "old_variants", "precompressed variants that were older than their file, and not used", MK_COUNTER_SUM};

static const struct mk_counter_row rows[FILE_COUNTS] = {
    [FILE_COUNT_WHOLE] = {&files, {"kind", "whole"}}, [FILE_COUNT_PRECOMPRESSED] = {&files, {"kind", "precompressed"}},
    [FILE_COUNT_PART] = {&files, {"kind", "part"}},   [FILE_COUNT_NOT_MODIFIED] = {&files, {"kind", "not_modified"}},
    [FILE_COUNT_DISK_LOOKUPS] = {&lookups, {0}},      [FILE_COUNT_OLD_VARIANTS] = {&old_variants, {0}},
};

static const struct mk_counter *counters[FILE_COUNTS];

void mk__static_file_counters_open(void)
{
    mk_counters_open(rows, FILE_COUNTS, counters);
}

static void add_count(const struct mk_request *req, enum file_count count)
{
    assert(counters[count]);
    mk_counter_add(counters[count], mk_request_worker(req), 1);
}

void mk__static_file_counters_add(const struct mk_request *req, bool precompressed)
{
    int status = mk_response_get_status(req);
    if (status == 200)
        add_count(req, precompressed ? FILE_COUNT_PRECOMPRESSED : FILE_COUNT_WHOLE);
    else if (status == 206 || status == 304)
        add_count(req, status == 206 ? FILE_COUNT_PART : FILE_COUNT_NOT_MODIFIED);
}

void mk__static_file_counters_add_disk_lookup(const struct mk_request *req)
{
    add_count(req, FILE_COUNT_DISK_LOOKUPS);
}

void mk__static_file_counters_add_old_variant(void)
{
    if (counters[FILE_COUNT_OLD_VARIANTS])
        mk_counter_add(counters[FILE_COUNT_OLD_VARIANTS], NULL, 1);
}

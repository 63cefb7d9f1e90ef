// SPDX-License-Identifier: Apache-2.0
/*
 * Counts files by how they were sent, and lookups that had to wait for a disk. The counters are those of the process.
 */
#ifndef STATIC_FILE_COUNTERS_H
#define STATIC_FILE_COUNTERS_H

#include <monkey/counters.h>
#include <monkey/plugin.h>

/* Opens the counters. In the start of the plugin; opening them again changes nothing. */
void mk__static_file_counters_open(void);
/*
 * Counts a file whose response was begun, by its status; others than 200, 206 and 304 are not counted. `precompressed`:
 * it is a variant of the file that was asked for. In the thread of the request's worker.
 */
void mk__static_file_counters_add(const struct mk_request *req, bool precompressed);
/* Counts a lookup on a disk thread. In the thread of the request's worker. */
void mk__static_file_counters_add_disk_lookup(const struct mk_request *req);
/* Counts a variant that is older than its file. Any thread. */
void mk__static_file_counters_add_old_variant(void);

#endif

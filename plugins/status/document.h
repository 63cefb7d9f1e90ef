// SPDX-License-Identifier: Apache-2.0
/*
 * The status of the server as JSON. Its fields are described in docs/guide/status.md.
 */
#ifndef STATUS_DOCUMENT_H
#define STATUS_DOCUMENT_H

#include "collect.h"
#include "history.h"
#include "snapshot.h"
#include "process.h"

/* What the document is made of, except counters. */
struct document {
    const struct snapshot_worker *workers;
    unsigned n_workers;
    struct process process;
    uint64_t generation;
    double now; /* since 1970, in seconds */
    struct history_sample sample;
    const struct history *history;
    const struct sketch_lists *paths; /* NULL: paths are not counted */
    unsigned hosts_max;               /* 0: all */
};

/* Writes the document with its counters. */
void document_write(const struct document *d, const struct collected *c, struct mk_buf *out);

#endif

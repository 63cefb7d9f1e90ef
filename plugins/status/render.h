// SPDX-License-Identifier: Apache-2.0
/*
 * Renders what a snapshot has found: as metrics, or as a document. In a disk thread.
 */
#ifndef STATUS_RENDER_H
#define STATUS_RENDER_H

#include "metrics.h"
#include "state.h"

enum { RENDER_EVENT_HOSTS_MAX = 32 };

void render_metrics(const struct state_worker *w, enum metrics_format format, const struct snapshot_worker *workers,
                    unsigned n, struct mk_buf *out);
/* `brief`: for the live page. */
void render_document(const struct state_worker *w, bool brief, const struct snapshot_worker *workers, unsigned n,
                     struct mk_buf *out);

#endif

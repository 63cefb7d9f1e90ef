// SPDX-License-Identifier: Apache-2.0
/*
 * Responses that a snapshot makes: metrics and the document.
 */
#ifndef STATUS_RESPOND_H
#define STATUS_RESPOND_H

#include "metrics.h"
#include "state.h"

enum respond_kind { RESPOND_TEXT, RESPOND_OPENMETRICS, RESPOND_JSON };

/* Adds the headers that all responses of the plugin have; both values are literals. Returns 0 or -errno. */
int respond_headers(struct mk_request *req, struct mk_str type, struct mk_str cache_control);

/* Begins the snapshot, and responds when it is over. Sends 503 if too many are under way. */
void respond_start(struct mk_request *req, struct state_worker *w, enum respond_kind kind);

#endif

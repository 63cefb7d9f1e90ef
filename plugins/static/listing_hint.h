// SPDX-License-Identifier: Apache-2.0
/*
 * In one-shot mode: a log line, once, that says how folders without an index are listed. The client gets the 404 alone.
 */
#ifndef STATIC_LISTING_HINT_H
#define STATIC_LISTING_HINT_H

#include "site.h"

/* Logs the line if the request was answered with 404 for a folder. Does not wait for a disk. */
void mk__static_listing_hint_give(struct mk_request *req, struct static_site *site);

#endif

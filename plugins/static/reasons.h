// SPDX-License-Identifier: Apache-2.0
/*
 * Why no file is sent: for the log, which says what to write, and for `$reason`.
 */
#ifndef STATIC_REASONS_H
#define STATIC_REASONS_H

#include "site.h"

/* Notes why a lookup has found nothing; another plugin may respond yet. */
void mk__static_reasons_note(struct mk_request *req, const struct static_site *site, int err);
/*
 * Writes a line to the error log about a refused request, of each reason one in ten seconds, in on_response. `site` is
 * that of the host, or NULL.
 */
void mk__static_reasons_log(struct mk_request *req, struct static_site *site);

#endif

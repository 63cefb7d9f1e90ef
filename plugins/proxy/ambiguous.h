// SPDX-License-Identifier: Apache-2.0
/*
 * Headers of clients that are not passed on, since many backends would take them for one of the proxy's: they read `_`
 * as `-`. They are counted, and written to the log once in ten seconds and worker.
 */
#ifndef PROXY_AMBIGUOUS_H
#define PROXY_AMBIGUOUS_H

#include <monkey/request.h>

/* Opens the counter; for the start of the process. */
void ambiguous_open(void);
/* Reports one header. A request that is sent again reports its headers again. */
void ambiguous_report(struct mk_request *req, struct mk_str name);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Tells an operator which service and route a request meets.
 */
#ifndef DUDA_CORE_ROUTE_EXPLAIN_H
#define DUDA_CORE_ROUTE_EXPLAIN_H

#include "service/host.h"

#include <monkey/inspect.h>

/* For the hook of struct mk_plugin; `h` may be NULL. */
void explain_service(const struct duda_host *h, const struct mk_host *host, struct mk_explain *e);

#endif

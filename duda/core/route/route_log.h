// SPDX-License-Identifier: Apache-2.0
/*
 * The routes of a service in the log, at the level debug; `dudac routes` reads them:
 *
 *     service hello: route GET, POST /users/:id at 0x1149
 *     service hello: 1 routes
 *
 * The number is the address of the handler in the shared object, as addr2line(1) wants it.
 */
#ifndef DUDA_CORE_ROUTE_ROUTE_LOG_H
#define DUDA_CORE_ROUTE_ROUTE_LOG_H

#include "service/service.h"

void route_log_write(const struct service *s);

#endif

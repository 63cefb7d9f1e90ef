// SPDX-License-Identifier: Apache-2.0
/*
 * Serves the console of a service: a page about it, which the operator enables by the key Console of [WEB_SERVICE], or
 * the service itself by console->dashboard().
 */
#ifndef DUDA_CORE_CONSOLE_CONSOLE_SERVE_H
#define DUDA_CORE_CONSOLE_CONSOLE_SERVE_H

#include "console/console_path.h"
#include "service/host.h"

/* Returns what a path below the service's URL is of its console. */
enum console_view console_serve_find(const struct host_service *e, struct mk_str rest);
/* Responds to a request for it. Returns as a plugin's on_content: 0. */
int console_serve_view(struct mk_request *req, const struct host_service *e, enum console_view view);

#endif

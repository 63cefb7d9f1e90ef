// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: what its objects need of the framework. A service of it has a level below 3 in its
 * duda_service_info; for all others none of this runs.
 *
 *     old_objects.c    finds the tables that only "webservice.h" has; `console`, `debug` and `event`
 *     old_service.c    `self`, and the fields of duda_request_t
 *     old_request.c, old_response.c, old_monkey.c, old_dthread.c, old_session.c
 *                      one object or two each
 */
#ifndef DUDA_CORE_COMPAT_OLD_H
#define DUDA_CORE_COMPAT_OLD_H

#include "service/service.h"

#include <duda/compat/console.h>
#include <duda/compat/dthread.h>
#include <duda/compat/event.h>
#include <duda/compat/monkey.h>
#include <duda/compat/request.h>
#include <duda/compat/response.h>
#include <duda/compat/routes.h>
#include <duda/compat/service.h>
#include <duda/compat/session.h>
#include <duda/event.h>
#include <duda/map.h>
#include <monkey/request.h>
#include <stdarg.h>

struct service;
struct object;

/* What a service of the original API has in addition to the rest; in struct service. */
struct old_service {
    struct web_service self;
};

FEATURE_SLOT(old_of, struct old_service, service, FEATURE_COMPAT)

extern const struct duda_old_request_calls old_request;
extern const struct duda_old_response old_response;
extern const struct duda_old_event_0 old_event_0;
extern const struct duda_old_monkey old_monkey;
extern const struct duda_old_console old_console;
extern const struct duda_old_debug old_debug;
extern const struct duda_old_param old_param;
extern const struct duda_old_session old_session;
extern const struct duda_old_dthread old_dthread;

/* Returns whether the service was written for the original API. */
bool old_is(const struct service *s);

/* Finds an object that only the original API has; `s` is NULL for a package. Returns 0 or -ENOENT. */
int old_find_object(const struct service *s, const char *name, struct object *ret);

/* Returns the table of a package that is an object now, or NULL: it is none, or a new service. */
const void *old_find_package(const struct service *s, const char *name);

/* Hooks of features.c: fill what the service sees as `self`, and find its function main if it has another name. */
void old_service_bind(struct service *s);
int old_service_complete(struct service *s, struct mk_buf *error);

/* Responds to a request that the original did not take: GET with a body. Returns whether it did. */
bool old_refuse(struct mk_request *req);

/* Fills the fields of a request whose route is known. `path` is below the service's URL. Returns 0 or -ENOMEM. */
int old_request_fill(duda_request_t *dr, struct mk_str path);

/* Returns formatted text for free(), or NULL; *ret_len is its length. */
char *old_format(const char *format, va_list args, size_t *ret_len);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Finds what a path means on a disk thread (resolve.h).
 */
#ifndef FASTCGI_LOOKUP_H
#define FASTCGI_LOOKUP_H

#include "resolve.h"

/* Gets the result, valid during the call. Is not called if the request has ended. */
typedef void (*lookup_fn)(struct mk_request *req, const struct fastcgi_conf *conf, const struct resolution *found);

/* Runs resolve_path() for the path of a request, then `fn` in the worker. Returns 0, -ENOMEM or -EAGAIN. */
int lookup_start(struct mk_request *req, const struct fastcgi_conf *conf, lookup_fn fn);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Types that several objects share.
 */
#ifndef DUDA_TYPES_H
#define DUDA_TYPES_H

#include "object.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A request and its response, from the call of a handler until the response was sent or the client has left. After that
 * a `dr` must not be used: see request->on_leave(), request->validate_request() and response->ticket(). Functions that
 * find a `dr` which is NULL, has ended, or is used outside of its worker's callbacks log that, and return an error:
 * NULL, false, or a number as their header says. The memory of a `dr` is used again, so that this is no way to find
 * out.
 */
typedef struct duda_request duda_request_t;

/* Handles a request, or an event of one. Runs in the request's worker and must not block. */
typedef void (*duda_request_fn)(duda_request_t *dr);
/* Handles an event of a request; `data` is what the service has passed with the function. */
typedef void (*duda_event_fn)(duda_request_t *dr, void *data);

/* A result of functions that add to a response: done, and more than 64 KB wait to be sent. */
enum { DUDA_AGAIN = 1 };

#define DUDA_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))

#endif

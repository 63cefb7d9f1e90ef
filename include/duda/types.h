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

/* A request and its response, from the call of a handler until the response was sent or the client has left. */
typedef struct duda_request duda_request_t;

/* Handles a request, or an event of one. Runs in the request's worker and must not block. */
typedef void (*duda_request_fn)(duda_request_t *dr);

#define DUDA_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))

#endif

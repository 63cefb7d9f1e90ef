// SPDX-License-Identifier: Apache-2.0
/*
 * Tickets: requests that other threads answer.
 *
 *     gate: one for each service, lives as long as the service or a call under way refers to it
 *     call: posted to the worker of a request ─► gate open? ─► the service's function
 */
#ifndef DUDA_CORE_REQUEST_TICKET_H
#define DUDA_CORE_REQUEST_TICKET_H

#include "service/service.h"

#include <duda/response.h>

struct ticket_gate;

/* Of a service. */
struct tickets {
    struct ticket_gate *gate;
};

FEATURE_SLOT(tickets_of, struct tickets, service, FEATURE_TICKETS)

/* Hooks of features.c. Makes the gate of a service. Returns 0 or -ENOMEM. */
int ticket_gate_open(struct service *s);
/* No function of the service is called any more when this returns. After duda_exit(), before its object is closed. */
void ticket_gate_close(struct service *s);

int ticket_make(duda_request_t *dr, struct duda_ticket *ret);
int ticket_deliver(const struct duda_ticket *ticket, duda_event_fn fn, void *data);

#endif

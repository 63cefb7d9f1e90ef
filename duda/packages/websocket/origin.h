// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the service of a thread that the framework does not know, because the service has made it by pthread_create():
 * by the shared object that the call has come from.
 */
#ifndef DUDA_PACKAGES_WEBSOCKET_ORIGIN_H
#define DUDA_PACKAGES_WEBSOCKET_ORIGIN_H

struct ws_service;

/* In a service. */
struct ws_origin {
    struct ws_origin *next;
    const void *object; /* where the shared object of the service begins; NULL: unknown yet */
    struct ws_service *service;
};

/* Add and remove a service. For duda_main() and the end of a service. */
void ws_origin_add(struct ws_origin *origin, struct ws_service *service);
void ws_origin_remove(struct ws_origin *origin);
/* Remembers the shared object from which duda_main() has called: `address` is in it. */
void ws_origin_set(struct ws_origin *origin, const void *address);
/* Returns the service whose shared object has `address`, which does not end until ws_origin_put(); or NULL. */
struct ws_service *ws_origin_get(const void *address);
void ws_origin_put(void);

#endif

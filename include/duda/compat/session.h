// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: the object `session`. Sessions are in memory, one store for each service, and have a cookie
 * DUDA_SESSION. A session ends a day after its last use, and with the server.
 */
#ifndef DUDA_COMPAT_SESSION_H
#define DUDA_COMPAT_SESSION_H

#include "types.h"

/* A function of the original that was called with and without an argument, which does not matter. */
#ifdef DUDA_FRAMEWORK
#define DUDA_OLD_OPTIONAL void
#else
#define DUDA_OLD_OPTIONAL
#endif

struct duda_old_session {
    /* Once, in duda_main(). The name of the store does not matter. Returns 0 or -1. */
    int (*init)(DUDA_OLD_OPTIONAL);
    /*
     * Stores a value by a name, and gives the session a new id, once in a request: values that it has stay. Browser and
     * server end the session at `expires`, seconds since 1970; 0: when the browser ends. Before the head is sent.
     * Returns 0 or -1.
     */
    int (*create)(duda_request_t *dr, const char *name, const char *value, int expires);
    /* Ends the session, whatever the name is. Returns 0, or -1: there is none. */
    int (*destroy)(duda_request_t *dr, const char *name);
    /* Returns a copy of a value, for free(), or NULL. */
    void *(*get)(duda_request_t *dr, const char *name);
    /* Returns 0 if the session has a value of this name, else -1. */
    int (*isset)(duda_request_t *dr, const char *name);
};

DUDA_OBJECT_AS(struct duda_old_session, session, "session.1")

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: objects that this version declares, so that services compile, but does not offer yet. Their
 * functions return an error, and the first call of each object by a service is logged.
 */
#ifndef DUDA_OLD_LATER_H
#define DUDA_OLD_LATER_H

#include "old_types.h"

/* A function of the original that was called with and without an argument, which does not matter. */
#ifdef DUDA_FRAMEWORK
#define DUDA_OLD_OPTIONAL void
#else
#define DUDA_OLD_OPTIONAL
#endif

struct duda_old_session {
    int (*init)(DUDA_OLD_OPTIONAL);
    int (*create)(duda_request_t *dr, const char *name, const char *value, int expires);
    int (*destroy)(duda_request_t *dr, const char *name);
    void *(*get)(duda_request_t *dr, const char *name);
    int (*isset)(duda_request_t *dr, const char *name);
};

DUDA_OBJECT_AS(struct duda_old_session, session, "session.1")

#endif

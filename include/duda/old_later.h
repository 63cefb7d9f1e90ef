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

enum { DTHREAD_DEAD, DTHREAD_READY, DTHREAD_RUNNING, DTHREAD_SUSPEND };
enum { DTHREAD_CHANNEL_OK = 0, DTHREAD_CHANNEL_BROKEN = -32 /* -EPIPE */ };

typedef struct duda_dthread_channel duda_dthread_channel_t;

struct duda_old_dthread {
    int (*create)(void (*fn)(void *), void *data);
    int (*status)(int id);
    void (*yield)(void);
    void (*resume)(int id);
    int (*running)(void);
    duda_dthread_channel_t *(*chan_create)(int size);
    void (*chan_free)(duda_dthread_channel_t *channel);
    int (*chan_get_sender)(duda_dthread_channel_t *channel);
    void (*chan_set_sender)(duda_dthread_channel_t *channel, int id);
    int (*chan_get_receiver)(duda_dthread_channel_t *channel);
    void (*chan_set_receiver)(duda_dthread_channel_t *channel, int id);
    int (*chan_done)(duda_dthread_channel_t *channel);
    void (*chan_end)(duda_dthread_channel_t *channel);
    int (*chan_send)(duda_dthread_channel_t *channel, void *data);
    void *(*chan_recv)(duda_dthread_channel_t *channel);
};

DUDA_OBJECT_AS(struct duda_old_dthread, dthread, "dthread.1")

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Values that a service sends to all of its workers and to descriptors (event->signal()).
 */
#ifndef DUDA_CORE_EVENT_SIGNALS_H
#define DUDA_CORE_EVENT_SIGNALS_H

#include "service/service.h"

#include <duda/event.h>

#include <pthread.h>

struct service;

enum { SIGNAL_FDS_MAX = 256 };

struct signals {
    duda_signal_fn callback; /* set in duda_main() */
    pthread_mutex_t lock;    /* of what follows */
    int fds[SIGNAL_FDS_MAX]; /* the sending ends */
    unsigned n;
    bool ended;
    uint64_t lost;
};

FEATURE_SLOT(signals_of, struct signals, service, FEATURE_SIGNALS)

/* Hooks of features.c. */
int signals_init(struct service *s);
void signals_release(struct service *s);

/* Sends a value to the descriptors. Any thread. */
void signals_send(struct service *s, uint64_t value);
/* Returns a descriptor that receives the values, or -errno. Any thread. */
int signals_open_fd(struct service *s);
/* Closes the sending ends: readers see the end. */
void signals_end(struct signals *signals);

#endif

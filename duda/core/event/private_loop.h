// SPDX-License-Identifier: Apache-2.0
/*
 * Private loops, for threads of a service's own (event->loop_create() ...).
 */
#ifndef DUDA_CORE_EVENT_PRIVATE_LOOP_H
#define DUDA_CORE_EVENT_PRIVATE_LOOP_H

#include "service/service.h"

#include <duda/event.h>
#include <monkey/base/list.h>

#include <pthread.h>

struct service;

/* The loops of a service that were not freed. */
struct private_loops {
    pthread_mutex_t lock;
    struct mk_list all;
};

FEATURE_SLOT(private_loops_of, struct private_loops, service, FEATURE_PRIVATE_LOOPS)

/* Hooks of features.c. */
int private_loops_init(struct service *s);
/*
 * Frees the loops that are left, and closes their timers and channels that are still open. Nothing of the service runs
 * any more.
 */
void private_loops_release(struct service *s);

struct duda_event_loop *private_loop_new(int size);
void private_loop_free(struct duda_event_loop *loop);
/* As in <duda/event.h>. */
int private_loop_add(struct duda_event_loop *loop, int fd, int mask, void *data);
int private_loop_delete(struct duda_event_loop *loop, int fd);
int private_loop_add_timeout(struct duda_event_loop *loop, int seconds);
int private_loop_add_channel(struct duda_event_loop *loop, int *ret_read, int *ret_write);
int private_loop_wait(struct duda_event_loop *loop);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Private loops, for threads of a service's own (event->loop_create() ...).
 */
#ifndef DUDA_CORE_PRIVATE_LOOP_H
#define DUDA_CORE_PRIVATE_LOOP_H

#include <duda/event.h>

struct duda_event_loop *private_loop_new(int size);
void private_loop_free(struct duda_event_loop *loop);
/* As in <duda/event.h>. */
int private_loop_add(struct duda_event_loop *loop, int fd, int mask, void *data);
int private_loop_delete(struct duda_event_loop *loop, int fd);
int private_loop_add_timeout(struct duda_event_loop *loop, int seconds);
int private_loop_add_channel(struct duda_event_loop *loop, int *ret_read, int *ret_write);
int private_loop_wait(struct duda_event_loop *loop);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Descriptors of a service in the loop of a worker (event->add()). All functions: in the worker's thread.
 */
#ifndef DUDA_CORE_EVENT_DESCRIPTOR_H
#define DUDA_CORE_EVENT_DESCRIPTOR_H

#include "service/service.h"

#include <duda/event.h>
#include <monkey/loop.h>

#include <sys/types.h>

struct service_worker;

struct descriptor {
    struct duda_event_handler handler; /* what the service sees */
    struct service_worker *worker;
    struct mk_event event;
    struct mk_timer timer; /* of on_timeout */
    uint32_t timeout_ms;
    int awake_mode; /* before SLEEP */
    unsigned calls; /* callbacks of it on the stack */
    bool watched, removed;
    /* Identify what `fd` is: a service may close it without event->delete(), and the number be used again. */
    dev_t device;
    ino_t inode;
};

/* Of a worker, by their number. */
struct descriptors {
    struct descriptor **items;
    unsigned n;
};

FEATURE_SLOT(descriptors_of, struct descriptors, service_worker, FEATURE_DESCRIPTORS)

/* Watches `handler->fd`. Returns 0 or -errno: -EEXIST if it is watched. */
int descriptor_add(struct service_worker *w, const struct duda_event_handler *handler);
/* Returns the descriptor, or NULL. */
struct descriptor *descriptor_find(const struct service_worker *w, int fd);
/* Changes the mode (one of READ ... WAKEUP) and behavior. Returns 0 or -errno. */
int descriptor_change(struct descriptor *d, int mode, int behavior);
/* Sets the timeout; 0: none. */
void descriptor_set_timeout(struct descriptor *d, uint32_t ms);
/* Stops watching and frees it, after its callbacks that run. The number is not closed. */
void descriptor_remove(struct descriptor *d);
/* Removes all. */
void descriptor_remove_all(struct service_worker *w);

#endif

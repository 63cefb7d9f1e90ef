// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: events, global values, logs; names of its time for what <duda/event.h> and others offer.
 */
#ifndef DUDA_COMPAT_EVENT_H
#define DUDA_COMPAT_EVENT_H

#include "routes.h"

#if DUDA_API_LEVEL == 0 || defined(DUDA_FRAMEWORK)

typedef int (*duda_old_event_fn)(duda_request_t *dr);

/* Level 0: callbacks have a request, and nothing else. */
struct duda_old_event_0 {
    int (*add)(int fd, duda_request_t *dr, int mode, int behavior, duda_old_event_fn on_read,
               duda_old_event_fn on_write, duda_old_event_fn on_error, duda_old_event_fn on_close,
               duda_old_event_fn on_timeout);
    struct duda_event_handler *(*lookup)(int fd);
    int (*mode)(int fd, int mode, int behavior);
    int (*delete)(int fd);
    int (*signal)(uint64_t value);
    int (*create_signal_fd)(void);
    int (*set_signal_callback)(void (*fn)(int fd, uint64_t value));
};

#endif

#ifndef DUDA_FRAMEWORK

#if DUDA_API_LEVEL == 0
DUDA_OBJECT_AS(struct duda_old_event_0, event, "event.0")
#else
DUDA_OBJECT_AS(struct duda_api_event, event, "event")
#endif

typedef struct duda_event_loop mk_event_loop_t;
typedef struct duda_loop_event mk_event_t;

#define MK_EPOLL_READ DUDA_EVENT_READ
#define MK_EPOLL_WRITE DUDA_EVENT_WRITE
#define MK_EPOLL_RW DUDA_EVENT_RW
#define MK_EPOLL_SLEEP DUDA_EVENT_SLEEP
#define MK_EPOLL_WAKEUP DUDA_EVENT_WAKEUP
#define MK_EPOLL_LEVEL_TRIGGERED DUDA_EVENT_LEVEL_TRIGGERED
#define MK_EPOLL_EDGE_TRIGGERED DUDA_EVENT_EDGE_TRIGGERED
#define MK_EVENT_READ DUDA_EVENT_READ
#define MK_EVENT_WRITE DUDA_EVENT_WRITE

/* These are for duda_main(); they return 0 or -1. */
static inline __attribute__((unused)) int duda_global_init(duda_global_t *key, void *(*make)(void *data), void *data)
{
    return global->init(key, make, data);
}

/* Until the summer of 2012: duda_global_init(key, make), whose key is no pointer. */
#define duda_old_global_init_2(key, make) (duda_global_init)(&(key), make, NULL)
#define duda_old_global_init_3(key, make, data) (duda_global_init)(key, make, data)
#define duda_global_init(...) \
    DUDA_OLD_6TH(__VA_ARGS__, , , duda_old_global_init_3, duda_old_global_init_2, , )(__VA_ARGS__)

#if DUDA_API_LEVEL == 0
/* The same for global->init(key, make). Other numbers of arguments are left alone. */
#define duda_old_init_2(key, make) init(&(key), make, NULL)
#define init(...) DUDA_OLD_6TH(__VA_ARGS__, init, init, init, duda_old_init_2, init, )(__VA_ARGS__)
#endif

static inline __attribute__((unused)) int duda_logger_create(duda_logger_t *log, const char *file)
{
    return logger->create(log, file);
}

static inline __attribute__((unused)) int duda_event_set_signal_callback(void (*fn)(int fd, uint64_t value))
{
    return event->set_signal_callback(fn);
}

static inline __attribute__((unused)) void duda_service_add_interface(duda_interface_t *interface)
{
    map->add_interface(interface);
}

/* data->locate(file) uses the variable `dr` of the calling function. */
#define locate(file) locate(dr, file)

#endif

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: the object `event` of level 0. Its callbacks have a request, so that a descriptor is removed, and
 * not closed, when its request ends.
 */
#include "compat/old.h"

#include "event/event.h"
#include "objects.h"

struct old_watch {
    int fd;
    duda_request_t *dr;
    duda_old_event_fn on_read, on_write, on_error, on_close, on_timeout;
};

#define WATCH_CALL(name, member) \
    static int name(int fd, void *data) \
    { \
        const struct old_watch *w = data; \
        (void)fd; \
        return w->member(w->dr); \
    }

WATCH_CALL(call_read, on_read)
WATCH_CALL(call_write, on_write)
WATCH_CALL(call_error, on_error)
WATCH_CALL(call_close, on_close)
WATCH_CALL(call_timeout, on_timeout)

static void end_watch(void *ptr)
{
    struct old_watch *w = ptr;
    const struct duda_event_handler *h = object_event.lookup(w->fd);
    if (h && h->data == w)
        object_event.delete(w->fd);
    object_mem.free(w);
}

static int add_watch(int fd, duda_request_t *dr, int mode, int behavior, duda_old_event_fn on_read,
                     duda_old_event_fn on_write, duda_old_event_fn on_error, duda_old_event_fn on_close,
                     duda_old_event_fn on_timeout)
{
    struct old_watch *w = object_mem.alloc(sizeof(*w));
    if (!w)
        return -1;
    *w = (struct old_watch){fd, dr, on_read, on_write, on_error, on_close, on_timeout};
    if (object_gc.add_destroy(dr, w, end_watch) < 0) {
        object_mem.free(w);
        return -1;
    }
    return object_event.add(fd, mode, behavior, on_read ? call_read : NULL, on_write ? call_write : NULL,
                            on_error ? call_error : NULL, on_close ? call_close : NULL,
                            on_timeout ? call_timeout : NULL, w);
}

const struct duda_old_event_0 old_event_0 = {
    .add = add_watch,
    .lookup = event_lookup,
    .mode = event_set_mode,
    .delete = event_delete,
    .signal = event_signal,
    .create_signal_fd = event_create_signal_fd,
    .set_signal_callback = event_set_signal_callback,
};

// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: the object `event` of level 0. Its callbacks have a request, so that a descriptor is removed, and
 * not closed, when its request ends.
 */
#include "compat/old.h"

#include "objects.h"

struct old_watch {
    int fd;
    duda_request_t *dr;
    duda_old_event_fn on_read, on_write, on_error, on_close, on_timeout;
};

static int call_read(int fd, void *data)
{
    struct old_watch *w = data;
    (void)fd;
    return w->on_read(w->dr);
}

static int call_write(int fd, void *data)
{
    struct old_watch *w = data;
    (void)fd;
    return w->on_write(w->dr);
}

static int call_error(int fd, void *data)
{
    struct old_watch *w = data;
    (void)fd;
    return w->on_error(w->dr);
}

static int call_close(int fd, void *data)
{
    struct old_watch *w = data;
    (void)fd;
    return w->on_close(w->dr);
}

static int call_timeout(int fd, void *data)
{
    struct old_watch *w = data;
    (void)fd;
    return w->on_timeout(w->dr);
}

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

static struct duda_event_handler *find_handler(int fd)
{
    return object_event.lookup(fd);
}

static int set_mode(int fd, int mode, int behavior)
{
    return object_event.mode(fd, mode, behavior);
}

static int delete_event(int fd)
{
    return object_event.delete(fd);
}

static int send_signal(uint64_t value)
{
    return object_event.signal(value);
}

static int create_signal_fd(void)
{
    return object_event.create_signal_fd();
}

static int set_signal_callback(void (*fn)(int fd, uint64_t value))
{
    return object_event.set_signal_callback(fn);
}

const struct duda_old_event_0 old_event_0 = {
    .add = add_watch,
    .lookup = find_handler,
    .mode = set_mode,
    .delete = delete_event,
    .signal = send_signal,
    .create_signal_fd = create_signal_fd,
    .set_signal_callback = set_signal_callback,
};

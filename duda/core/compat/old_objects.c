// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: finds the tables that only "webservice.h" has; the objects `console`, `debug` and `event` (old.h).
 */
#include "common/api_error.h"
#include "common/current.h"
#include "compat/old.h"
#include "console/console_path.h"
#include "event/event.h"
#include "log/last_lines.h"
#include "log/message.h"
#include "objects.h"
#include "service/service.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <string.h>

/* ── the tables ── */

static const struct object objects[] = {
    {"request.1", sizeof(old_request), &old_request}, {"response.1", sizeof(old_response), &old_response},
    {"event.0", sizeof(old_event_0), &old_event_0},   {"monkey.1", sizeof(old_monkey), &old_monkey},
    {"console.1", sizeof(old_console), &old_console}, {"debug.1", sizeof(old_debug), &old_debug},
    {"param.any", sizeof(old_param), &old_param},     {"session.1", sizeof(old_session), &old_session},
    {"dthread.1", sizeof(old_dthread), &old_dthread},
};

int old_find_object(const struct service *s, const char *name, struct object *ret)
{
    *ret = (struct object){"self.1", sizeof(struct web_service), s ? &old_of(s)->self : NULL};
    if (strcmp(name, ret->name) == 0)
        return 0;
    for (size_t i = 0; i < MK_COUNT_OF(objects); i++) {
        *ret = objects[i];
        if (strcmp(name, ret->name) == 0)
            return 0;
    }
    return -ENOENT;
}

const void *old_find_package(const struct service *s, const char *name)
{
    return old_is(s) && strcmp(name, "coro") == 0 ? &old_dthread : NULL;
}

/* ── `console` and `debug` ── */

enum { STACK_FRAMES_MAX = 32 };

static void write_line(duda_request_t *dr, const char *file, int line, const char *format, ...)
{
    size_t len;
    va_list args;
    va_start(args, format);
    char *text = old_format(format, args, &len);
    va_end(args);
    object_console.debug(dr, file, line, "%s", text ? text : "");
    object_mem.free(text);
}

static int open_dashboard(const char *uri)
{
    static const char call[] = "console->dashboard()";
    if (!phase_check(PHASE_MAIN, call))
        return -1;
    struct service *s = current.service;
    struct mk_str path = uri ? mk_str_c(uri) : MK_STR("");
    const char *problem = console_path_check(path);
    if (problem) {
        message_log(MK_LOG_ERROR, "%s: \"%s\" cannot be the path of a console: %s", call, uri ? uri : "NULL", problem);
        return -1;
    }
    path = mk_arena_dup(&s->arena, console_path_trim(path));
    if (!path.p)
        return -1;
    console_of(s)->path = path;
    last_lines_keep(s);
    return 0;
}

const struct duda_old_console old_console = {
    .debug_at = write_line,
    .dashboard = open_dashboard,
};

static void write_stack(void)
{
    void *frames[STACK_FRAMES_MAX];
    int n = backtrace(frames, STACK_FRAMES_MAX);
    for (int i = 0; i < n; i++) {
        Dl_info info = {0};
        dladdr(frames[i], &info);
        message_log(MK_LOG_INFO, "stack: %p %s", frames[i], info.dli_sname ? info.dli_sname : "?");
    }
}

const struct duda_old_debug old_debug = {
    .stacktrace = write_stack,
};

/* ── `event` ── */

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

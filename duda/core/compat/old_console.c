// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: the objects `console` and `debug`.
 */
#include "compat/old.h"

#include "common/api_error.h"
#include "common/current.h"
#include "console/console_path.h"
#include "log/last_lines.h"
#include "log/message.h"
#include "objects.h"

#include <dlfcn.h>
#include <execinfo.h>

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

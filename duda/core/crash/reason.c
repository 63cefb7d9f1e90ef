// SPDX-License-Identifier: Apache-2.0
/*
 * Explains crashes of services (reason.h).
 */
#include "crash/reason.h"

#include "common/current.h"

#include <dlfcn.h>
#include <string.h>

enum { LINE_BYTES = 512, PATH_BYTES_MAX = 256, TABLE_BYTES_MAX = 4096 };

/* ── the C library ── */

/* The last words of assert(), free() and others: a variable of glibc for debuggers, which other libraries lack. */
struct abort_message {
    unsigned size;
    char text[];
};

static struct abort_message *const *abort_message;

void reason_start(void)
{
    abort_message = dlvsym(RTLD_DEFAULT, "__abort_msg", "GLIBC_PRIVATE");
}

void reason_add_abort(struct line *l)
{
    const struct abort_message *m = abort_message ? *abort_message : NULL;
    if (!m)
        return;
    line_add(l, ": ");
    line_add_bytes(l, m->text, strcspn(m->text, "\n"));
}

/* ── the request ── */

static void add_str(struct line *l, const char *before, struct mk_str s)
{
    line_add(l, before);
    line_add_bytes(l, s.p, s.len < PATH_BYTES_MAX ? s.len : PATH_BYTES_MAX);
}

/* Returns the request for which the service has run; or NULL. */
static struct mk_request *find_request(void)
{
    struct mk_request *req = NULL;
    const struct feature *rows = current.service->features;
    if (!rows)
        return NULL;
    FEATURES_EACH(rows, row)
        if (row->crash_request && (req = row->crash_request()))
            break;
    return req;
}

/* The identifier only if the client has sent one: another one would be in no other log. */
static void log_request(void (*log)(const char *text))
{
    char data[LINE_BYTES];
    struct line l = {data, 0, sizeof(data)};
    struct mk_request *req = find_request();
    if (!req)
        return;
    struct mk_str id = mk_request_header_by_name(req, MK_STR("X-Request-Id"));
    add_str(&l, "    request: ", mk_request_method_name(req));
    add_str(&l, " ", mk_request_path(req));
    if (id.p)
        add_str(&l, ", X-Request-Id ", id);
    log(data);
}

/* ── mistakes ── */

/* A function of a table was called whose pointer is NULL, by the service itself. */
static void log_packages(void (*log)(const char *text))
{
    const struct duda_service_info *info = current.service->info;
    for (const struct duda_object_row *row = info->begin; row < info->end; row++) {
        char data[LINE_BYTES];
        struct line l = {data, 0, sizeof(data)};
        if (row->size != 0 || *(void *const *)row->pointer)
            continue;
        line_add(&l, "    the package \"");
        line_add(&l, row->name);
        line_add(&l, "\" was not loaded: duda_main() must call duda_load_package() for it before it is used");
        log(data);
    }
}

static void log_explanation(void (*log)(const char *text))
{
    char data[LINE_BYTES];
    struct line l = {data, 0, sizeof(data)};
    line_add(&l, "    ");
    line_add(&l, current.explanation);
    log(data);
}

void reason_log(int number, const siginfo_t *info, void (*log)(const char *text))
{
    log_request(log);
    if (number == SIGSEGV && (uintptr_t)info->si_addr < TABLE_BYTES_MAX && current.service->info)
        log_packages(log);
    if (current.explanation)
        log_explanation(log);
}

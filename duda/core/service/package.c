// SPDX-License-Identifier: Apache-2.0
/*
 * Loads packages (package.h). A package that cannot be loaded ends duda_main() at the place of the call, by longjmp():
 * a service continues after it as if it had the table, and would use a null pointer.
 */
#include "service/package.h"

#include "common/current.h"
#include "common/heap.h"
#include "compat/old.h"
#include "crash/crash_object.h"
#include "dthread/dthread.h"
#include "log/message.h"
#include "service/service.h"

#include <monkey/base/library.h>

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

struct package {
    struct mk_list node; /* in service_set.packages */
    unsigned refs;
    void *handle;
    struct crash_object *object; /* for stack traces; or NULL */
    const struct duda_package *info;
    char path[];
};

/* A call of duda_main() that is under way. */
struct main_call {
    jmp_buf leave;
    struct mk_buf *error;
};

static _Thread_local struct main_call *main_call;

enum { ERROR_BYTES_MAX = PATH_MAX + 512 };

/* ── the shared object ── */

/* Remembers where the package is, by its name without ".dpkg". */
static void add_object(struct package *p, const char *name, const void *address)
{
    char text[NAME_MAX + 1];
    const char *dot = strrchr(name, '.');
    snprintf(text, sizeof(text), "%.*s", dot ? (int)(dot - name) : (int)strlen(name), name);
    p->object = crash_add_object(CRASH_PACKAGE, text, address);
}

static int check_package(struct package *p, objects_bind_fn *bind, struct mk_buf *error)
{
    struct duda_package *(*start)(void);
    const struct duda_service_info *info = dlsym(p->handle, "duda_service_info");
    if (info)
        add_object(p, strrchr(p->path, '/') + 1, info);
    *(void **)&start = dlsym(p->handle, "duda_package_main");
    if (!start || !info || info->abi != DUDA_ABI)
        mk_buf_addf(error, "it is no package of this version");
    else if (bind(NULL, info, error) < 0)
        return -ENOEXEC;
    else if (!(p->info = start()))
        mk_buf_addf(error, "duda_package_main() has returned NULL");
    else if (p->info->abi != DUDA_PACKAGE_ABI || !p->info->api)
        mk_buf_addf(error, "it was compiled for another version: compile it again");
    else
        return 0;
    return -ENOEXEC;
}

static void put_package(struct package *p)
{
    assert(p->refs > 0);
    if (--p->refs > 0)
        return;
    mk_list_del(&p->node);
    if (p->object)
        crash_remove_object(p->object);
    if (p->handle)
        mk_library_close(p->handle);
    heap_free(p, sizeof(*p) + strlen(p->path) + 1);
}

static struct package *load_package(struct service_set *set, const char *path, struct mk_buf *error)
{
    struct package *p = heap_zalloc(sizeof(*p) + strlen(path) + 1);
    if (!p) {
        mk_buf_addf(error, "%s", strerror(ENOMEM));
        return NULL;
    }
    memcpy(p->path, path, strlen(path) + 1);
    p->refs = 1;
    mk_list_add(&set->packages, &p->node);
    p->handle = mk_library_open(path, MK_LIBRARY_COPY, error);
    if (p->handle && check_package(p, set->bind, error) == 0)
        return p;
    put_package(p);
    return NULL;
}

static struct package *get_package(struct service_set *set, const char *path, struct mk_buf *error)
{
    MK_LIST_EACH_ITEM(&set->packages, struct package, node, p) {
        if (strcmp(p->path, path) == 0) {
            p->refs++;
            return p;
        }
    }
    return load_package(set, path, error);
}

/* ── its use by a service ── */

static struct package_use *find_use(const struct service *s, const char *name)
{
    struct package_use *use = packages_of(s)->first;
    while (use && strcmp(use->name, name) != 0)
        use = use->next;
    return use;
}

static bool is_name(const char *name)
{
    return *name && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == strlen(name);
}

/* Writes the path of a package. Returns 0 or -ENAMETOOLONG. */
static int make_path(char *to, size_t size, struct mk_str root, const char *name)
{
    int n = root.len ? snprintf(to, size, "%.*s/%s.dpkg", MK_STR_ARG(root), name)
                     : snprintf(to, size, "%s/packages/%s.dpkg", mk_plugin_dir(), name);
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static struct package *open_package(struct service *s, const char *name, struct mk_buf *error)
{
    char path[PATH_MAX];
    if (!is_name(name)) {
        mk_buf_addf(error, "this is no name of a package");
        return NULL;
    }
    int err = make_path(path, sizeof(path), s->conf.packages_root, name);
    if (err < 0) {
        mk_buf_addf(error, "%s", strerror(-err));
        return NULL;
    }
    mk_buf_addf(error, "%s: ", path);
    return get_package(s->set, path, error);
}

static const void *use_package(struct service *s, const char *name, struct mk_buf *error)
{
    struct package_use *use = find_use(s, name);
    if (use)
        return use->info->api;
    struct package *p = open_package(s, name, error);
    if (!p)
        return NULL;
    use = mk_arena_zalloc(&s->arena, sizeof(*use));
    const char *copy = mk_arena_dup(&s->arena, mk_str_c(name)).p;
    if (!use || !copy) {
        put_package(p);
        mk_buf_addf(error, "%s", strerror(ENOMEM));
        return NULL;
    }
    *use = (struct package_use){.next = packages_of(s)->first, .package = p, .info = p->info, .name = copy};
    packages_of(s)->first = use;
    return package_start_service(use, error) < 0 ? NULL : p->info->api;
}

void package_leave_all(struct service *s)
{
    packages_of(s)->first = NULL;
}

void package_close_all(struct service *s)
{
    for (struct package_use *use = packages_of(s)->first; use; use = use->next)
        put_package(use->package);
    package_leave_all(s);
}

static const void *load_by_name(const char *name)
{
    if (!main_call) {
        message_log(MK_LOG_ERROR, "the package \"%s\" can only be loaded in duda_main()", name ? name : "");
        return NULL;
    }
    MK_BUF_ON_STACK(error, ERROR_BYTES_MAX);
    name = name ? name : "";
    const void *api = old_find_package(current.service, name);
    if (!api)
        api = use_package(current.service, name, &error);
    if (api)
        return api;
    mk_buf_addf(main_call->error, "the package \"%s\" cannot be loaded: %s", name, mk_buf_cstr(&error));
    longjmp(main_call->leave, 1);
}

const struct duda_api_package object_package = {
    .load = load_by_name,
    .service_state = package_service_state,
    .worker = package_worker,
    .worker_of = package_worker_of,
    .call = package_call,
    .name_callback = package_name_callback,
    .begin_wait = dthread_begin_package_wait,
    .wait = dthread_wait_for_package,
    .wake = dthread_wake_by_package,
    .counter = package_open_counter,
    .count = package_count,
    .api_error = package_log_api_error,
    .describe_call = package_describe_call,
    .explain_crash = package_explain_crash,
};

int package_run_main(struct service *s, struct mk_buf *error)
{
    struct main_call call = {.error = error};
    volatile int result = -ENOENT;
    main_call = &call;
    if (setjmp(call.leave) == 0)
        result = s->main();
    main_call = NULL;
    return result;
}

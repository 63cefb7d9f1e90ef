// SPDX-License-Identifier: Apache-2.0
/*
 * What packages have for each service and each worker (<duda/package.h>).
 */
#include "common/current.h"
#include "common/heap.h"
#include "common/api_error.h"
#include "common/phase.h"
#include "crash/crash.h"
#include "crash/crash_object.h"
#include "log/message.h"
#include "request/request.h"
#include "service/package.h"

#include <errno.h>

/* ── services ── */

int package_start_service(struct package_use *use, struct mk_buf *error)
{
    if (use->info->service_start) {
        errno = 0;
        use->state = use->info->service_start();
        if (!use->state) {
            int err = errno ? errno : EINVAL;
            mk_buf_addf(error, "it cannot start: %s", strerror(err));
            return -err;
        }
    }
    use->started = true;
    return 0;
}

void package_stop_service(struct service *s)
{
    struct crash_thread *thread = s->packages ? crash_enter_thread() : NULL;
    struct current outer = current_enter(s, NULL);
    for (struct package_use *use = s->packages; use; use = use->next) {
        if (use->started && use->info->service_stop)
            use->info->service_stop(use->state);
        use->started = false;
    }
    current_leave(outer);
    crash_leave_thread(thread);
}

/* ── workers ── */

static int make_parts(struct service_worker *w)
{
    struct package_parts *all = &w->parts;
    unsigned n = 0;
    assert(!all->items);
    for (const struct package_use *use = w->service->packages; use; use = use->next)
        n++;
    all->items = n ? heap_zalloc(n * sizeof(*all->items)) : NULL;
    if (n && !all->items)
        return -ENOMEM;
    all->n = n;
    for (const struct package_use *use = w->service->packages; use; use = use->next) {
        all->items[--n] = (struct package_part){.base = {w->loop, w->account, w->index, use->state, NULL},
                                                .worker = w,
                                                .info = use->info};
    }
    return 0;
}

int package_start_worker(struct service_worker *w)
{
    int err = make_parts(w);
    for (unsigned i = 0; i < w->parts.n && err == 0; i++) {
        struct package_part *part = &w->parts.items[i];
        err = part->info->worker_start ? part->info->worker_start(&part->base) : 0;
        part->started = err == 0;
        if (err < 0)
            message_log(MK_LOG_ERROR, "the package \"%s\" cannot start in worker %u: %s", part->info->name, w->index,
                        strerror(-err));
    }
    return err;
}

void package_stop_worker(struct service_worker *w)
{
    bool has_loop = service_worker_has_loop(w);
    struct package_parts *all = &w->parts;
    if (w->has_lost_task)
        return;
    for (unsigned i = all->n; i-- > 0;) {
        struct package_part *part = &all->items[i];
        if (!has_loop) {
            part->base.loop = NULL;
            part->base.account = NULL;
        }
        if (part->started && part->info->worker_stop)
            part->info->worker_stop(&part->base);
        part->started = false;
    }
    heap_free(all->items, all->n * sizeof(*all->items));
    *all = (struct package_parts){0};
}

/* ── for packages ── */

void *package_service_state(const struct duda_package *package)
{
    for (const struct package_use *use = current.service ? current.service->packages : NULL; use; use = use->next) {
        if (use->info == package)
            return use->state;
    }
    return NULL;
}

static struct duda_package_worker *find_part(struct service_worker *w, const struct duda_package *package)
{
    for (unsigned i = 0; w && i < w->parts.n; i++) {
        if (w->parts.items[i].info == package)
            return &w->parts.items[i].base;
    }
    return NULL;
}

struct duda_package_worker *package_worker(const struct duda_package *package)
{
    return find_part(current.worker, package);
}

struct duda_package_worker *package_worker_of(const struct duda_package *package, duda_request_t *dr)
{
    return dr && dr->req ? find_part(dr->worker, package) : NULL;
}

void package_call(struct duda_package_worker *part, void (*fn)(void *data), void *data)
{
    struct service_worker *w = MK_CONTAINER_OF(part, struct package_part, base)->worker;
    struct current outer = service_worker_enter(w);
    atomic_store_explicit(&w->watch.function, (uintptr_t)fn, memory_order_relaxed);
    fn(data);
    service_worker_leave(w, outer);
}

void package_name_callback(struct duda_package_worker *part, void (*fn)(void))
{
    struct service_worker *w = MK_CONTAINER_OF(part, struct package_part, base)->worker;
    atomic_store_explicit(&w->watch.function, (uintptr_t)fn, memory_order_relaxed);
}

const struct mk_counter *package_open_counter(const struct duda_package *package, const char *name, const char *help,
                                              bool is_level)
{
    if (!phase_check(PHASE_MAIN, "package->counter()") || !package || !name || !help)
        return NULL;
    return counts_open_package(current.service, package->name, name, help, is_level);
}

void package_count(struct duda_package_worker *part, const struct mk_counter *counter, int64_t n)
{
    if (!counter)
        return;
    const struct mk_worker *worker = part ? MK_CONTAINER_OF(part, struct package_part, base)->worker->worker : NULL;
    mk_counter_add(counter, worker, n);
}

void package_log_api_error(const char *call, const char *reason)
{
    api_error_log(current.worker, call, reason);
}

void package_explain_crash(const char *sentence)
{
    current.explanation = sentence;
}

bool package_describe_call(const void *address, char *to, size_t size)
{
    to[0] = '\0';
    if (!address)
        return crash_describe_caller(to, size);
    const struct crash_object *o = crash_find_object((uintptr_t)address);
    if (!o || o->kind != CRASH_SERVICE)
        return false;
    crash_describe((uintptr_t)address - 1, to, size); /* of the call, not of what it returns to */
    return true;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What packages have for each service and each worker (<duda/package.h>).
 */
#include "common/api_error.h"
#include "common/current.h"
#include "common/heap.h"
#include "crash/crash.h"
#include "crash/crash_object.h"
#include "log/message.h"
#include "request/request.h"
#include "service/counts.h"
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
    struct crash_thread *thread = packages_of(s)->first ? crash_enter_thread() : NULL;
    struct current outer = current_enter(s, NULL);
    for (struct package_use *use = packages_of(s)->first; use; use = use->next) {
        if (use->started && use->info->service_stop)
            use->info->service_stop(use->state);
        use->started = false;
    }
    current_leave(outer);
    crash_leave_thread(thread);
}

/* ── workers ── */

static int make_states(struct service_worker *w)
{
    struct package_workers *all = package_workers_of(w);
    unsigned n = 0;
    assert(!all->items);
    for (const struct package_use *use = packages_of(w->service)->first; use; use = use->next)
        n++;
    all->items = n ? heap_zalloc(n * sizeof(*all->items)) : NULL;
    if (n && !all->items)
        return -ENOMEM;
    all->n = n;
    for (const struct package_use *use = packages_of(w->service)->first; use; use = use->next) {
        all->items[--n] = (struct package_worker){.base = {w->loop, w->account, w->index, use->state, NULL},
                                                  .worker = w,
                                                  .info = use->info};
    }
    return 0;
}

int package_start_worker(struct service_worker *w)
{
    int err = make_states(w);
    for (unsigned i = 0; i < package_workers_of(w)->n && err == 0; i++) {
        struct package_worker *state = &package_workers_of(w)->items[i];
        err = state->info->worker_start ? state->info->worker_start(&state->base) : 0;
        state->started = err == 0;
        if (err < 0)
            message_log(MK_LOG_ERROR, "the package \"%s\" cannot start in worker %u: %s", state->info->name, w->index,
                        strerror(-err));
    }
    return err;
}

void package_stop_worker(struct service_worker *w)
{
    bool has_loop = service_worker_has_loop(w);
    struct package_workers *all = package_workers_of(w);
    if (w->has_lost_task)
        return;
    for (unsigned i = all->n; i-- > 0;) {
        struct package_worker *state = &all->items[i];
        if (!has_loop) {
            state->base.loop = NULL;
            state->base.account = NULL;
        }
        if (state->started && state->info->worker_stop)
            state->info->worker_stop(&state->base);
        state->started = false;
    }
    heap_free(all->items, all->n * sizeof(*all->items));
    *all = (struct package_workers){0};
}

/* ── for packages ── */

void *package_service_state(const struct duda_package *package)
{
    for (const struct package_use *use = current.service ? packages_of(current.service)->first : NULL; use;
         use = use->next) {
        if (use->info == package)
            return use->state;
    }
    return NULL;
}

static struct duda_package_worker *find_state(struct service_worker *w, const struct duda_package *package)
{
    for (unsigned i = 0; w && i < package_workers_of(w)->n; i++) {
        if (package_workers_of(w)->items[i].info == package)
            return &package_workers_of(w)->items[i].base;
    }
    return NULL;
}

struct duda_package_worker *package_worker(const struct duda_package *package)
{
    return find_state(current.worker, package);
}

struct duda_package_worker *package_worker_of(const struct duda_package *package, duda_request_t *dr)
{
    return dr && dr->req ? find_state(dr->worker, package) : NULL;
}

void package_call(struct duda_package_worker *state, void (*fn)(void *data), void *data)
{
    struct service_worker *w = MK_CONTAINER_OF(state, struct package_worker, base)->worker;
    struct current outer = service_worker_enter(w);
    atomic_store_explicit(&w->watch.function, (uintptr_t)fn, memory_order_relaxed);
    fn(data);
    service_worker_leave(w, outer);
}

void package_name_callback(struct duda_package_worker *state, void (*fn)(void))
{
    struct service_worker *w = MK_CONTAINER_OF(state, struct package_worker, base)->worker;
    atomic_store_explicit(&w->watch.function, (uintptr_t)fn, memory_order_relaxed);
}

const struct mk_counter *package_open_counter(const struct duda_package *package, const char *name, const char *help,
                                              bool is_level)
{
    if (!phase_check(PHASE_MAIN, "package->counter()") || !package || !name || !help)
        return NULL;
    return counts_open_package(current.service, package->name, name, help, is_level);
}

void package_count(struct duda_package_worker *state, const struct mk_counter *counter, int64_t n)
{
    if (!counter)
        return;
    const struct mk_worker *worker = state ? MK_CONTAINER_OF(state, struct package_worker, base)->worker->worker : NULL;
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

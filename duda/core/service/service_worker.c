// SPDX-License-Identifier: Apache-2.0
/*
 * The parts of a service in the workers' threads: makes, retires and ends them (service.h).
 */
#include "service/service.h"

#include "common/current.h"
#include "crash/watch.h"
#include "request/request.h"

#include <assert.h>
#include <string.h>

enum { RETIRE_MS = 5000 }; /* how long a tunnel that was asked to end may last */

static struct service_worker *find_worker(struct service *s, const struct mk_loop *loop)
{
    MK_LIST_EACH_ITEM(&s->workers, struct service_worker, node, w) {
        if (w->loop == loop && !w->ended)
            return w;
    }
    return NULL;
}

/*
 * Cuts the requests of a service that was replaced: event streams and others that do not end by themselves. Those that
 * a feature can end (tunnels) are asked first, and are cut by a second call.
 */
static void abort_requests(struct mk_timer *timer)
{
    struct service_worker *w = MK_CONTAINER_OF(timer, struct service_worker, abort_timer);
    struct mk_list begun;
    bool waits = false;
    mk_list_init(&begun);
    mk_list_join(&begun, &w->requests);
    struct current outer = service_worker_enter(w); /* the end of the last request may end the generation */
    while (!mk_list_empty(&begun)) {
        struct duda_request *dr = MK_LIST_FIRST(&begun, struct duda_request, node);
        mk_list_del(&dr->node);
        mk_list_add(&w->requests, &dr->node);
        if (request_retire(dr)) {
            waits = true;
            continue;
        }
        dr->is_aborted = true;
        mk_response_abort(dr->req);
    }
    if (waits && !w->ended)
        mk_timer_arm(w->loop, &w->abort_timer, RETIRE_MS);
    service_worker_leave(w, outer);
}

/* Frees a worker that has ended or could not be made. The service may be freed after it. */
static void free_worker(struct service_worker *w)
{
    struct service *s = w->service;
    FEATURES_CALL(s->features, worker_free, w);
    pthread_mutex_lock(&s->lock);
    mk_list_del(&w->node);
    pthread_cond_signal(&s->idle);
    pthread_mutex_unlock(&s->lock);
    service_worker_free(w);
}

static void end_worker(struct service_worker *w)
{
    assert(w->ended && w->calls == 0 && w->refs == 0);
    struct service *s = w->service;
    struct current outer = current_enter(s, w);
    w->calls++; /* package->call() in a hook does not end the worker again */
    FEATURES_CALL(s->features, worker_release, w);
    current_leave(outer);
    watch_remove(&w->watch);
    free_worker(w);
}

/* Something runs for the worker in another thread: tells features of the end, and the main thread that it may last. */
static void begin_pending(struct service_worker *w)
{
    assert(w->ended && w->calls == 0);
    pthread_mutex_lock(&w->service->lock);
    w->is_pending = true;
    pthread_cond_signal(&w->service->idle);
    pthread_mutex_unlock(&w->service->lock);
    w->calls++;
    FEATURES_CALL(w->service->features, worker_report_end, w);
    w->calls--;
}

static bool is_held(const struct service_worker *w)
{
    FEATURES_EACH(w->service->features, row)
        if (row->worker_is_held && row->worker_is_held(w))
            return true;
    return false;
}

/* Ends the worker if no callback of it runs, and no task holds it; the last one that is delivered ends it then. */
static void try_end_worker(struct service_worker *w)
{
    if (w->calls)
        return;
    if (!is_held(w))
        end_worker(w);
    else if (!w->is_pending)
        begin_pending(w);
}

/* Removes what the service has in the loop: none of it is called any more. */
static void stop_worker(struct service_worker *w)
{
    assert(w->refs == 0 && w->current == 0 && mk_list_empty(&w->requests));
    pthread_mutex_lock(&w->service->lock);
    w->ended = true;
    pthread_mutex_unlock(&w->service->lock);
    mk_timer_cancel(&w->abort_timer);
    FEATURES_CALL(w->service->features, worker_stop, w);
    try_end_worker(w);
}

static struct service_worker *new_worker(struct service *s, struct mk_worker *worker)
{
    struct service_worker *w = service_worker_new(s);
    if (!w)
        return NULL;
    w->loop = mk_worker_loop(worker);
    w->account = mk_worker_account(worker);
    w->index = mk_worker_index(worker);
    w->thread = pthread_self();
    w->watch.service = s->self.name.data;
    w->watch.worker = w->index;
    mk_timer_init(&w->abort_timer, abort_requests);
    mk_list_init(&w->node);
    mk_list_init(&w->requests);
    int err = 0;
    FEATURES_INIT(err, s->features, worker_init, w);
    if (err < 0) {
        free_worker(w);
        return NULL;
    }
    pthread_mutex_lock(&s->lock);
    mk_list_add(&s->workers, &w->node);
    pthread_mutex_unlock(&s->lock);
    err = watch_add(&w->watch);
    if (err < 0)
        mk_log_warn("service \"%s\": that it blocks worker %u would not be noticed: %s", w->watch.service, w->index,
                    strerror(-err));
    return w;
}

/* Calls what the service has for the begin of a worker. Returns 0 or -errno. */
static int run_worker(struct service_worker *w)
{
    int err = 0;
    struct current outer = current_enter(w->service, w);
    FEATURES_EACH_BACK(w->service->features, row)
        if (row->worker_start && (err = row->worker_start(w)) != 0)
            break;
    current_leave(outer);
    return err;
}

static struct service_worker *start_worker(struct service *s, struct mk_worker *worker)
{
    struct service_worker *w = new_worker(s, worker);
    if (w && s->state == SERVICE_RUNS && run_worker(w) < 0) {
        stop_worker(w);
        return NULL;
    }
    return w;
}

struct service_worker *service_worker_find(struct service *s, const struct mk_loop *loop)
{
    pthread_mutex_lock(&s->lock);
    struct service_worker *w = find_worker(s, loop);
    pthread_mutex_unlock(&s->lock);
    return w;
}

struct service_worker *service_worker_get(struct service *s, struct mk_worker *worker)
{
    pthread_mutex_lock(&s->lock);
    struct service_worker *w = find_worker(s, mk_worker_loop(worker));
    pthread_mutex_unlock(&s->lock);
    if (!w)
        w = start_worker(s, worker);
    if (!w)
        return NULL;
    w->refs++;
    w->current++;
    return w;
}

void service_worker_serve(struct service_worker *w, struct mk_worker *worker)
{
    assert(w->current > 0 && !w->ended);
    w->worker = worker;
    w->abort_ms = mk_generation_shutdown_timeout_ms(mk_worker_generation(worker));
    mk_timer_cancel(&w->abort_timer);
    FEATURES_CALL(w->service->features, worker_serve, w);
}

/* No generation that serves has it: what is left of its requests is cut in some time. */
static void arm_abort_timer(struct service_worker *w)
{
    assert(w->current == 0 && w->refs > 0);
    FEATURES_CALL(w->service->features, worker_retire, w);
    if (mk_list_empty(&w->abort_timer.node)) /* else a generation that was refused has had it, too */
        mk_timer_arm(w->loop, &w->abort_timer, w->abort_ms);
}

void service_worker_retire(struct service_worker *w)
{
    assert(w->current > 0);
    if (--w->current == 0)
        arm_abort_timer(w);
}

/* A generation that has had no exchange is not retired; older ones, which were, may still have some. */
void service_worker_put(struct service_worker *w, const struct mk_worker *worker, bool retired)
{
    if (w->worker == worker)
        w->worker = NULL;
    assert(w->refs > 0 && (retired || w->current > 0));
    w->current -= !retired;
    if (--w->refs == 0)
        stop_worker(w);
    else if (!retired && w->current == 0)
        arm_abort_timer(w);
}

struct current service_worker_enter(struct service_worker *w)
{
    w->calls++;
    return current_enter(w->service, w);
}

void service_worker_leave(struct service_worker *w, struct current outer)
{
    assert(w->calls > 0);
    current_leave(outer);
    w->calls--;
    if (MK_UNLIKELY(w->ended))
        try_end_worker(w);
}

void service_worker_end_pending(struct service_worker *w)
{
    if (w->is_pending && w->calls == 0)
        end_worker(w);
}

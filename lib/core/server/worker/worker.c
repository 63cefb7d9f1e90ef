// SPDX-License-Identifier: Apache-2.0
/*
 * A thread's worker under one generation (server/worker/worker.h), and the plugins' functions for it.
 */
#include "server/worker/worker.h"

#include "server/worker/request_ref.h"
#include "server/generation/spools.h"

#include <monkey/log.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>

/*
 * All workers whose plugins have started. Static, because servers of one process share plugins. Visits give way to
 * workers that start or end: visits from every request must not delay a reload.
 */
static struct {
    pthread_rwlock_t lock;
    struct mk_list workers;
} all = {PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP, {&all.workers, &all.workers}};

static size_t count_worker_bytes(const struct mk_generation *g)
{
    return sizeof(struct mk_worker) + g->n_plugins * sizeof(void *);
}

struct mk_worker *mk__worker_new(struct mk_generation *g)
{
    struct mk_worker *worker = mk_account_zalloc(NULL, count_worker_bytes(g));
    if (!worker)
        return NULL;
    worker->generation = mk__generation_get(g);
    mk_list_init(&worker->node);
    return worker;
}

int mk__worker_start(struct mk_worker *worker)
{
    for (; worker->started < worker->generation->n_plugins; worker->started++) {
        const struct mk_plugin *plugin = worker->generation->plugins[worker->started];
        int err = plugin->worker_start ? plugin->worker_start(worker, &worker->states[worker->started]) : 0;
        if (err < 0) {
            mk_log_error("worker %u: the plugin %s cannot start: %s", worker->index, plugin->name, strerror(-err));
            return err;
        }
    }
    pthread_rwlock_wrlock(&all.lock);
    mk_list_add(&all.workers, &worker->node);
    pthread_rwlock_unlock(&all.lock);
    return 0;
}

void mk__worker_free(struct mk_worker *worker)
{
    assert(worker->started <= worker->generation->n_plugins);
    /* from now on no other thread reads the states of its plugins */
    pthread_rwlock_wrlock(&all.lock);
    mk_list_del(&worker->node);
    pthread_rwlock_unlock(&all.lock);
    worker->stopping = true;
    while (worker->started--) {
        const struct mk_plugin *plugin = worker->generation->plugins[worker->started];
        if (plugin->worker_stop)
            plugin->worker_stop(worker, worker->states[worker->started]);
    }
    size_t bytes = count_worker_bytes(worker->generation);
    mk__generation_put(worker->generation);
    mk_account_free(NULL, worker, bytes);
}

void mk__worker_serve(struct mk_worker *worker)
{
    mk__spools_serve(worker->generation);
    for (unsigned i = 0; i < worker->started; i++) {
        const struct mk_plugin *plugin = worker->generation->plugins[i];
        if (plugin->worker_serve)
            plugin->worker_serve(worker, worker->states[i]);
    }
    if (mk_worker_index(worker) == 0)
        mk__counters_hide_unheld();
}

void mk__worker_retire(struct mk_worker *worker)
{
    for (unsigned i = 0; i < worker->started && !worker->retired; i++) {
        const struct mk_plugin *plugin = worker->generation->plugins[i];
        if (plugin->worker_retire)
            plugin->worker_retire(worker, worker->states[i]);
    }
    worker->retired = true;
}

/* Frees a worker that another one has replaced, in its thread. */
static void free_unused(struct mk_worker *worker)
{
    if (worker->on_unused)
        worker->on_unused(worker);
    mk__worker_free(worker);
}

void mk__worker_replace(struct mk_worker *worker, struct mk_worker **list)
{
    assert(!worker->link);
    if (!worker->refs) {
        free_unused(worker);
        return;
    }
    worker->next = *list;
    worker->link = list;
    if (worker->next)
        worker->next->link = &worker->next;
    *worker->link = worker;
    mk__worker_get(worker); /* a hook may end the last exchange */
    mk__worker_retire(worker);
    mk__worker_put(worker);
}

static void unlink_worker(struct mk_worker *worker)
{
    assert(*worker->link == worker);
    *worker->link = worker->next;
    if (worker->next)
        worker->next->link = worker->link;
}

void mk__worker_free_replaced(struct mk_worker *worker)
{
    assert(!worker->refs && worker->link);
    unlink_worker(worker);
    free_unused(worker);
}

/* ── for plugins ── */

void mk_plugin_each_worker(const struct mk_plugin *plugin, mk_worker_visit_fn fn, void *ctx)
{
    pthread_rwlock_rdlock(&all.lock);
    MK_LIST_EACH_ITEM(&all.workers, struct mk_worker, node, worker) {
        int i = mk__generation_find_plugin(worker->generation, plugin);
        if (i >= 0)
            fn(worker, worker->states[i], ctx);
    }
    pthread_rwlock_unlock(&all.lock);
}

unsigned mk_worker_index(const struct mk_worker *worker)
{
    return worker->index;
}

struct mk_loop *mk_worker_loop(const struct mk_worker *worker)
{
    return worker->loop;
}

struct mk_account *mk_worker_account(const struct mk_worker *worker)
{
    return worker->account;
}

uint32_t mk_worker_connections(const struct mk_worker *worker)
{
    return *worker->connections;
}

struct mk_generation *mk_worker_generation(const struct mk_worker *worker)
{
    return worker->generation;
}

MK_HOT void *mk_worker_state(const struct mk_worker *worker, const struct mk_plugin *plugin)
{
    int i = mk__generation_find_plugin(worker->generation, plugin);
    return i < 0 ? NULL : worker->states[i];
}

struct mk_worker *mk_worker_get(struct mk_worker *worker)
{
    mk__worker_get(worker);
    return worker;
}

void mk_worker_put(struct mk_worker *worker)
{
    mk__worker_put(worker);
}

int mk_request_ref(struct mk_request *req, struct mk_request_ref *ret)
{
    return mk__request_ref_create(mk_request_worker(req)->request_refs, req, ret);
}

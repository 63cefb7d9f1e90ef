// SPDX-License-Identifier: Apache-2.0
/*
 * A worker's step to another generation (server/worker/thread.h), in two phases: first the plugins start in the
 * worker's thread, which may fail. When they have started in all workers, each worker swaps pointers between two turns
 * of its connections, which cannot fail: the thread that reloads has allocated everything.
 */
#include "http/http.h"
#include "server/plugins/plugin_states.h"
#include "server/worker/thread.h"

#include <assert.h>
#include <errno.h>

int mk__worker_reload_prepare(struct mk__worker_reload *a, struct mk__thread *t, struct mk_generation *g,
                              unsigned workers, bool balanced, const struct mk__listeners *listeners)
{
    assert(!workers || !balanced);
    *a = (struct mk__worker_reload){.thread = t, .balanced = balanced};
    if (!workers && !balanced)
        return 0;
    a->next = mk__thread_new_worker(t, g);
    int err = a->next ? mk__context_alloc_buffers(&t->http, &g->http, &a->buffers) : -ENOMEM;
    if (err == 0 && workers)
        err = mk__acceptors_make(&a->acceptors, listeners, t->index, workers);
    return err;
}

void mk__worker_reload_free(struct mk__worker_reload *a)
{
    mk__acceptors_free(&a->acceptors);
    mk__context_free_buffers(&a->buffers);
    if (a->next)
        mk__worker_free(a->next);
    a->next = NULL;
}

static struct mk__worker_reload *reload_of(struct mk_message *message)
{
    return MK_CONTAINER_OF(message, struct mk__worker_reload, message);
}

/* Plugins start without MemoryLimit: it is for connections, which may have reached it. */
static int start_plugins(struct mk__worker_reload *a)
{
    struct mk_account *account = &a->thread->account;
    size_t bytes_max = account->bytes_max;
    account->bytes_max = 0;
    int err = mk__worker_start(a->next);
    account->bytes_max = bytes_max;
    return err;
}

static void on_begin(struct mk_message *message)
{
    struct mk__worker_reload *a = reload_of(message);
    if (a->next)
        a->err = start_plugins(a);
    sem_post(a->done);
}

static void on_abort(struct mk_message *message)
{
    struct mk__worker_reload *a = reload_of(message);
    if (a->next)
        mk__worker_free(a->next);
    a->next = NULL;
    sem_post(a->done);
}

static void switch_generation(struct mk__thread *t, struct mk__worker_reload *a)
{
    struct mk_worker *before = t->worker;
    assert(before && a->next && a->err == 0);
    const struct mk_generation *g = a->next->generation;
    t->worker = a->next;
    a->next = NULL;
    t->account.bytes_max = g->settings->memory_bytes_max;
    mk__http_apply_settings(&t->http, &g->http, &a->buffers);
    mk__worker_serve(t->worker);
    mk__worker_replace(before, &t->replaced);
}

static void on_commit(struct mk_message *message)
{
    struct mk__worker_reload *a = reload_of(message);
    /* connections that wait at an address that is closed now are accepted under the old generation */
    mk__acceptors_replace(&a->thread->acceptors, &a->acceptors, mk__thread_open_acceptor, a->thread);
    a->thread->receiver.enabled = a->balanced;
    if (a->next)
        switch_generation(a->thread, a);
    sem_post(a->done);
}

static void send_phase(struct mk__worker_reload *a, mk_message_fn fn, sem_t *done)
{
    assert(a->thread->running);
    a->done = done;
    a->message.fn = fn;
    mk_post(&a->thread->loop, &a->message);
}

void mk__worker_reload_begin(struct mk__worker_reload *a, sem_t *done)
{
    send_phase(a, on_begin, done);
}

void mk__worker_reload_abort(struct mk__worker_reload *a, sem_t *done)
{
    send_phase(a, on_abort, done);
}

void mk__worker_reload_commit(struct mk__worker_reload *a, sem_t *done)
{
    send_phase(a, on_commit, done);
}

/* ── plugins that were removed ── */

bool mk__worker_reload_has_plugin(const struct mk__thread *t, const struct mk_plugin *plugin,
                                  const struct mk_worker *ended)
{
    if (t->worker != ended && mk__generation_find_plugin(t->worker->generation, plugin) >= 0)
        return true;
    const struct mk_worker *w = t->replaced;
    while (w && (w == ended || mk__generation_find_plugin(w->generation, plugin) < 0))
        w = w->next;
    return w != NULL;
}

void mk__worker_reload_forget(struct mk_worker *ended)
{
    struct mk__thread *t = MK_CONTAINER_OF(ended->loop, struct mk__thread, loop);
    const struct mk_generation *g = ended->generation;
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (!mk__worker_reload_has_plugin(t, g->plugins[i], ended))
            mk__plugin_states_release_of(&t->http.conns, g->plugins[i]);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The life of a worker under a generation (server/pin.h), and what plugins may ask it.
 */
#include "server/pin.h"

#include "server/roster.h"
#include "server/worker.h"

#include <monkey/log.h>

#include <errno.h>

static size_t pin_bytes(const struct mk_generation *g)
{
    return sizeof(struct mk_worker) + g->n_plugins * sizeof(void *);
}

struct mk_worker *mk__pin_new(struct mk__worker *thread, struct mk_generation *g)
{
    struct mk_worker *pin = mk_account_alloc(NULL, pin_bytes(g));
    if (!pin)
        return NULL;
    memset(pin, 0, pin_bytes(g));
    pin->thread = thread;
    pin->generation = mk__generation_get(g);
    return pin;
}

int mk__pin_start(struct mk_worker *pin)
{
    for (; MK__PLUGIN_STARTS && pin->started < pin->generation->n_plugins; pin->started++) {
        const struct mk_plugin *plugin = pin->generation->plugins[pin->started];
        int err = plugin->worker_start ? plugin->worker_start(pin, &pin->states[pin->started]) : 0;
        if (err < 0) {
            mk_log_error("worker %u: the plugin %s cannot start: %s", pin->thread->index, plugin->name, strerror(-err));
            return err;
        }
    }
    return 0;
}

void mk__pin_free(struct mk_worker *pin)
{
    while (MK__PLUGIN_STARTS && pin->started--) {
        const struct mk_plugin *plugin = pin->generation->plugins[pin->started];
        if (plugin->worker_stop)
            plugin->worker_stop(pin, pin->states[pin->started]);
    }
    size_t bytes = pin_bytes(pin->generation);
    mk__generation_put(pin->generation);
    mk_account_free(NULL, pin, bytes);
}

void mk__pin_retire(struct mk_worker *pin)
{
    if (!pin->count) {
        mk__pin_free(pin);
        return;
    }
    pin->next = pin->thread->older;
    pin->at = &pin->thread->older;
    if (pin->next)
        pin->next->at = &pin->next;
    *pin->at = pin;
}

static void leave(struct mk_worker *pin)
{
    *pin->at = pin->next;
    if (pin->next)
        pin->next->at = pin->at;
}

void mk__pin_take(struct mk_worker *pin)
{
    pin->count++;
}

void mk__pin_drop(struct mk_worker *pin)
{
    if (--pin->count || !pin->at)
        return;
    leave(pin);
    mk__pin_free(pin);
}

/* ── what plugins may ask ── */

unsigned mk_worker_index(const struct mk_worker *worker)
{
    return worker->thread->index;
}

struct mk_loop *mk_worker_loop(const struct mk_worker *worker)
{
    return &worker->thread->loop;
}

struct mk_account *mk_worker_account(const struct mk_worker *worker)
{
    return &worker->thread->account;
}

struct mk_generation *mk_worker_generation(const struct mk_worker *worker)
{
    return worker->generation;
}

void *mk_worker_state(const struct mk_worker *worker, const struct mk_plugin *plugin)
{
    int i = mk__generation_find(worker->generation, plugin);
    return i < 0 ? NULL : worker->states[i];
}

struct mk_worker *mk_worker_get(struct mk_worker *worker)
{
    mk__pin_take(worker);
    return worker;
}

void mk_worker_put(struct mk_worker *worker)
{
    mk__pin_drop(worker);
}

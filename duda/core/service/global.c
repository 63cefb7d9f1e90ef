// SPDX-License-Identifier: Apache-2.0
/*
 * The object `global`, and its values (global.h).
 */
#include "service/global.h"

#include "common/api_error.h"
#include "common/current.h"
#include "common/heap.h"
#include "log/message.h"
#include "objects.h"
#include "service/service.h"

#include <errno.h>

enum { KEYS_MAX = 4096 };

static _Thread_local struct global_values *thread_values; /* of a thread of the service's own */

int global_make_values(const struct service *s, struct global_values *values)
{
    if (!globals_of(s)->n)
        return 0;
    values->items = heap_zalloc(globals_of(s)->n * sizeof(void *));
    if (!values->items)
        return -ENOMEM;
    values->n = globals_of(s)->n;
    for (unsigned i = 0; i < values->n; i++) {
        const struct global_key *key = &globals_of(s)->keys[i];
        values->items[i] = key->make ? key->make(key->data) : NULL;
    }
    return 0;
}

void global_use(struct global_values *values)
{
    thread_values = values;
}

void global_destroy_values(const struct service *s, struct global_values *values)
{
    for (unsigned i = values->n; i-- > 0;) {
        void *value = values->items[i];
        values->items[i] = NULL;
        if (value && globals_of(s)->keys[i].destroy)
            globals_of(s)->keys[i].destroy(value);
    }
    heap_free(values->items, values->n * sizeof(void *));
    *values = (struct global_values){0};
}

int global_start_worker(struct service_worker *w)
{
    return global_make_values(w->service, global_values_of(w));
}

void global_release_worker(struct service_worker *w)
{
    global_destroy_values(w->service, global_values_of(w));
}

/* ── the object ── */

static int add_key(duda_global_t *key, struct global_key wanted, const char *call)
{
    if (!phase_check(PHASE_MAIN, call))
        return -1;
    if (!key) {
        message_log(MK_LOG_ERROR, "%s: there is no key", call);
        return -1;
    }
    struct service *s = current.service;
    struct global_key *keys = globals_of(s)->n < KEYS_MAX
                                  ? mk_arena_grow(&s->arena, globals_of(s)->keys, globals_of(s)->n, sizeof(*keys))
                                  : NULL;
    if (!keys)
        return -1;
    keys[globals_of(s)->n++] = wanted;
    globals_of(s)->keys = keys;
    key->id = globals_of(s)->n;
    return 0;
}

static int init_key(duda_global_t *key, void *(*make)(void *data), void *data)
{
    return add_key(key, (struct global_key){make, data, NULL}, "global->init()");
}

static int init_key_destroy(duda_global_t *key, void *(*make)(void *data), void *data, void (*destroy)(void *value))
{
    return add_key(key, (struct global_key){make, data, destroy}, "global->init_destroy()");
}

/* A thread that the service has created itself gets its values when it uses one. Returns NULL without memory. */
static struct global_values *get_values(void)
{
    if (current.worker)
        return global_values_of(current.worker);
    struct global_values *values = thread_values;
    assert(current.thread && values);
    return values->items || global_make_values(current.service, values) == 0 ? values : NULL;
}

static void **find_value(duda_global_t key, const char *call)
{
    struct global_values *values = phase_check(PHASE_RUNNING, call) ? get_values() : NULL;
    if (!values)
        return NULL;
    if (key.id > 0 && key.id <= values->n)
        return &values->items[key.id - 1];
    message_log(MK_LOG_ERROR, "%s: the key was not made by global->init()", call);
    return NULL;
}

static void *get_value(duda_global_t key)
{
    void **value = find_value(key, "global->get()");
    return value ? *value : NULL;
}

static int set_value(duda_global_t key, void *new_value)
{
    void **value = find_value(key, "global->set()");
    if (value)
        *value = new_value;
    return value ? 0 : -1;
}

const struct duda_api_global object_global = {
    .init = init_key,
    .init_destroy = init_key_destroy,
    .get = get_value,
    .set = set_value,
};

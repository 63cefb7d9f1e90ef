// SPDX-License-Identifier: Apache-2.0
/*
 * Counts scripts. A place is handed over under the lock: a waiter in another thread gets a message, which can
 * be taken back as long as it has not arrived.
 */
#include "cgi.h"

#include <monkey/base/arena.h>
#include <monkey/base/hash.h>
#include <monkey/counters.h>

#include <errno.h>

/* ── counters ── */

#define INFO(name, help, kind) (&(const struct mk_counter_info){"cgi", name, help, kind})

static const struct mk_counter_row rows[COUNTS] = {
    [COUNT_REQUESTS] = {.info = INFO("requests", "requests for scripts", MK_COUNTER_SUM)},
    [COUNT_STARTS] = {.info = INFO("starts", "scripts that were started", MK_COUNTER_SUM)},
    [COUNT_RUNNING] = {.info = INFO("running", "scripts that run now", MK_COUNTER_LEVEL)},
    [COUNT_REFUSED] = {.info =
                           INFO("refused", "requests that were refused because too many scripts ran", MK_COUNTER_SUM)},
    [COUNT_FAILURES] = {.info = INFO("failures", "scripts that could not be started, or gave no proper response",
                                     MK_COUNTER_SUM)},
    [COUNT_TIMEOUTS] = {.info = INFO("timeouts", "scripts that were ended because they took too long", MK_COUNTER_SUM)},
};

static const struct mk_counter *counters[COUNTS];

void counters_open(void)
{
    mk_counters_open(rows, COUNTS, counters);
}

void counters_add(const struct mk_worker *worker, enum count count, int64_t n)
{
    mk_counter_add(counters[count], worker, n);
}

/* ── places ── */

/* ── the table ── */

void slots_table_init(struct slots_table *all)
{
    *all = (struct slots_table){.lock = PTHREAD_MUTEX_INITIALIZER};
}

void slots_table_release(struct slots_table *all)
{
    mk_hash_release(&all->table, NULL);
    pthread_mutex_destroy(&all->lock);
}

static struct slots *find_slots(const struct slots_table *all, struct mk_str key, uint64_t hash)
{
    struct mk_hash_node *node;
    MK_HASH_EACH(&all->table, hash, node) {
        struct slots *s = MK_CONTAINER_OF(node, struct slots, node);
        if (mk_str_eq(mk_str(s->key, s->key_len), key))
            return s;
    }
    return NULL;
}

static struct slots *make_slots(struct mk_str key, unsigned running_max)
{
    struct slots *s = mk_account_alloc(NULL, sizeof(*s) + key.len);
    if (!s)
        return NULL;
    *s = (struct slots){.lock = PTHREAD_MUTEX_INITIALIZER,
                        .running_max = running_max,
                        .bytes = sizeof(*s) + key.len,
                        .key_len = key.len};
    mk_list_init(&s->waiters);
    memcpy(s->key, key.p, key.len);
    return s;
}

static void free_slots(struct slots *s)
{
    pthread_mutex_destroy(&s->lock);
    mk_account_free(NULL, s, s->bytes);
}

struct slots *slots_hold(struct slots_table *all, struct mk_str key, unsigned running_max)
{
    uint64_t hash = mk_hash_add(MK_HASH_EMPTY, key.p, key.len);
    pthread_mutex_lock(&all->lock);
    struct slots *s = find_slots(all, key, hash);
    if (!s && (s = make_slots(key, running_max)) && mk_hash_insert(&all->table, NULL, &s->node, hash) < 0) {
        free_slots(s);
        s = NULL;
    }
    if (s)
        s->refs++;
    pthread_mutex_unlock(&all->lock);
    return s;
}

void slots_get(struct slots_table *all, struct slots *s)
{
    pthread_mutex_lock(&all->lock);
    s->refs++;
    pthread_mutex_unlock(&all->lock);
}

void slots_put(struct slots_table *all, struct slots *s)
{
    pthread_mutex_lock(&all->lock);
    bool is_last = --s->refs == 0;
    if (is_last)
        mk_hash_remove(&all->table, &s->node);
    pthread_mutex_unlock(&all->lock);
    if (is_last)
        free_slots(s);
}

/* ── places ── */

static void take_grant(struct mk_message *message)
{
    struct slots_waiter *w = MK_CONTAINER_OF(message, struct slots_waiter, message);
    w->slots = NULL;
    w->fn(w);
}

int slots_take(struct slots *s, struct slots_waiter *w, unsigned waiting_max)
{
    int r = 0;
    pthread_mutex_lock(&s->lock);
    if (s->running < s->running_max && !s->waiting) {
        s->running++;
    } else if (s->waiting < waiting_max) {
        r = MK_AGAIN;
        s->waiting++;
        w->slots = s;
        w->is_granted = false;
        w->message = (struct mk_message){.fn = take_grant};
        mk_list_add(&s->waiters, &w->node);
    } else {
        r = -EBUSY;
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

/* Grants places to those that have waited longest. Under the lock. */
static void grant_slots(struct slots *s)
{
    while (s->waiting && s->running < s->running_max) {
        struct slots_waiter *w = MK_LIST_FIRST(&s->waiters, struct slots_waiter, node);
        mk_list_del(&w->node);
        s->waiting--;
        s->running++;
        w->is_granted = true;
        mk_post(w->loop, &w->message);
    }
}

void slots_set_max(struct slots *s, unsigned running_max)
{
    pthread_mutex_lock(&s->lock);
    s->running_max = running_max;
    grant_slots(s);
    pthread_mutex_unlock(&s->lock);
}

void slots_free(struct slots *s)
{
    pthread_mutex_lock(&s->lock);
    s->running--;
    grant_slots(s);
    pthread_mutex_unlock(&s->lock);
}

void slots_cancel(struct slots_waiter *w)
{
    struct slots *s = w->slots;
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    bool is_granted = w->is_granted;
    if (!is_granted) {
        mk_list_del(&w->node);
        s->waiting--;
    }
    pthread_mutex_unlock(&s->lock);
    w->slots = NULL;
    if (!is_granted)
        return;
    mk_message_cancel(w->loop, &w->message);
    slots_free(s);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Gives requests to servers of a group, or has them wait. With MaxConnections each decision is under the
 * lock of the group's pool, so that the number is exact over all workers.
 */
#include "groups.h"

#include <errno.h>

enum {
    HELD_MAX = 10000,    /* requests of a group that Hold has wait; each looks for a server now and then */
    PROBE_MS = 100,      /* how often a server that does not respond is tried for them */
    QUEUE_TICK_MS = 250, /* how often the queue is also served: by servers that are in use again */
};

/* ── a server ── */

/* Gives the request a server. Returns 0, -EBUSY (all that could have it are full) or -ENXIO. */
static int pick_server(const struct mk_upstream_group *group, const struct criteria *criteria,
                       struct mk_upstream_tries *tries, struct mk_upstream_server **ret)
{
    struct mk_upstream_group *own = (struct mk_upstream_group *)(uintptr_t)group; /* turns and seed have no owner */
    bool is_full;
    struct member *m = choice_make(own, criteria, &is_full);
    if (!m)
        return is_full ? -EBUSY : -ENXIO;
    atomic_fetch_add(&m->server->load, 1);
    server_note_chosen(m->server, criteria->now_ms);
    tries->first_ms = tries->first_ms ? tries->first_ms : criteria->now_ms;
    tries->servers[tries->n++] = *ret = &m->server->base;
    return 0;
}

/* A retry that adds to the work of the servers: the one before may have done some of it. */
static bool is_costly_retry(const struct mk_upstream_tries *tries)
{
    return tries->n && (tries->failure == MK_UPSTREAM_SENT || tries->failure == MK_UPSTREAM_STATUS);
}

/* The first server may have been given by another thread, whose clock is some ms ahead. */
static bool is_in_retry_time(const struct upstream_conf *conf, const struct mk_upstream_tries *tries, uint64_t now)
{
    return now < tries->first_ms + conf->retry_time_ms;
}

/* Tells whether a request that servers may have got can be sent once more. */
static bool may_repeat(const struct mk_upstream_group *group, const struct mk_upstream_tries *tries, uint64_t now)
{
    const struct upstream_conf *conf = group->conf;
    return tries->n_sent <= conf->retry_most && is_in_retry_time(conf, tries, now) &&
           retry_budget_allows(&group->pool->budget, now, (uint64_t)conf->retry_budget);
}

/* Tells whether the request may have another server, by the number, the time and the failure of its tries. */
static bool has_tries_left(const struct mk_upstream_group *group, const struct mk_upstream_tries *tries, uint64_t now)
{
    const struct upstream_conf *conf = group->conf;
    bool is_bound = tries->failure == MK_UPSTREAM_KEPT_ENDED &&
                    (conf->balance == UPSTREAM_HASH || conf->balance == UPSTREAM_STICKY);
    return !is_bound && tries->n <= conf->retry_most && is_in_retry_time(conf, tries, now) &&
           (!is_costly_retry(tries) || may_repeat(group, tries, now));
}

/* ── waits ── */

static void deliver_server(struct mk_upstream_wait *wait, int err, struct mk_upstream_server *server)
{
    const struct mk_worker *worker = wait->req ? mk_request_worker(wait->req) : NULL;
    const struct mk_counter *const *counters = wait->group->pool->counters;
    wait->is_active = false;
    if (server && wait->is_costly)
        retry_budget_note_retry(&wait->group->pool->budget, mk_loop_now_ms(wait->loop));
    mk_counter_observe(counters[POOL_WAITED], worker, (mk_loop_now_ms(wait->loop) - wait->began_ms) * 1000);
    if (server) {
        server_note_begin(server_of(server), worker);
        mk_counter_add(server_of(server)->counters[SERVER_WAITED], worker, 1);
    } else {
        mk_counter_add(counters[POOL_REFUSED], worker, 1);
    }
    wait->fn(wait, err, server);
}

static void on_granted(struct mk_message *message)
{
    struct mk_upstream_wait *wait = MK_CONTAINER_OF(message, struct mk_upstream_wait, message);
    struct pool *pool = wait->group->pool;
    lock_take(&pool->lock); /* the thread that has granted it has left pool_grant() then */
    wait->state = POOL_IDLE;
    lock_release(&pool->lock);
    mk_timer_cancel(&wait->timer);
    deliver_server(wait, 0, wait->server);
}

/* Returns the group from which a request that waits gets its server. Under the lock, as the next. */
static const struct mk_upstream_group *get_group(const struct mk_upstream_wait *wait)
{
    const struct mk_upstream_group *current = wait->group->pool->current;
    return current ? current : wait->group;
}

/* Gives a request that waits a server, `only` if that is not NULL. Returns as pick_server(). */
static int pick_for(struct mk_upstream_wait *wait, const struct server *only, uint64_t now,
                    struct mk_upstream_server **ret)
{
    const struct preference preference = {.key = wait->has_key ? &wait->key : NULL,
                                          .sticky = wait->sticky ? server_of(wait->sticky) : NULL};
    const struct criteria criteria = {
        .tries = wait->tries, .preference = &preference, .only = only, .is_probe = wait->is_held, .now_ms = now};
    return pick_server(get_group(wait), &criteria, wait->tries, ret);
}

/* Has a held request try a server that has not been tried for a while. Under the lock. */
static bool probe_server(struct mk_upstream_wait *wait, uint64_t now, struct mk_upstream_server **ret)
{
    struct members *members = group_members(get_group(wait));
    for (unsigned i = 0; i < members->n; i++) {
        struct server *server = members->items[i].server;
        if (server->probe_ms > now || pick_for(wait, server, now, ret) < 0)
            continue;
        server->probe_ms = now + PROBE_MS;
        return true;
    }
    return false;
}

/* One pass over the requests that wait. */
struct serving {
    const struct server *only;           /* the server to give; NULL: any */
    const struct mk_upstream_wait *self; /* the request that asks; NULL: none */
    struct mk_upstream_server *own;      /* what `self` gets */
    const struct mk_loop *last_loop;     /* that of the last one that gets a server, except `self`; NULL: none does */
    uint64_t now;
};

/*
 * Gives the first request of a queue a server. Returns 0; -EBUSY or -ENXIO: it waits on. If there is only one to give,
 * another server may be there, of which -ENXIO says nothing.
 */
static int serve_first(struct mk_upstream_queue *queue, struct serving *serving)
{
    struct mk_upstream_wait *wait = MK_LIST_FIRST(&queue->waiting, struct mk_upstream_wait, node);
    struct pool *pool = wait->group->pool;
    struct mk_upstream_server *granted;
    int err = pick_for(wait, serving->only, serving->now, &granted);
    if (err == 0 || err == -EBUSY || !serving->only)
        queue->err = err < 0 ? err : -EBUSY;
    if (err < 0)
        return err;
    if (wait == serving->self) {
        serving->own = granted;
        pool_remove(pool, wait);
    } else {
        serving->last_loop = wait->loop;
        pool_grant(pool, wait, granted);
    }
    return 0;
}

/* Gives servers to requests that wait, in their order: to those that are held, or to the others. Under the lock. */
static void serve_waits(struct pool *pool, bool is_held, struct serving *serving)
{
    struct mk_list *before = &pool->queues; /* up to which none can be served */
    while (before->next != &pool->queues) {
        struct mk_upstream_queue *queue = MK_CONTAINER_OF(before->next, struct mk_upstream_queue, node);
        if (queue->is_held != is_held || serve_first(queue, serving) < 0)
            before = before->next;
    }
}

/* Returns whether the request has `*ret` now. */
static bool serve_with(struct mk_upstream_wait *wait, uint64_t now, struct mk_upstream_server **ret)
{
    struct serving serving = {.self = wait, .now = now};
    serve_waits(wait->group->pool, false, &serving);
    if (serving.own)
        *ret = serving.own;
    return serving.own != NULL;
}

/*
 * Hold: the request waits until a server responds. Under the lock. Returns MK_AGAIN or -ENXIO; when Hold is over no
 * try is left in `tries`, since the failure is that of the group.
 */
static int begin_holding(struct mk_upstream_wait *wait, uint64_t now)
{
    const struct mk_upstream_group *group = wait->group;
    struct mk_upstream_tries *tries = wait->tries;
    bool is_allowed = !tries->n || (retry_allows(&group->conf->retry, tries) &&
                                    (!is_costly_retry(tries) || may_repeat(group, tries, now)));
    tries->hold_end_ms = tries->hold_end_ms ? tries->hold_end_ms : now + group->conf->hold_ms;
    if (!is_allowed || group->pool->n_waiting - group->pool->n_queued >= HELD_MAX)
        return -ENXIO;
    tries->n = 0;
    wait->is_held = true;
    return now < tries->hold_end_ms && pool_add(group->pool, wait) == 0 ? MK_AGAIN : -ENXIO;
}

static uint64_t get_end_ms(const struct mk_upstream_wait *wait)
{
    return wait->is_held ? wait->tries->hold_end_ms : wait->began_ms + wait->group->conf->queue_timeout_ms;
}

static void arm_timer(struct mk_upstream_wait *wait, uint64_t now)
{
    uint64_t end = get_end_ms(wait), left = end > now ? end - now : 0, tick = wait->is_held ? PROBE_MS : QUEUE_TICK_MS;
    mk_timer_arm(wait->loop, &wait->timer, (uint32_t)(left < tick ? left : tick));
}

/* Continues to wait in the queue. Under the lock, as the next. Returns 0, MK_AGAIN, -ETIMEDOUT or -ENXIO. */
static int continue_queueing(struct mk_upstream_wait *wait, uint64_t now, struct mk_upstream_server **ret)
{
    struct pool *pool = wait->group->pool;
    bool is_over = now >= get_end_ms(wait);
    bool is_due = now >= pool->served_ms + QUEUE_TICK_MS; /* one of those that wait looks for all */
    pool->served_ms = is_due ? now : pool->served_ms;
    if ((is_due || is_over) && serve_with(wait, now, ret))
        return 0;
    int err = wait->queue->err;
    if (err == -EBUSY && !is_over)
        return MK_AGAIN;
    pool_remove(pool, wait);
    return err == -EBUSY ? -ETIMEDOUT : begin_holding(wait, now); /* the others have no server, either */
}

/* Only the first request of a queue tries servers: when one responds, it is for the others, too. */
static int continue_holding(struct mk_upstream_wait *wait, uint64_t now, struct mk_upstream_server **ret)
{
    bool is_first = MK_LIST_FIRST(&wait->queue->waiting, struct mk_upstream_wait, node) == wait;
    bool is_over = now >= get_end_ms(wait), is_served = !is_over && is_first && probe_server(wait, now, ret);
    if (!is_served && !is_over)
        return MK_AGAIN;
    pool_remove(wait->group->pool, wait);
    return is_served ? 0 : -ENXIO;
}

static void on_timer(struct mk_timer *timer)
{
    struct mk_upstream_wait *wait = MK_CONTAINER_OF(timer, struct mk_upstream_wait, timer);
    struct pool *pool = wait->group->pool;
    struct mk_upstream_server *server = NULL;
    uint64_t now = mk_loop_now_ms(wait->loop);
    lock_take(&pool->lock);
    bool is_granted = wait->state != POOL_WAITING; /* the message is on its way */
    int r = is_granted      ? MK_AGAIN
            : wait->is_held ? continue_holding(wait, now, &server)
                            : continue_queueing(wait, now, &server);
    lock_release(&pool->lock);
    if (r != MK_AGAIN)
        deliver_server(wait, r, server);
    else if (!is_granted)
        arm_timer(wait, now);
}

static void init_wait(struct mk_upstream_wait *wait, const struct mk_upstream_group *group, struct mk_loop *loop,
                      const struct preference *preference, struct mk_upstream_tries *tries)
{
    wait->loop = loop;
    wait->group = group;
    wait->tries = tries;
    wait->began_ms = mk_loop_now_ms(loop);
    wait->has_key = preference->key != NULL;
    wait->key = preference->key ? *preference->key : 0;
    wait->is_costly = is_costly_retry(tries);
    wait->message.fn = on_granted;
    mk_list_init(&wait->node);
    mk_timer_init(&wait->timer, on_timer);
}

/* Returns how many requests queue for the same server, or for any. */
static uint32_t count_queued(struct pool *pool, const struct mk_upstream_wait *wait)
{
    uint32_t n_queued = 0;
    MK_LIST_EACH_ITEM(&pool->queues, const struct mk_upstream_queue, node, queue) {
        n_queued += !queue->is_held && queue->sticky == wait->sticky ? queue->n : 0;
    }
    return n_queued;
}

/* MaxConnections: the request waits for its turn. Under the lock. Returns MK_AGAIN, 0, -EBUSY or -ENOMEM. */
static int begin_queueing(struct mk_upstream_wait *wait, uint64_t now, struct mk_upstream_server **ret)
{
    struct pool *pool = wait->group->pool;
    wait->is_held = false;
    if (count_queued(pool, wait) >= wait->group->conf->queue)
        return -EBUSY;
    int err = pool_add(pool, wait);
    if (err < 0)
        return err;
    /* there may be room: of a request that has ended in between, or that those before this one do not want */
    return serve_with(wait, now, ret) ? 0 : MK_AGAIN;
}

static int choose_now(const struct mk_upstream_group *group, const struct criteria *criteria,
                      struct mk_upstream_tries *tries, struct mk_upstream_server **ret)
{
    uint64_t now = criteria->now_ms;
    bool is_costly = is_costly_retry(tries);
    if (tries->n && (!retry_allows(&group->conf->retry, tries) || !has_tries_left(group, tries, now)))
        return -ENXIO;
    if (group->conf->max_connections && group->pool->n_queued)
        serve_waits(group->pool, false, &(struct serving){.now = now}); /* what is left then is for this one */
    int err = pick_server(group, criteria, tries, ret);
    if (err == 0 && is_costly)
        retry_budget_note_retry(&group->pool->budget, now);
    return err;
}

static bool can_wait(const struct mk_upstream_tries *tries)
{
    return !tries->n || tries->failure == MK_UPSTREAM_NOT_REACHED || tries->failure == MK_UPSTREAM_SENT;
}

static int choose_or_queue(const struct preference *preference, struct mk_upstream_tries *tries,
                           struct mk_upstream_wait *wait, uint64_t now, struct mk_upstream_server **ret)
{
    const struct criteria criteria = {.tries = tries, .preference = preference, .now_ms = now};
    wait->sticky = preference->sticky ? (struct mk_upstream_server *)(uintptr_t)&preference->sticky->base : NULL;
    int err = choose_now(wait->group, &criteria, tries, ret);
    if (err != -EBUSY || !can_wait(tries))
        return err;
    err = begin_queueing(wait, now, ret);
    if (err == 0 && wait->is_costly)
        retry_budget_note_retry(&wait->group->pool->budget, now);
    return err;
}

/* Under the lock, if the group has MaxConnections. */
static int choose_or_wait(const struct preference *preference, struct mk_upstream_tries *tries,
                          struct mk_upstream_wait *wait, uint64_t now, struct mk_upstream_server **ret)
{
    const struct preference of_login = {.key = preference->key, .sticky = preference->login};
    int err = preference->login ? choose_or_queue(&of_login, tries, wait, now, ret) : -EBUSY;
    return err == -EBUSY ? choose_or_queue(preference, tries, wait, now, ret)
                         : err; /* another one is better than none */
}

int group_choose(const struct mk_upstream_group *group, struct mk_loop *loop, const struct preference *preference,
                 struct mk_upstream_tries *tries, struct mk_upstream_wait *wait, struct mk_upstream_server **ret)
{
    struct pool *pool = group->pool;
    uint64_t now = mk_loop_now_ms(loop);
    if (!tries->is_counted)
        retry_budget_note_request(&pool->budget, now);
    tries->is_counted = true;
    tries->n_sent += is_costly_retry(tries);
    init_wait(wait, group, loop, preference, tries);
    if (group->conf->max_connections)
        lock_take(&pool->lock);
    int r = choose_or_wait(preference, tries, wait, now, ret);
    if (group->conf->max_connections)
        lock_release(&pool->lock);
    if (r == -ENXIO && group->conf->hold_ms && can_wait(tries)) {
        lock_take(&pool->lock);
        r = begin_holding(wait, now);
        lock_release(&pool->lock);
    }
    wait->is_active = r == MK_AGAIN;
    if (wait->is_active)
        arm_timer(wait, now);
    else if (r < 0 && !tries->n) /* else the caller has a failure of a server */
        mk_counter_add(pool->counters[POOL_REFUSED], NULL, 1);
    return r;
}

void group_cancel(struct mk_upstream_wait *wait)
{
    struct mk_upstream_server *server = NULL;
    if (!wait->is_active)
        return;
    struct pool *pool = wait->group->pool;
    wait->is_active = false;
    lock_take(&pool->lock);
    if (wait->state == POOL_WAITING)
        pool_remove(pool, wait);
    else
        server = wait->server;
    wait->state = POOL_IDLE;
    lock_release(&pool->lock);
    mk_timer_cancel(&wait->timer);
    if (!server)
        return;
    bool is_well = server_is_well(server_of(server));
    mk_message_cancel(wait->loop, &wait->message);
    server_drop_load(server_of(server));
    group_note_room(pool, server_of(server), is_well, mk_loop_now_ms(wait->loop));
}

static void grant_slots(struct pool *pool, bool is_held, struct serving *serving)
{
    lock_take(&pool->lock);
    serve_waits(pool, is_held, serving);
    lock_release(&pool->lock);
}

const struct mk_loop *group_note_room(struct pool *pool, const struct server *server, bool is_well, uint64_t now_ms)
{
    struct serving serving = {.only = server, .now = now_ms};
    if (!atomic_load(&pool->n_waiting))
        return NULL;
    if (is_well)
        grant_slots(pool, true, &serving); /* they came before those that queue for it by now */
    grant_slots(pool, false, &serving);
    return serving.last_loop;
}

void group_note_response(struct server *server, uint64_t now_ms)
{
    if (!atomic_load_explicit(&server->pool->n_waiting, memory_order_relaxed))
        return;
    atomic_store(&server->has_responded, true);
    grant_slots(server->pool, true, &(struct serving){.only = server, .now = now_ms});
}

void group_note_up(struct server *server, uint64_t now_ms)
{
    group_note_room(server->pool, server, true, now_ms);
}

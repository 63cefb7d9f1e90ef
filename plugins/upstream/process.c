// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <monkey/plugin.h>

struct process upstream_process = {
    .names_lock = LOCK_INIT(LOCK_NAMES),
    .servers_lock = LOCK_INIT(LOCK_SERVERS),
    .pools_lock = LOCK_INIT(LOCK_POOLS),
    .admins_lock = LOCK_INIT(LOCK_ADMINS),
    .names = {&upstream_process.names, &upstream_process.names},
    .retired = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = &upstream_process.retired.first},
    .sticky = {.lock = LOCK_INIT(LOCK_STICKY)},
};

static _Thread_local uint32_t held; /* a bit for each level */

bool lock_order_enter(enum lock_level level)
{
    bool is_right = !(held >> level) && (level < LOCK_RUNNERS || !held);
    held |= (uint32_t)1 << level;
    return is_right;
}

bool lock_order_leave(enum lock_level level)
{
    bool is_held = held >> level & 1;
    held &= ~((uint32_t)1 << level);
    return is_held;
}

/* ── runners ── */

void runners_init(struct runners *all)
{
    lock_init(&all->lock, LOCK_RUNNERS);
    mk_list_init(&all->running);
}

void runners_release(struct runners *all)
{
    assert(mk_list_empty(&all->running));
    lock_destroy(&all->lock);
}

void runner_init(struct runner *runner)
{
    *runner = (struct runner){0};
    mk_list_init(&runner->node);
}

void runner_add(struct runner *runner, struct runner_user *user)
{
    struct runner_user **end = &runner->first;
    assert(!runner->worker);
    while (*end)
        end = &(*end)->next;
    *end = user;
    user->next = NULL;
}

/* In the opposite order. */
static void stop_users(struct runner_user *user)
{
    if (!user)
        return;
    stop_users(user->next);
    user->stop(user);
}

static void end_runner(struct runners *all, struct runner *runner)
{
    lock_take(&all->lock);
    mk_list_del(&runner->node);
    lock_release(&all->lock);
    stop_users(runner->first);
    runner->worker = NULL;
}

/* Returns the runner in the thread of a loop; NULL: there is none. */
static struct runner *find_runner(struct runners *all, const struct mk_loop *loop)
{
    struct runner *found = NULL;
    lock_take(&all->lock);
    MK_LIST_EACH_ITEM(&all->running, struct runner, node, runner) {
        if (mk_worker_loop(runner->worker) == loop)
            found = runner;
    }
    lock_release(&all->lock);
    return found;
}

void runner_start(struct runners *all, struct runner *runner, struct mk_worker *worker)
{
    if (mk_worker_index(worker) != 0)
        return;
    struct runner *before = find_runner(all, mk_worker_loop(worker));
    if (before)
        end_runner(all, before);
    assert(!runner->worker);
    runner->worker = worker;
    lock_take(&all->lock);
    mk_list_add(&all->running, &runner->node);
    lock_release(&all->lock);
    for (struct runner_user *user = runner->first; user; user = user->next)
        user->start(user, worker);
}

void runner_stop(struct runners *all, struct runner *runner, const struct mk_worker *worker)
{
    if (mk_worker_index(worker) == 0 && runner->worker == worker)
        end_runner(all, runner);
}

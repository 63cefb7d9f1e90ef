// SPDX-License-Identifier: Apache-2.0
/*
 * Starts and stops what runs once for all workers (runner.h).
 */
#include "runner.h"

#include <assert.h>

void runners_init(struct runners *all)
{
    pthread_mutex_init(&all->lock, NULL);
    mk_list_init(&all->running);
}

void runners_release(struct runners *all)
{
    assert(mk_list_empty(&all->running));
    pthread_mutex_destroy(&all->lock);
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
    pthread_mutex_lock(&all->lock);
    mk_list_del(&runner->node);
    pthread_mutex_unlock(&all->lock);
    stop_users(runner->first);
    runner->worker = NULL;
}

/* Returns the runner in the thread of a loop; NULL: there is none. */
static struct runner *find_runner(struct runners *all, const struct mk_loop *loop)
{
    struct runner *found = NULL;
    pthread_mutex_lock(&all->lock);
    MK_LIST_EACH_ITEM(&all->running, struct runner, node, runner) {
        if (mk_worker_loop(runner->worker) == loop)
            found = runner;
    }
    pthread_mutex_unlock(&all->lock);
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
    pthread_mutex_lock(&all->lock);
    mk_list_add(&all->running, &runner->node);
    pthread_mutex_unlock(&all->lock);
    for (struct runner_user *user = runner->first; user; user = user->next)
        user->start(user, worker);
}

void runner_stop(struct runners *all, struct runner *runner, const struct mk_worker *worker)
{
    if (mk_worker_index(worker) == 0 && runner->worker == worker)
        end_runner(all, runner);
}

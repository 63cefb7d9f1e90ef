// SPDX-License-Identifier: Apache-2.0
#include "checks.h"

#include <monkey/kit/target.h>

#include <assert.h>
#include <errno.h>

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

enum { UPDATE_MS = 1000 };

/* ── the servers of a group ── */

static struct check *find_check(const struct check_group *g, const struct server *server)
{
    struct check *check = g->first;
    while (check && check->server != server)
        check = check->next;
    return check;
}

/* Ends the checks of servers that the group has no more. */
static void drop_checks(struct check_group *g)
{
    for (struct check **at = &g->first; *at;) {
        struct check *check = *at;
        if (group_find_member(g->group, &check->server->base)) {
            at = &check->next;
            continue;
        }
        *at = check->next;
        check_stop(check);
        check_free(check);
    }
}

/* Makes checks of servers that have none, also of those that get no requests: a reload may change that. */
static int make_checks(struct check_group *g)
{
    const struct members *members = group_members(g->group);
    int err = 0;
    for (unsigned i = members->n; i-- > 0 && err == 0;) {
        struct server *server = members->items[i].server;
        struct check *check;
        if (find_check(g, server))
            continue;
        err = check_make(g->conf, &g->client, server, &check);
        if (err < 0)
            break;
        check->next = g->first;
        g->first = check;
    }
    return err;
}

/*
 * Makes the checks those of the servers that the group has now. Returns 0 or -ENOMEM: some servers have none. Under the
 * lock of names the list of servers stays.
 */
static int update_checks(struct check_group *g)
{
    names_lock();
    g->version = atomic_load(&g->group->version);
    drop_checks(g);
    int err = make_checks(g);
    g->version -= err < 0; /* another try */
    names_unlock();
    return err;
}

/* ── running ── */

/* A server that was checked, and is not under this configuration, may get requests. */
static void end_checks(struct server *server, struct mk_worker *worker)
{
    uint64_t now = mk_loop_now_ms(mk_worker_loop(worker));
    bool was_down = server_is_down(server);
    server_end_checks(server, worker, now);
    if (was_down)
        group_note_up(server, now);
}

/* The list is valid until the turn of the loop ends. */
static void end_group(struct check_group *g, struct mk_worker *worker)
{
    const struct members *members = group_members(g->group);
    for (unsigned i = 0; i < members->n; i++)
        end_checks(members->items[i].server, worker);
}

static void update_group(struct check_group *g, struct mk_worker *worker)
{
    if (update_checks(g) < 0)
        mk_log_error("upstream %.*s: there is no memory to check all servers", MK_STR_ARG(g->group->conf->name));
    for (struct check *check = g->first; check; check = check->next)
        if (!check->worker)
            check_start(check, worker);
}

static void on_timer(struct mk_timer *timer)
{
    struct checks *checks = MK_CONTAINER_OF(timer, struct checks, timer);
    for (struct check_group *g = checks->first; g; g = g->next)
        if (check_conf_is_on(g->conf) && g->version != atomic_load(&g->group->version))
            update_group(g, checks->worker);
    mk_timer_arm(mk_worker_loop(checks->worker), &checks->timer, UPDATE_MS);
}

static void start_checks(struct runner_user *user, struct mk_worker *worker)
{
    struct checks *checks = MK_CONTAINER_OF(user, struct checks, user);
    checks->worker = worker;
    mk_timer_arm(mk_worker_loop(worker), &checks->timer, UPDATE_MS);
    for (struct check_group *g = checks->first; g; g = g->next)
        if (check_conf_is_on(g->conf))
            update_group(g, worker);
        else
            end_group(g, worker);
}

static void stop_checks(struct runner_user *user)
{
    struct checks *checks = MK_CONTAINER_OF(user, struct checks, user);
    mk_timer_cancel(&checks->timer);
    for (struct check_group *g = checks->first; g; g = g->next)
        for (struct check *check = g->first; check; check = check->next)
            check_stop(check);
}

/* ── making ── */

void checks_init(struct checks *checks)
{
    *checks = (struct checks){.user = {.start = start_checks, .stop = stop_checks}};
    mk_timer_init(&checks->timer, on_timer);
}

int checks_add(struct checks *checks, const struct mk_upstream_group *group, const struct check_conf *conf)
{
    struct check_group *g = mk_account_alloc(NULL, sizeof(*g));
    if (!g)
        return -ENOMEM;
    *g = (struct check_group){.next = checks->first, .group = group, .conf = conf};
    checks->first = g;
    return 0;
}

/* ── opening ── */

static int open_tls(struct check_group *g, struct mk_host *host)
{
    const struct check_conf *conf = g->conf;
    size_t is_tls = offsetof(struct check_conf, is_tls);
    const struct mk_target_tls_keys keys = {
        .name = is_tls,
        .server_name = conf->tls_name.len ? offsetof(struct check_conf, tls_name) : is_tls,
        .ca = offsetof(struct check_conf, tls_ca),
    };
    const struct mk_transport_client_conf settings = {
        .server_name = conf->tls_name.len ? conf->tls_name : g->group->conf->name,
        .ca_file = conf->tls_ca,
        .skip_verify = !conf->tls_verify,
    };
    return mk_target_open_tls(host, conf, &keys, &settings, &g->client.transport, &g->client.settings);
}

/* Finds servers without a port that CheckPort could take the place of. Returns 0 or -EINVAL. */
static int check_ports(const struct check_group *g, struct mk_host *host)
{
    const struct server_lines *lines = &g->group->conf->servers;
    int err = 0;
    for (uint32_t i = 0; i < lines->n && g->conf->port; i++) {
        if (lines->items[i].target->port || lines->items[i].is_srv)
            continue;
        mk_host_error(host, g->conf, offsetof(struct check_conf, port), 0,
                      "%.*s has no port that another one could take the place of", MK_STR_ARG(lines->items[i].name));
        err = -EINVAL;
    }
    return err;
}

static int open_group(struct check_group *g, struct mk_host *host)
{
    if (!check_conf_is_on(g->conf))
        return 0;
    int err = check_ports(g, host), opened = check_conf_has_tls(g->conf) ? open_tls(g, host) : 0;
    if (err == 0)
        err = opened;
    return err == 0 ? update_checks(g) : err;
}

int checks_open(struct checks *checks, struct mk_host *host)
{
    int err = 0;
    if (checks->is_open)
        return 0;
    checks->is_open = true;
    for (struct check_group *g = checks->first; g && err != -ENOMEM; g = g->next) {
        int r = open_group(g, host);
        err = r < 0 ? r : err;
    }
    return err;
}

void checks_free(struct checks *checks)
{
    while (checks->first) {
        struct check_group *g = checks->first;
        checks->first = g->next;
        while (g->first) {
            struct check *check = g->first;
            g->first = check->next;
            check_free(check);
        }
        if (g->client.transport)
            g->client.transport->client_close(g->client.settings);
        mk_account_free(NULL, g, sizeof(*g));
    }
}

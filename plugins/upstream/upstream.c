// SPDX-License-Identifier: Apache-2.0
/*
 * upstream: groups of servers with one name, to which other plugins pass requests (<monkey/upstreams.h>). This file has
 * the hooks.
 */
#include "checks.h"

#include <monkey/base/time.h>
#include <monkey/hooks.h>
#include <monkey/kit/cookie.h>
#include <monkey/kit/target.h>

#include <errno.h>
#include <time.h>

extern const struct mk_plugin mk_plugin_upstream;

/* The groups of a generation, and what runs once for them. */
struct generation {
    struct mk_upstream_group *first;
    struct names names;
    struct runner runner;
    struct runner_user names_user;
    struct checks checks;
    bool is_reload; /* there was one before */
};

enum {
    FIRST_LOOKUP_MS = 2000, /* of all names of a configuration that are new */
    PLACE_BYTES_MAX = 8192,
    GONE_PAUSES = 50,
    GONE_PAUSE_NS = 200 * 1000,
};

/* ── for other plugins ── */

const struct mk_upstream_group *groups_first(const struct mk_generation *g)
{
    const struct generation *own = mk_generation_state(g, &mk_plugin_upstream);
    return own->first;
}

static const struct mk_upstream_group *find_group(const struct mk_generation *g, struct mk_str name)
{
    for (const struct mk_upstream_group *group = groups_first(g); group; group = group->next)
        if (mk_str_ieq(group->conf->name, name))
            return group;
    return NULL;
}

static struct mk_str get_group_name(const struct mk_generation *g, unsigned n)
{
    const struct mk_upstream_group *group = groups_first(g);
    while (group && n--)
        group = group->next;
    return group ? group->conf->name : MK_STR("");
}

static struct mk_str get_server_name(const struct mk_upstream_group *group, unsigned n)
{
    return n < group->conf->servers.n ? group->conf->servers.items[n].name : MK_STR("");
}

/* What the request has to say about its server. */
static void read_preference(const struct mk_upstream_group *group, struct mk_request *req, uint64_t *key,
                            struct preference *ret)
{
    const struct upstream_conf *conf = group->conf;
    *ret = (struct preference){0};
    if (conf->balance == UPSTREAM_HASH && hash_by_get(&conf->hash_by, req, key))
        ret->key = key;
    if (conf->balance == UPSTREAM_STICKY)
        ret->sticky = group_find_sticky(group, mk_request_cookie(req, conf->sticky_cookie.name));
}

static int choose_server(const struct mk_upstream_group *group, struct mk_request *req, struct mk_upstream_tries *tries,
                         struct mk_upstream_wait *wait, mk_upstream_wait_fn fn, struct mk_upstream_server **ret)
{
    uint64_t key;
    struct preference preference;
    read_preference(group, req, &key, &preference);
    preference.login = wait->sticky ? server_of(wait->sticky) : NULL;
    wait->req = req;
    wait->fn = fn;
    int r = group_choose(group, mk_request_loop(req), &preference, tries, wait, ret);
    if (r == 0)
        server_note_begin(server_of(*ret), mk_request_worker(req));
    return r;
}

static const struct mk_loop *end_request(struct mk_upstream_server *server, const struct mk_worker *worker)
{
    struct pool *pool = server_of(server)->pool;
    bool is_well = atomic_load(&pool->n_waiting) && server_take_response(server_of(server));
    server_end(server_of(server), worker);
    return group_note_room(pool, server_of(server), is_well, mk_time_monotonic_ms());
}

static void report_outcome(const struct mk_upstream_group *group, struct mk_upstream_server *server,
                           struct mk_worker *worker, const struct mk_upstream_outcome *outcome)
{
    uint64_t now = mk_loop_now_ms(mk_worker_loop(worker));
    const struct upstream_conf *conf = group->conf;
    if (eject_is_failure(&conf->eject_on, conf->eject_slower_ms, outcome))
        server_note_failure(server_of(server), conf, outcome, worker, now);
    else if (!outcome->err)
        server_note_response(server_of(server), worker);
    if (!outcome->err)
        group_note_response(server_of(server), now);
}

/* Names the server in a cookie, unless the client has that. */
static void add_headers(const struct mk_upstream_group *group, const struct mk_upstream_server *server,
                        struct mk_request *req)
{
    struct mk_cookie cookie = group->conf->sticky_cookie;
    const struct member *m = group->conf->balance == UPSTREAM_STICKY ? group_find_member(group, server) : NULL;
    if (!m || sticky_is_token(m->token, mk_request_cookie(req, cookie.name)))
        return;
    cookie.value = mk_str(m->token, sizeof(m->token));
    cookie.secure |= mk_str_eq(mk_request_scheme(req), MK_STR("https"));
    mk_response_cookie(req, &cookie); /* without memory the next response has it */
}

static const struct mk_upstreams upstreams = {
    .find = find_group,
    .group_name = get_group_name,
    .server_name = get_server_name,
    .choose = choose_server,
    .cancel = group_cancel,
    .end = end_request,
    .report = report_outcome,
    .add_headers = add_headers,
    .explain = explain_failure,
};

/* ── the process ── */

static int start_process(void **ret_state)
{
    if (lookups_init() < 0)
        return -ENOMEM;
    runners_init(&upstream_process.runners);
    mk_epoch_queue_init(servers_retired());
    *ret_state = &upstream_process;
    return 0;
}

static void stop_process(void *state)
{
    struct process *process = state;
    runners_release(&process->runners);
    mk_epoch_queue_release(servers_retired());
    lookups_release();
}

/* ── generations ── */

static void start_names(struct runner_user *user, struct mk_worker *worker)
{
    names_start(&MK_CONTAINER_OF(user, struct generation, names_user)->names, mk_worker_loop(worker));
}

static void stop_names(struct runner_user *user)
{
    names_stop(&MK_CONTAINER_OF(user, struct generation, names_user)->names);
}

/*
 * Frees the servers that have gone, with their counters. A loop that is in a turn delays that until another one goes,
 * which may be never: turns are short, so that they are waited for.
 */
static void free_gone_servers(void)
{
    const struct timespec pause = {.tv_nsec = GONE_PAUSE_NS};
    for (unsigned i = 0; i < GONE_PAUSES && mk_epoch_reclaim(servers_retired()); i++)
        nanosleep(&pause, NULL);
}

static void stop_generation(struct mk_generation *g, void *state)
{
    struct generation *own = state;
    (void)g;
    checks_free(&own->checks);
    while (own->first) {
        struct mk_upstream_group *group = own->first;
        own->first = group->next;
        group_free(group);
    }
    mk_account_free(NULL, own, sizeof(*own));
    upstream_process.generations--;
    free_gone_servers();
}

static int add_group(struct generation *own, const struct upstream_conf *conf, const struct check_conf *check)
{
    struct mk_upstream_group *group = group_make(conf, &own->names), **end = &own->first;
    if (!group)
        return -ENOMEM;
    while (*end)
        end = &(*end)->next;
    *end = group;
    return checks_add(&own->checks, group, check);
}

static int make_groups(const struct mk_generation *g, struct generation *own)
{
    const struct mk_conf_section *section = &upstream_sections[UPSTREAM_SECTION],
                                 *checks = &upstream_sections[CHECK_SECTION];
    const struct upstream_conf *conf = mk_generation_conf(g, section);
    const struct check_conf *check = mk_generation_conf(g, checks);
    int err = 0;
    while (conf && err == 0) {
        err = add_group(own, conf, check);
        conf = mk_generation_conf_next(g, section, conf);
        check = mk_generation_conf_next(g, checks, check);
    }
    return err;
}

static int start_generation(struct mk_generation *g, void **ret_state)
{
    struct generation *own = mk_account_alloc(NULL, sizeof(*own));
    if (!own)
        return -ENOMEM;
    *own = (struct generation){.is_reload = upstream_process.generations > 0};
    names_init(&own->names);
    runner_init(&own->runner);
    own->names_user = (struct runner_user){.start = start_names, .stop = stop_names};
    runner_add(&own->runner, &own->names_user);
    checks_init(&own->checks);
    runner_add(&own->runner, &own->checks.user);
    upstream_process.generations++;
    int err = make_groups(g, own);
    if (err == 0)
        names_resolve(&own->names, FIRST_LOOKUP_MS);
    if (err < 0)
        stop_generation(g, own);
    else
        *ret_state = own;
    return err;
}

/* Checks need files of TLS. */
static int start_host(struct mk_host *host, void **ret_state)
{
    struct generation *own = mk_generation_state(mk_host_generation(host), &mk_plugin_upstream);
    (void)ret_state;
    return checks_open(&own->checks, host);
}

static void log_own_key(struct mk_generation *g, const struct mk_upstream_group *group)
{
    struct mk_buf place;
    mk_buf_init(&place, PLACE_BYTES_MAX);
    mk_host_conf_origin(mk_generation_first_host(g), group->conf, &place);
    mk_log_info("upstream %.*s: %s: there is no StickySecret: a secret was made, which lasts until the server ends; "
                "other servers do not know it, and other groups without one have the same",
                MK_STR_ARG(group->conf->name), mk_buf_cstr(&place));
    mk_buf_release(&place);
}

/* Makes the values of the cookies. Returns 0, -EINVAL or another -errno. */
static int prepare_sticky(struct mk_generation *g, struct mk_upstream_group *group)
{
    uint64_t key[2];
    const struct upstream_conf *conf = group->conf;
    if (conf->balance != UPSTREAM_STICKY)
        return 0;
    int err = conf->sticky_secret.len ? sticky_read_key(conf->sticky_secret.p, key) : sticky_get_own_key(key);
    if (err >= 0)
        group_make_tokens(group, key);
    if (err > 0)
        log_own_key(g, group);
    if (err >= 0 || !conf->sticky_secret.len)
        return err < 0 ? err : 0;
    mk_host_error(mk_generation_first_host(g), conf, offsetof(struct upstream_conf, sticky_secret), 0,
                  err == -EINVAL ? "\"%.*s\" must have from 16 bytes to 4 KB" : "\"%.*s\" cannot be read",
                  MK_STR_ARG(conf->sticky_secret));
    return -EINVAL;
}

static void warn_of_name(struct mk_generation *g, const struct mk_upstream_group *group, unsigned line)
{
    const struct server_line *own = &group->conf->servers.items[line];
    const char *why = names_get_failure(&group->watches[line]);
    unsigned n = 0;
    if (why)
        names_get(&group->watches[line], &n);
    if (why && !n)
        mk_host_warn(mk_generation_first_host(g), group->conf, offsetof(struct upstream_conf, servers), line,
                     "%.*s has no address now (%s); %s", MK_STR_ARG(own->target->host), why,
                     own->is_srv ? "it has no servers until it does"
                                 : "it is looked up for each connection until it does");
}

static void warn_of_names(struct mk_generation *g, const struct generation *own)
{
    names_lock();
    for (const struct mk_upstream_group *group = own->first; group; group = group->next)
        for (unsigned i = 0; i < group->conf->servers.n; i++)
            warn_of_name(g, group, i);
    names_unlock();
}

/* Servers that cannot serve as things are. */
static void check_servers(struct mk_generation *g, const struct generation *own)
{
    for (const struct mk_upstream_group *group = own->first; group; group = group->next)
        for (unsigned i = 0; i < group->conf->servers.n; i++)
            if (!group->conf->servers.items[i].is_srv)
                mk_target_check(mk_generation_first_host(g), group->conf, offsetof(struct upstream_conf, servers), i,
                                group->conf->servers.items[i].target);
}

/* Finds groups of one name. Returns 0 or -EINVAL. */
static int check_names(struct mk_generation *g, const struct generation *own)
{
    int err = 0;
    for (const struct mk_upstream_group *a = own->first; a; a = a->next)
        for (const struct mk_upstream_group *b = a->next; b; b = b->next) {
            if (!mk_str_ieq(a->conf->name, b->conf->name))
                continue;
            mk_host_error(mk_generation_first_host(g), b->conf, offsetof(struct upstream_conf, name), 0,
                          "there is a group %.*s already: give this one another name, or its servers to the other",
                          MK_STR_ARG(b->conf->name));
            err = -EINVAL;
        }
    return err;
}

/* A browser keeps one cookie of a name and path: that of the group that has responded last. */
static void warn_of_cookies(struct mk_generation *g, const struct generation *own)
{
    for (const struct mk_upstream_group *a = own->first; a; a = a->next)
        for (const struct mk_upstream_group *b = a->next; b; b = b->next) {
            const struct mk_cookie *one = &a->conf->sticky_cookie, *other = &b->conf->sticky_cookie;
            if (a->conf->balance == UPSTREAM_STICKY && b->conf->balance == UPSTREAM_STICKY &&
                mk_str_eq(one->name, other->name) && mk_str_eq(one->path, other->path))
                mk_host_warn(mk_generation_first_host(g), b->conf, offsetof(struct upstream_conf, sticky_cookie), 0,
                             "the group %.*s has a cookie of the same name: on one site they need different ones",
                             MK_STR_ARG(a->conf->name));
        }
}

static int check_generation(struct mk_generation *g, void *state)
{
    const struct generation *own = state;
    int err = check_names(g, own);
    warn_of_cookies(g, own);
    warn_of_names(g, own);
    check_servers(g, own);
    for (struct mk_upstream_group *group = own->first; group; group = group->next) {
        int r = prepare_sticky(g, group);
        err = r < 0 ? r : err;
    }
    return err;
}

/* ── workers ── */

/* What other threads replace is freed when no loop can see it. */
static int start_worker(struct mk_worker *worker, void **ret_state)
{
    const struct generation *own = mk_generation_state(mk_worker_generation(worker), &mk_plugin_upstream);
    (void)ret_state;
    if (!mk_list_empty(&own->names.watches))
        mk_epoch_join(mk_worker_loop(worker));
    return 0;
}

/* The lines of this configuration hold from now on. */
static void configure_lines(const struct generation *own)
{
    for (struct mk_upstream_group *group = own->first; group; group = group->next) {
        for (unsigned i = 0; i < group->conf->servers.n; i++) {
            const struct server_line *line = &group->conf->servers.items[i];
            admin_configure(group->admins[i], server_line_state(line), line->weight, own->is_reload);
        }
        group_make_current(group);
    }
    admin_end_configuring();
}

static void serve_worker(struct mk_worker *worker, void *state)
{
    const struct mk_generation *g = mk_worker_generation(worker);
    struct process *process = mk_generation_plugin_state(g, &mk_plugin_upstream);
    struct generation *own = mk_generation_state(g, &mk_plugin_upstream);
    (void)state;
    if (mk_worker_index(worker) == 0)
        configure_lines(own);
    runner_start(&process->runners, &own->runner, worker);
}

static void end_worker(struct mk_worker *worker, void *state)
{
    const struct mk_generation *g = mk_worker_generation(worker);
    struct process *process = mk_generation_plugin_state(g, &mk_plugin_upstream);
    struct generation *own = mk_generation_state(g, &mk_plugin_upstream);
    (void)state;
    runner_stop(&process->runners, &own->runner, worker);
}

static const struct mk_plugin_need needs[] = {{"tls", "CheckTls", "On"}, {0}};

static const struct mk_inspect_hooks inspect_hooks = {.commands = upstream_commands};

static const struct mk_plugin_interfaces interfaces = {
    .needs = needs,
    .upstreams = &upstreams,
};

MK_PLUGIN(upstream) = {
    MK_PLUGIN_HEAD("upstream", "2.0.0", "knows groups of servers"),
    .flags = MK_PLUGIN_STATE_NEEDED,
    .sections = upstream_sections,
    .start = start_process,
    .stop = stop_process,
    .generation_start = start_generation,
    .generation_stop = stop_generation,
    .host_start = start_host,
    .generation_check = check_generation,
    .worker_start = start_worker,
    .worker_stop = end_worker,
    .worker_serve = serve_worker,
    .worker_retire = end_worker,
    .inspection = &inspect_hooks,
    .interfaces = &interfaces,
};

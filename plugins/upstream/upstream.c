// SPDX-License-Identifier: Apache-2.0
/*
 * upstream: groups of servers with one name, to which other plugins pass requests (<monkey/upstreams.h>). This file has
 * the hooks.
 */
#include "groups.h"

#include <errno.h>

extern const struct mk_plugin mk_plugin_upstream;

/* The groups of a generation. */
struct generation {
    struct mk_upstream_group *first;
};

static unsigned generations; /* in the hooks of the configuration */

/* ── for other plugins ── */

static const struct mk_upstream_group *find(const struct mk_generation *g, struct mk_str name)
{
    const struct generation *own = mk_generation_state(g, &mk_plugin_upstream);
    for (const struct mk_upstream_group *group = own->first; group; group = group->next)
        if (mk_str_ieq(group->conf->name, name))
            return group;
    return NULL;
}

static uint64_t get_now(struct mk_worker *worker)
{
    return mk_loop_now_ms(mk_worker_loop(worker));
}

static struct mk_upstream_server *choose(const struct mk_upstream_group *group, struct mk_request *req,
                                         struct mk_upstream_tries *tries)
{
    uint64_t key;
    bool has_key = group->conf->balance == UPSTREAM_HASH && hash_by_get(&group->conf->hash_by, req, &key);
    return group_choose(group, get_now(mk_request_worker(req)), has_key ? &key : NULL, tries);
}

static void begin(struct mk_upstream_server *server, const struct mk_worker *worker)
{
    server_begin(server_of(server), worker);
}

static void end(struct mk_upstream_server *server, const struct mk_worker *worker)
{
    server_end(server_of(server), worker);
}

static void report(const struct mk_upstream_group *group, struct mk_upstream_server *server, struct mk_worker *worker,
                   enum mk_upstream_result result)
{
    if (result == MK_UPSTREAM_RESPONDED)
        server_note_response(server_of(server));
    else
        server_note_failure(server_of(server), group->conf, worker, get_now(worker));
}

static const struct mk_upstreams upstreams = {
    .find = find,
    .choose = choose,
    .begin = begin,
    .end = end,
    .report = report,
};

/* ── hooks ── */

static void stop_generation(struct mk_generation *g, void *state)
{
    struct generation *own = state;
    (void)g;
    while (own->first) {
        struct mk_upstream_group *group = own->first;
        own->first = group->next;
        group_free(group);
    }
    mk_account_free(NULL, own, sizeof(*own));
    if (--generations > 0)
        servers_hide_unused();
}

static int start_generation(struct mk_generation *g, void **ret_state)
{
    struct generation *own = mk_account_alloc(NULL, sizeof(*own));
    if (!own)
        return -ENOMEM;
    *own = (struct generation){0};
    generations++;
    for (const struct upstream_conf *conf = mk_generation_conf(g, upstream_sections); conf;
         conf = mk_generation_conf_next(g, upstream_sections, conf)) {
        struct mk_upstream_group *group = group_make(conf);
        if (!group) {
            stop_generation(g, own);
            return -ENOMEM;
        }
        group->next = own->first;
        own->first = group;
    }
    *ret_state = own;
    return 0;
}

/* Two groups of one name. */
static int check_generation(struct mk_generation *g, void *state)
{
    const struct generation *own = state;
    int err = 0;
    for (const struct mk_upstream_group *a = own->first; a; a = a->next)
        for (const struct mk_upstream_group *b = a->next; b; b = b->next) {
            if (!mk_str_ieq(a->conf->name, b->conf->name))
                continue;
            mk_host_error(mk_generation_first_host(g), a->conf, offsetof(struct upstream_conf, name), 0,
                          "there is a group %.*s already", MK_STR_ARG(a->conf->name));
            err = -EINVAL;
        }
    return err;
}

/* A former process may have left counters. */
static void serve_worker(struct mk_worker *worker, void *state)
{
    (void)state;
    if (mk_worker_index(worker) == 0)
        servers_hide_unused();
}

MK_PLUGIN(upstream) = {
    MK_PLUGIN_HEAD("upstream", "2.0.0", "knows groups of servers"),
    .flags = MK_PLUGIN_STATE_NEEDED,
    .sections = upstream_sections,
    .generation_start = start_generation,
    .generation_stop = stop_generation,
    .generation_check = check_generation,
    .worker_serve = serve_worker,
    .upstreams = &upstreams,
};

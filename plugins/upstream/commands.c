// SPDX-License-Identifier: Apache-2.0
/*
 * Commands of `monkey shell`: they list groups with their servers, and set the state and the weight of a server.
 */
#include "groups.h"

#include <monkey/counters.h>
#include <monkey/kit/json.h>
#include <monkey/log.h>

enum { ARG_BYTES_MAX = 128 }; /* of an argument, in a sentence */

static const struct mk_upstream_group *get_groups(const struct mk_command_call *call)
{
    return groups_first(mk_worker_generation(call->worker));
}

static const struct mk_upstream_group *find_group(const struct mk_command_call *call, struct mk_str name)
{
    const struct mk_upstream_group *group = get_groups(call);
    while (group && !mk_str_ieq(group->conf->name, name))
        group = group->next;
    return group;
}

/* Returns the first server of a line, after which are those of its other addresses; `*ret_n`: their number. */
static const struct member *find_line(const struct mk_upstream_group *group, struct mk_str name, unsigned *ret_n)
{
    const struct members *members = group_members(group);
    const struct member *found = NULL;
    *ret_n = 0;
    for (unsigned i = 0; i < members->n; i++) {
        const struct member *m = &members->items[i];
        if (!mk_str_ieq(m->line->name, name))
            continue;
        found = found ? found : m;
        ++*ret_n;
    }
    return found;
}

static int refuse_group(struct mk_command_call *call)
{
    return mk_command_refuse(call, "there is no group %.*s; upstreams lists them",
                             MK_STR_ARG(mk_str_truncate(call->args[0], ARG_BYTES_MAX)));
}

/* ── rows ── */

static uint64_t get_now(const struct mk_command_call *call)
{
    return mk_loop_now_ms(mk_worker_loop(call->worker));
}

static void add_state(struct mk_buf *row, const struct member *m, uint64_t now_ms)
{
    enum admin_state state = member_state(m);
    uint64_t until = atomic_load(&m->server->ejected_until);
    bool is_ejected = until > now_ms;
    mk_json_cstr(row, "state",
                 state != ADMIN_UP           ? admin_state_names[state]
                 : server_is_down(m->server) ? "unhealthy"
                 : is_ejected                ? "ejected"
                                             : admin_state_names[ADMIN_UP]);
    if (is_ejected)
        mk_json_number(row, "ejected_s", (int64_t)((until - now_ms + 999) / 1000));
    mk_json_number(row, "weight", member_weight(m));
}

/* What of the state is the configuration's, and what the shell's. */
static void add_origins(struct mk_buf *row, const struct member *m)
{
    const struct admin *set = m->server->admin;
    uint32_t state = atomic_load(&set->state), weight_plus = atomic_load(&set->weight_plus);
    mk_json_cstr(row, "conf_state", admin_state_names[member_line_state(m)]);
    mk_json_number(row, "conf_weight", m->line->weight);
    mk_json_bool(row, "backup", m->line->is_backup);
    if (state != ADMIN_UNSET)
        mk_json_cstr(row, "shell_state", admin_state_names[state]);
    if (weight_plus)
        mk_json_number(row, "shell_weight", weight_plus - 1);
}

static void add_counts(struct mk_buf *row, const struct server *server)
{
    mk_json_number(row, "active", atomic_load(&server->load));
    mk_json_number(row, "requests", mk_counter_read(server->counters[SERVER_REQUESTS]));
    mk_json_number(row, "failures", mk_counter_read(server->counters[SERVER_FAILURES]));
    mk_json_number(row, "ejections", mk_counter_read(server->counters[SERVER_EJECTIONS]));
}

static void show_member(struct mk_command_call *call, const struct mk_upstream_group *group, const struct member *m)
{
    struct mk_buf *row = mk_command_begin_row(call);
    mk_json_str(row, "group", group->conf->name);
    mk_json_str(row, "server", m->line->name);
    if (!mk_str_eq(m->server->base.address, m->line->name))
        mk_json_str(row, "address", m->server->base.address);
    add_state(row, m, get_now(call));
    add_counts(row, m->server);
    add_origins(row, m);
    mk_command_end_row(call);
}

static void show_group(struct mk_command_call *call, const struct mk_upstream_group *group)
{
    const struct members *members = group_members(group);
    for (unsigned i = 0; i < members->n; i++)
        show_member(call, group, &members->items[i]);
}

/* ── upstreams ── */

/* call->at: how many groups have been shown. */
static int show_all(struct mk_command_call *call)
{
    const struct mk_upstream_group *group = get_groups(call);
    for (uint64_t i = 0; i < call->at && group; i++)
        group = group->next;
    for (; group; group = group->next) {
        if (!mk_command_has_room(call))
            return MK_AGAIN;
        show_group(call, group);
        call->at++;
    }
    return 0;
}

static int list_upstreams(struct mk_command_call *call)
{
    if (!call->n_args)
        return show_all(call);
    const struct mk_upstream_group *group = find_group(call, call->args[0]);
    if (!group)
        return refuse_group(call);
    show_group(call, group);
    return 0;
}

static void offer_groups(struct mk_command_call *call)
{
    for (const struct mk_upstream_group *group = get_groups(call); group; group = group->next)
        mk_command_offer(call, group->conf->name);
}

/* ── upstream ── */

static int refuse_action(struct mk_command_call *call)
{
    return mk_command_refuse(call, "behind the server is expected: up, drain, down, weight N or reset");
}

/* What the operator says holds from now on: an ejection ends. `m`: the first one of `n` of a line. */
static int set_state(struct mk_command_call *call, const struct member *m, unsigned n, enum admin_state state)
{
    struct server *server = m->server;
    bool was_ejected = false;
    if (call->n_args > 3)
        return refuse_action(call);
    for (unsigned i = 0; i < n; i++)
        was_ejected |= server_readmit(m[i].server);
    admin_set_state(server->admin, state);
    mk_log_info("upstream %.*s: the shell (%s) has set %.*s to %s%s", MK_STR_ARG(server->base.group), call->by,
                MK_STR_ARG(server->base.name), admin_state_names[state],
                was_ejected ? ", which ends its ejection" : "");
    return 0;
}

static int set_weight(struct mk_command_call *call, struct server *server)
{
    uint64_t weight;
    if (call->n_args < 4 || !mk_str_u64(call->args[3], UPSTREAM_WEIGHT_MAX, &weight))
        return mk_command_refuse(call, "a weight is a number from 0 to %d", UPSTREAM_WEIGHT_MAX);
    atomic_store(&server->admin->weight_plus, (uint32_t)weight + 1);
    mk_log_info("upstream %.*s: the shell (%s) has set the weight of %.*s to %u", MK_STR_ARG(server->base.group),
                call->by, MK_STR_ARG(server->base.name), (unsigned)weight);
    return 0;
}

static int reset_server(struct mk_command_call *call, struct server *server)
{
    if (call->n_args > 3)
        return refuse_action(call);
    admin_set_state(server->admin, ADMIN_UNSET);
    atomic_store(&server->admin->weight_plus, 0);
    mk_log_info("upstream %.*s: the shell (%s) has reset %.*s: the configuration holds", MK_STR_ARG(server->base.group),
                call->by, MK_STR_ARG(server->base.name));
    return 0;
}

static int run_action(struct mk_command_call *call, const struct member *m, unsigned n)
{
    struct server *server = m->server;
    struct mk_str word = call->args[2];
    enum admin_state state = admin_find_state(word);
    if (state != ADMIN_UNSET)
        return set_state(call, m, n, state);
    if (mk_str_eq(word, MK_STR("weight")))
        return set_weight(call, server);
    return mk_str_eq(word, MK_STR("reset")) ? reset_server(call, server) : refuse_action(call);
}

static void warn_of_none(struct mk_command_call *call, const struct mk_upstream_group *group)
{
    const struct members *members = group_members(group);
    for (unsigned i = 0; i < members->n; i++)
        if (member_takes(&members->items[i], false))
            return;
    mk_command_warn(call, "no server of the group %.*s gets new requests now", MK_STR_ARG(group->conf->name));
}

/* Tells which of up to 64 addresses of a line get requests. */
static uint64_t find_used(const struct member *m, unsigned n, uint64_t now_ms)
{
    uint64_t used = 0;
    for (unsigned i = 0; i < n && i < 64; i++)
        used |= (uint64_t)(member_takes(&m[i], false) && !server_is_ejected(m[i].server, now_ms)) << i;
    return used;
}

/* Carries out the action for all addresses of a line. */
static int change_line(struct mk_command_call *call, const struct member *m, unsigned n)
{
    uint64_t now = get_now(call), before = find_used(m, n, now);
    int err = run_action(call, m, n);
    uint64_t came = find_used(m, n, now) & ~before;
    for (unsigned i = 0; came >> i && i < 64; i++)
        if (came >> i & 1) {
            /* the server is in use again: SlowStart begins, and requests that wait may have it */
            atomic_store(&m[i].server->slow_from_ms, now);
            group_note_up(m[i].server, now);
        }
    return err;
}

static int change_server(struct mk_command_call *call)
{
    unsigned n;
    const struct mk_upstream_group *group = find_group(call, call->args[0]);
    const struct member *m = group ? find_line(group, call->args[1], &n) : NULL;
    if (!group)
        return refuse_group(call);
    if (!m)
        return mk_command_refuse(call, "the group %.*s has no server %.*s; upstreams %.*s lists them",
                                 MK_STR_ARG(group->conf->name),
                                 MK_STR_ARG(mk_str_truncate(call->args[1], ARG_BYTES_MAX)),
                                 MK_STR_ARG(group->conf->name));
    int err = change_line(call, m, n);
    if (err < 0)
        return err;
    for (unsigned i = 0; i < n; i++)
        show_member(call, group, &m[i]);
    warn_of_none(call, group);
    return 0;
}

static void offer_servers(struct mk_command_call *call)
{
    const struct mk_upstream_group *group = find_group(call, call->args[0]);
    for (unsigned i = 0; group && i < group->conf->servers.n; i++)
        mk_command_offer(call, group->conf->servers.items[i].name);
}

static void offer_actions(struct mk_command_call *call)
{
    static const char *const actions[] = {"up", "drain", "down", "weight", "reset"};
    for (unsigned i = 0; i < MK_COUNT_OF(actions); i++)
        mk_command_offer(call, mk_str_c(actions[i]));
}

static void complete_change(struct mk_command_call *call)
{
    static void (*const offers[])(struct mk_command_call * call) = {offer_groups, offer_servers, offer_actions};
    if (call->n_args < MK_COUNT_OF(offers))
        offers[call->n_args](call);
}

const struct mk_command upstream_commands[] = {
    {.name = "upstreams",
     .arguments = "[GROUP]",
     .help = "the groups of servers: their states, weights and requests",
     .args_max = 1,
     .run = list_upstreams,
     .complete = offer_groups},
    {.name = "upstream",
     .arguments = "GROUP SERVER up|drain|down|weight N|reset",
     .help = "sets the state or the weight of a server, until reset or the end of the process",
     .args_min = 3,
     .args_max = 4,
     .view = MK_COMMAND_LIST,
     .run = change_server,
     .complete = complete_change},
    {0},
};

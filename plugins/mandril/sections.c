// SPDX-License-Identifier: Apache-2.0
/*
 * Makes the sections of a new generation ready: their networks, files and zones.
 */
#include "mandril.h"

#include <errno.h>
#include <stdio.h>

enum { TEXT_BYTES = 4096, MESSAGE_BYTES = 1024 };

/* Where a section stands, while sections are made ready in order. */
struct section_cursor {
    struct mk_host *host;
    struct mk_arena *arena;
    struct generation_state *g;
    const char *kind;   /* of the section, for keys of zones */
    struct mk_str file; /* of the previous section */
    unsigned nth;       /* number of the section in its file, from 1 */
    bool shared;        /* the section is one of monkey.conf, for all hosts */
};

/* What a section's struct has, wherever its fields are. */
struct section_fields {
    const void *conf;
    const struct conditions *when;
    const struct mk_networks *networks;
    struct mk_str file, name;
    size_t file_offset;
    uint32_t clients;
    bool dry_run;
};

/* Returns the file of a place such as "sites/default:12". */
static struct mk_str get_file(struct mk_str place)
{
    const char *colon = place.len ? memrchr(place.p, ':', place.len) : NULL;
    return mk_str(place.p, colon ? (size_t)(colon - place.p) : place.len);
}

/* Sets place and name. Returns 0 or -ENOMEM. */
static int set_place(struct active_section *s, const struct section_fields *f, struct section_cursor *c)
{
    char number[16];
    MK_BUF_ON_STACK(place, TEXT_BYTES);
    mk_host_conf_origin(c->host, f->conf, &place);
    s->place = mk_arena_dup(c->arena, mk_buf_str(&place));
    if (!s->place.p)
        return -ENOMEM;
    struct mk_str file = get_file(s->place);
    c->nth = mk_str_eq(file, c->file) ? c->nth + 1 : 1;
    c->file = file;
    snprintf(number, sizeof(number), "#%u", c->nth);
    s->name = f->name.len ? f->name : mk_arena_dup(c->arena, mk_str_c(number));
    return s->name.p ? 0 : -ENOMEM;
}

/* Takes the zone of the section. Returns 0 or -ENOMEM. */
static int take_zone(struct active_section *s, const struct section_fields *f, const struct section_cursor *c)
{
    MK_BUF_ON_STACK(key, TEXT_BYTES);
    if (f->dry_run && f->clients)
        mk_buf_adds(&key, MK_STR("dry run of a ")); /* its own clients: it must not change what others count */
    mk_buf_adds(&key, mk_str_c(c->kind));
    mk_buf_addc(&key, '\0');
    mk_buf_adds(&key, c->shared ? MK_STR("") : mk_host_name(c->host, 0));
    mk_buf_addc(&key, '\0');
    mk_buf_adds(&key, c->file); /* hosts of different listeners may have the same name */
    mk_buf_addc(&key, '\0');
    mk_buf_adds(&key, s->name);
    s->zone = key.err ? NULL : zones_get(c->g->process->zones, mk_buf_str(&key), f->clients);
    return s->zone ? 0 : -ENOMEM;
}

/* Opens the file of networks. Returns 0, -EINVAL (it was reported) or -ENOMEM. */
static int open_file(struct active_section *s, const struct section_fields *f, const struct section_cursor *c)
{
    if (!f->file.len)
        return 0;
    MK_BUF_ON_STACK(message, MESSAGE_BYTES);
    s->clients.file = files_open(&c->g->files, f->file, &message);
    if (s->clients.file >= 0)
        return 0;
    if (!message.len)
        return s->clients.file == -ENOMEM ? -ENOMEM : -EINVAL;
    mk_host_error(c->host, f->conf, f->file_offset, 0, "%s", mk_buf_cstr(&message));
    return -EINVAL;
}

static int start_section(struct active_section *s, const struct section_fields *f, struct section_cursor *c)
{
    *s = (struct active_section){.when = f->when, .clients.file = -1};
    int err = set_place(s, f, c);
    err = err < 0 ? err : take_zone(s, f, c);
    if (err < 0)
        return err;
    if (f->networks->n && !(s->clients.networks = networks_new(f->networks->items, f->networks->n)))
        return -ENOMEM;
    return open_file(s, f, c);
}

static void stop_section(struct active_section *s, struct process_state *process)
{
    networks_free(s->clients.networks);
    zones_put(process->zones, s->zone);
    *s = (struct active_section){.clients.file = -1};
}

/* ── rules ── */

static struct section_fields get_rule_fields(const struct rule_conf *conf)
{
    return (struct section_fields){
        conf, &conf->when,  &conf->when.networks, conf->when.file, conf->name, offsetof(struct rule_conf, when.file),
        0,    conf->dry_run};
}

static int add_rule(struct host_state *state, struct section_cursor *c, const struct rule_conf *conf)
{
    struct section_fields f = get_rule_fields(conf);
    struct rule *rules = mk_arena_grow(c->arena, state->rules, state->n_rules, sizeof(*rules));
    if (!rules)
        return -ENOMEM;
    state->rules = rules;
    struct rule *rule = &rules[state->n_rules++];
    rule->conf = conf;
    return start_section(&rule->base, &f, c);
}

/* ── limits ── */

/* Returns whether records of clients are needed. */
static bool counts_clients(const struct limit_conf *conf)
{
    return conf->rate.n || conf->requests_max || (conf->send_rate && conf->send_rate_for == SEND_RATE_CLIENT);
}

/*
 * Makes the value of RateLimit-Policy: as many requests as may come at once, in the time in which they are filled up
 * again.
 */
static int make_policy(struct limit *limit, struct mk_arena *arena)
{
    const struct limit_conf *conf = limit->conf;
    uint64_t burst = (uint64_t)conf->burst, n = conf->rate.n, period = conf->rate.period_s;
    uint64_t window = (burst * period + n - 1) / n, quota = window * n / period;
    char text[256];
    snprintf(text, sizeof(text), "\"%.*s\";q=%llu;w=%llu", MK_STR_ARG(limit->base.name),
             (unsigned long long)(quota > burst ? quota : burst), (unsigned long long)window);
    limit->policy = mk_arena_dup(arena, mk_str_c(text));
    return limit->policy.p ? 0 : -ENOMEM;
}

static int add_limit(struct host_state *state, struct section_cursor *c, const struct limit_conf *conf)
{
    struct section_fields f = {conf,
                               &conf->when,
                               &conf->when.networks,
                               conf->when.file,
                               conf->name,
                               offsetof(struct limit_conf, when.file),
                               counts_clients(conf) ? (uint32_t)conf->clients_max : 0,
                               conf->dry_run};
    struct limit *limits = mk_arena_grow(c->arena, state->limits, state->n_limits, sizeof(*limits));
    if (!limits)
        return -ENOMEM;
    state->limits = limits;
    struct limit *limit = &limits[state->n_limits++];
    *limit = (struct limit){.conf = conf};
    int err = start_section(&limit->base, &f, c);
    if (conf->send_rate)
        limit->send_rate = bucket_byte_rate(conf->send_rate);
    if (!conf->rate.n || err < 0)
        return err;
    limit->rate = bucket_request_rate(conf->rate.n, conf->rate.period_s, (uint32_t)conf->burst);
    return make_policy(limit, c->arena);
}

/* ── hosts ── */

static int worse_of(int err, int other)
{
    return other < 0 && err != -ENOMEM ? other : err;
}

static const struct mk_pattern *get_rule_pattern(const void *rules, uint32_t number)
{
    return &((const struct rule *)rules)[number].conf->when.match;
}

static const struct mk_pattern *get_limit_pattern(const void *limits, uint32_t number)
{
    return &((const struct limit *)limits)[number].conf->when.match;
}

int sections_index_host(struct host_state *state)
{
    state->rule_index = mk_pattern_index_new(get_rule_pattern, state->rules, state->n_rules, &state->arena);
    state->limit_index = mk_pattern_index_new(get_limit_pattern, state->limits, state->n_limits, &state->arena);
    return state->rule_index && state->limit_index ? 0 : -ENOMEM;
}

int sections_start_host(struct mk_host *host, struct host_state *state, struct generation_state *g)
{
    int err = 0;
    struct section_cursor c = {.host = host, .arena = &state->arena, .g = g, .kind = "rule"};
    const struct mk_conf_section *rules = &mandril_sections[SECTION_RULES], *limits = &mandril_sections[SECTION_LIMITS];
    state->process = g->process;
    for (const void *conf = mk_host_conf(host, rules); conf; conf = mk_host_conf_next(host, rules, conf)) {
        c.shared |= conf == mk_host_server_conf(host, rules);
        err = worse_of(err, add_rule(state, &c, conf));
    }
    c = (struct section_cursor){.host = host, .arena = &state->arena, .g = g, .kind = "limit"};
    for (const void *conf = mk_host_conf(host, limits); conf; conf = mk_host_conf_next(host, limits, conf)) {
        c.shared |= conf == mk_host_server_conf(host, limits);
        err = worse_of(err, add_limit(state, &c, conf));
    }
    return err < 0 ? err : sections_index_host(state);
}

void sections_stop_host(struct host_state *state)
{
    for (uint32_t i = 0; i < state->n_rules; i++)
        stop_section(&state->rules[i].base, state->process);
    for (uint32_t i = 0; i < state->n_limits; i++)
        stop_section(&state->limits[i].base, state->process);
    state->n_rules = state->n_limits = 0;
}

/* ── connections ── */

static int add_connection_rule(struct generation_state *g, struct section_cursor *c, const struct connection_conf *conf)
{
    struct section_fields f = {conf,
                               NULL,
                               &conf->networks,
                               conf->file,
                               conf->name,
                               offsetof(struct connection_conf, file),
                               conf->connections_max ? (uint32_t)conf->clients_max : 0,
                               conf->dry_run};
    struct connection_rule *rules = mk_arena_grow(c->arena, g->connections, g->n_connections, sizeof(*rules));
    if (!rules)
        return -ENOMEM;
    g->connections = rules;
    struct connection_rule *rule = &rules[g->n_connections++];
    rule->conf = conf;
    return start_section(&rule->base, &f, c);
}

int sections_start_connections(struct mk_host *host, struct generation_state *g)
{
    int err = 0;
    struct section_cursor c = {.host = host, .arena = &g->arena, .g = g, .kind = "connections", .shared = true};
    const struct mk_conf_section *section = &mandril_sections[SECTION_CONNECTIONS];
    for (const void *conf = mk_host_server_conf(host, section); conf; conf = mk_host_conf_next(host, section, conf))
        err = worse_of(err, add_connection_rule(g, &c, conf));
    return err;
}

void sections_stop_connections(struct generation_state *g)
{
    for (uint32_t i = 0; i < g->n_connections; i++)
        stop_section(&g->connections[i].base, g->process);
    g->n_connections = 0;
}

/*
 * Finds sections that can never match: earlier ones hold for all of their paths, methods and headers, and together for
 * all of their clients. Files of networks may change, so what they have now is not looked at.
 */
/* A section as it is compared with others. */
struct section_scope {
    const struct active_section *s;
    const struct mk_networks *networks;
    struct mk_str file;
    bool decides; /* a section in a dry run does not */
};

/* Sections in their order; those before `start` are not compared with the others. */
struct section_scopes {
    struct section_scope *all;
    size_t n, start;
    const struct mk_pattern_index *index; /* NULL: they have no patterns */
};

/* Returns the first section, from `from` on, that may cover the conditions of the nth one. */
static size_t find_next(const struct section_scopes *scopes, size_t nth, size_t from)
{
    from = from < scopes->start ? scopes->start : from;
    if (!scopes->index)
        return from;
    return mk_pattern_index_next_cover(scopes->index, &scopes->all[nth].s->when->match, (uint32_t)from);
}

static bool is_for_all(const struct section_scope *r)
{
    return !r->networks->n && !r->file.len;
}

/* Returns whether the conditions other than clients of `first` hold whenever those of `later` do. */
static bool covers_conditions(const struct section_scope *first, const struct section_scope *later)
{
    return first->decides && (!first->s->when || conditions_cover(first->s->when, later->s->when));
}

/* Returns whether one section is for all clients of `later`. */
static bool covers_clients(const struct section_scope *first, const struct section_scope *later)
{
    if (is_for_all(first))
        return true;
    return first->file.len && mk_str_eq(first->file, later->file) && !later->networks->n;
}

/* Returns 1 if the sections before have all networks of the nth one together, 0, or -ENOMEM. */
static int cover_networks(const struct section_scopes *scopes, size_t nth)
{
    const struct section_scope *first = scopes->all, *later = &first[nth];
    struct mk_buf all;
    if (!later->networks->n || later->file.len)
        return 0;
    mk_buf_init(&all, NETWORKS_MAX * sizeof(struct mk_network));
    for (size_t i = 0; (i = find_next(scopes, nth, i)) < nth; i++)
        if (covers_conditions(&first[i], later) && first[i].networks->n)
            mk_buf_add(&all, first[i].networks->items, first[i].networks->n * sizeof(struct mk_network));
    struct network_set *set = all.err || !all.len ? NULL
                                                  : networks_new((const struct mk_network *)(const void *)all.data,
                                                                 all.len / sizeof(struct mk_network));
    int covered = set ? networks_cover(set, later->s->clients.networks) : all.len ? -ENOMEM : 0;
    networks_free(set);
    mk_buf_release(&all);
    return covered;
}

/* Finds what covers the nth section. Returns 1, 0 or -ENOMEM. `*ret`: a section that does alone, or NULL. */
static int find_cover(const struct section_scopes *scopes, size_t nth, const struct section_scope **ret)
{
    const struct section_scope *first = scopes->all;
    for (size_t i = 0; (i = find_next(scopes, nth, i)) < nth; i++) {
        *ret = &first[i];
        if (covers_conditions(&first[i], &first[nth]) && covers_clients(&first[i], &first[nth]))
            return 1;
    }
    *ret = NULL;
    return cover_networks(scopes, nth);
}

/* Warns of the last section if it can never match. Returns 0 or -ENOMEM. */
static int check_last(struct mk_host *host, const struct section_scopes *scopes, const void *conf, size_t offset)
{
    const struct section_scope *cover;
    int found = find_cover(scopes, scopes->n - 1, &cover);
    if (found > 0 && cover)
        mk_host_warn(host, conf, offset, 0, "this can never match: the section of %.*s comes first and takes all of it",
                     MK_STR_ARG(cover->s->place));
    else if (found > 0)
        mk_host_warn(host, conf, offset, 0, "this can never match: earlier sections together take all of it");
    return found < 0 ? found : 0;
}

/* Takes memory for `n` sections, to be freed with free_scopes(). Returns 0 or -ENOMEM. */
static int open_scopes(struct section_scopes *scopes, size_t n, const struct mk_pattern_index *index)
{
    *scopes =
        (struct section_scopes){.all = mk_account_alloc(NULL, (n + 1) * sizeof(struct section_scope)), .index = index};
    return scopes->all ? 0 : -ENOMEM;
}

static void free_scopes(struct section_scopes *scopes, size_t n)
{
    mk_account_free(NULL, scopes->all, (n + 1) * sizeof(struct section_scope));
}

/*
 * The sections of monkey.conf are after those of a host, which may override all of them, and are checked for the first
 * host only. Returns whether `conf` is the first of them; `*ret_skip`: they need no check.
 */
static bool begins_shared(struct mk_host *host, unsigned section, const void *conf, bool *ret_skip)
{
    bool first = conf == mk_host_server_conf(host, &mandril_sections[section]);
    *ret_skip = first && host != mk_generation_first_host(mk_host_generation(host));
    return first;
}

/* Tells whether no address is in both lists; false if one of them is for all clients. */
static bool are_networks_apart(const struct mk_networks *a, const struct mk_networks *b)
{
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t k = 0; k < b->n; k++)
            if (mk_network_contains(&a->items[i], &b->items[k].address) ||
                mk_network_contains(&b->items[k], &a->items[i].address))
                return false;
    return a->n && b->n;
}

/* Tells whether no request can meet the conditions of both rules. Files of networks may change. */
static bool are_apart(const struct conditions *a, const struct conditions *b)
{
    return (a->match.text.p && b->match.text.p && mk_pattern_is_apart(&a->match, &b->match)) ||
           (!a->file.len && !b->file.len && are_networks_apart(&a->networks, &b->networks));
}

/* What no rule denies is allowed: a rule that allows is an exception of later ones, or of a login. */
static void check_allowing(struct mk_host *host, const struct host_state *state, size_t n)
{
    const struct rule_conf *rule = state->rules[n].conf;
    bool has_effect = rule->action.kind != ACTION_ALLOW || mk_host_uses_access(host), denies = false;
    for (size_t i = n + 1; i < state->n_rules && !has_effect; i++) {
        const struct rule_conf *later = state->rules[i].conf;
        denies |= later->action.kind != ACTION_ALLOW;
        has_effect = later->action.kind != ACTION_ALLOW && !are_apart(&rule->when, &later->when);
    }
    if (!has_effect && denies)
        mk_host_warn(
            host, rule, offsetof(struct rule_conf, action), 0,
            "this has no effect: no [RULES] behind it denies any of these paths to these clients, and what none "
            "denies is allowed");
    else if (!has_effect)
        mk_host_warn(
            host, rule, offsetof(struct rule_conf, action), 0,
            "this has no effect: what no [RULES] denies is allowed; for these clients alone, write a section with "
            "\"Action deny\" behind it");
}

static int check_rules(struct mk_host *host, const struct host_state *state)
{
    struct section_scopes scopes;
    int err = open_scopes(&scopes, state->n_rules, state->rule_index);
    bool skip = false;
    for (size_t i = 0; i < state->n_rules && err == 0; i++) {
        const struct rule *rule = &state->rules[i];
        scopes.all[scopes.n++] = (struct section_scope){&rule->base, &rule->conf->when.networks, rule->conf->when.file,
                                                        !rule->conf->dry_run};
        scopes.start = begins_shared(host, SECTION_RULES, rule->conf, &skip) ? i : scopes.start;
        if (skip)
            break;
        err = check_last(host, &scopes, rule->conf, offsetof(struct rule_conf, action));
        check_allowing(host, state, i);
    }
    free_scopes(&scopes, state->n_rules);
    return err;
}

static bool rates_differ(const struct bucket_rate *a, const struct bucket_rate *b)
{
    return a->per_us && b->per_us && a->per_us != b->per_us;
}

/*
 * Checks that no earlier section, from `start` on, fills the buckets that a section shares with it at other rates: a
 * bucket has one. Returns 0 or -EINVAL.
 */
static int check_rates(struct mk_host *host, const struct host_state *state, size_t start, size_t n)
{
    const struct limit *limit = &state->limits[n], *other;
    for (size_t i = start; i < n; i++) {
        other = &state->limits[i];
        if (other->base.zone != limit->base.zone)
            continue;
        if (!rates_differ(&limit->rate, &other->rate) && !rates_differ(&limit->send_rate, &other->send_rate))
            continue;
        mk_host_error(host, limit->conf, offsetof(struct limit_conf, name), 0,
                      "the section of %.*s has the same name, and so counts the same clients, but its rate is another: "
                      "use one rate, or two names",
                      MK_STR_ARG(other->base.place));
        return -EINVAL;
    }
    return 0;
}

static int check_limits(struct mk_host *host, const struct host_state *state)
{
    struct section_scopes scopes;
    int err = open_scopes(&scopes, state->n_limits, state->limit_index);
    bool skip = false, wrong = false;
    for (size_t i = 0; i < state->n_limits && err == 0; i++) {
        const struct limit *limit = &state->limits[i];
        scopes.all[scopes.n++] = (struct section_scope){&limit->base, &limit->conf->when.networks,
                                                        limit->conf->when.file, !limit->conf->dry_run};
        scopes.start = begins_shared(host, SECTION_LIMITS, limit->conf, &skip) ? i : scopes.start;
        if (skip)
            break;
        err = check_last(host, &scopes, limit->conf, offsetof(struct limit_conf, when.match));
        wrong = check_rates(host, state, scopes.start, i) < 0 || wrong;
    }
    free_scopes(&scopes, state->n_limits);
    return err == 0 && wrong ? -EINVAL : err;
}

static int check_host(struct mk_host *host)
{
    const struct host_state *state = mk_host_state(host, &mk_plugin_mandril);
    int err = state ? check_rules(host, state) : 0;
    return err < 0 || !state ? err : check_limits(host, state);
}

int shadowed_check_hosts(struct mk_generation *g)
{
    int err = 0;
    for (struct mk_host *host = mk_generation_first_host(g); host && err != -ENOMEM; host = mk_host_next(host)) {
        int found = check_host(host);
        err = found < 0 ? found : err;
    }
    return err;
}

static bool refuses_connections(const struct connection_conf *conf)
{
    return conf->action == CONNECTION_DROP || conf->connections_max;
}

/* As check_allowing(), for connections. */
static void check_allowing_connections(struct mk_host *host, const struct generation_state *g, size_t n)
{
    bool has_effect = false;
    for (size_t i = n; i < g->n_connections && !has_effect; i++)
        has_effect = refuses_connections(g->connections[i].conf);
    if (!has_effect)
        mk_host_warn(host, g->connections[n].conf, offsetof(struct connection_conf, action), 0,
                     "this has no effect: what no [CONNECTIONS] refuses is accepted; for these clients alone, write a "
                     "section that drops all others behind it");
}

int shadowed_check_connections(struct mk_host *host, const struct generation_state *g)
{
    struct section_scopes scopes;
    int err = open_scopes(&scopes, g->n_connections, NULL);
    for (size_t i = 0; i < g->n_connections && err == 0; i++) {
        const struct connection_rule *rule = &g->connections[i];
        scopes.all[scopes.n++] =
            (struct section_scope){&rule->base, &rule->conf->networks, rule->conf->file, !rule->conf->dry_run};
        err = check_last(host, &scopes, rule->conf, offsetof(struct connection_conf, action));
        check_allowing_connections(host, g, i);
    }
    free_scopes(&scopes, g->n_connections);
    return err;
}
